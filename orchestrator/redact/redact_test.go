package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The secrets of these tests are drawn by hand and open nothing. They are put
// together from halves, so that no scanner of repositories takes them for real.
func secrets() map[string]string {
	return map[string]string{
		"openai-key":        "sk-" + "proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1w",
		"anthropic-key":     "sk-" + "ant-api03-Zy9xWv6uTs3rQp0oNm7lKj4i",
		"github-token":      "ghp_" + "1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R",
		"gitlab-token":      "glpat-" + "aB3-dE6_gH9jK2mN5pQ8",
		"aws-key-id":        "AKIA" + "Q3EGTZ7XN5BWKM2A",
		"slack-token":       "xoxb-" + "210987654321-abcDEF123ghi",
		"google-key":        "AIza" + "SyD3-fGh7JkL0_pQr5StUv8WxYz1Ab4Cd6E",
		"stripe-key":        "sk_live_" + "51HqLyjWDarjtT1zdp7dc",
		"huggingface-token": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567",
		"jwt":               "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
	}
}

func testKey() []byte { return []byte("0123456789abcdef0123456789abcdef") }

func plain(t testing.TB, s string) string {
	t.Helper()
	out, _ := New(testKey(), nil).Text(s)
	return regexp.MustCompile(`:[0-9a-f]{6}\]`).ReplaceAllString(out, "]")
}

func TestProviderKeys(t *testing.T) {
	for kind, key := range secrets() {
		mark := "[redacted:" + kind + "]"
		for _, frame := range []string{"%s", "key %s end", `{"k":"%s"}`, `{\"k\":\"%s\"}`, `a\n%s\nb`, `a\u003c%s`, "(%s)", "x=%s&y=1", "%s,", "use `%s`"} {
			in, want := fmt.Sprintf(frame, key), fmt.Sprintf(frame, mark)
			if got := plain(t, in); got != want {
				t.Errorf("%s in %q:\n got %q\nwant %q", kind, frame, got, want)
			}
		}
	}
}

func TestPatterns(t *testing.T) {
	pw := "Tr0ub4dor" + "&3"
	tests := []struct{ name, in, want string }{
		{"bearer", "Authorization: Bearer " + "abc123def456ghi789", "Authorization: Bearer [redacted:bearer-token]"},
		{"bearer, JSON", `{"Authorization":"Bearer ` + `abc123def456ghi789"}`, `{"Authorization":"Bearer [redacted:bearer-token]"}`},
		{"basic", "Authorization: Basic " + "dXNlcjpwYXNzd29yZDE=", "Authorization: Basic [redacted:basic-auth]"},
		{"database URL", "DATABASE_URL=postgres://app:s3cr3t@db.local:5432/app", "DATABASE_URL=postgres://app:[redacted:url-password]@db.local:5432/app"},
		{"URL without user", "redis://:hunter2@cache:6379/0", "redis://:[redacted:url-password]@cache:6379/0"},
		{"password with an at sign", "mysql://u:p@ss:w0rd@h/x", "mysql://u:[redacted:url-password]@h/x"},
		{"URL with letters beyond ASCII", "postgres://app:s\u00e9cr\u00e9t@db/x", "postgres://app:[redacted:url-password]@db/x"},
		{"env of words", "DB_PASSWORD=correct-horse_battery.staple", "DB_PASSWORD=[redacted:password]"},
		{"env", "DB_PASSWORD=hunter2", "DB_PASSWORD=[redacted:password]"},
		{"env of letters", "export POSTGRES_PASSWORD=correcthorse", "export POSTGRES_PASSWORD=[redacted:password]"},
		{"env, quoted", `API_KEY="abc def"` + "\n" + `API_KEY='qwertz99'`, `API_KEY="[redacted:api-key]"` + "\n" + `API_KEY='[redacted:api-key]'`},
		{"env, escaped", `A=1\nAPP_SECRET=hunter2hunter2\nB=2`, `A=1\nAPP_SECRET=[redacted:secret]\nB=2`},
		{"env, quoted and escaped", `APP_TOKEN=\"qwertz-99\"`, `APP_TOKEN=\"[redacted:token]\"`},
		{"yaml", "password: hunter2secret99\n", "password: [redacted:password]\n"},
		{"yaml, quoted", "  password: '" + pw + "'", "  password: '[redacted:password]'"},
		{"json", `"api_key": "q1w2e3r4t5"`, `"api_key": "[redacted:api-key]"`},
		{"code", `client.secret_key = "q1w2e3r4t5"`, `client.secret_key = "[redacted:secret-key]"`},
		{"query", "GET /cb?token=9f8e7d6c5b4a&x=1", "GET /cb?token=[redacted:token]&x=1"},
		{"marker in a URL", "redis://u:p[redacted:url-password:3f9a1c]@h", "redis://u:p[redacted:url-password]@h"},
		{"marker is no secret", "API_KEY=[redacted:api-key:3f9a1c]", "API_KEY=[redacted:api-key]"},
	}
	for _, tt := range tests {
		if got := plain(t, tt.in); got != tt.want {
			t.Errorf("%s:\n  in %q\n got %q\nwant %q", tt.name, tt.in, got, tt.want)
		}
	}
}

// TestUntouched: everyday text of code and logs.
func TestUntouched(t *testing.T) {
	for _, in := range []string{
		"commit 70ce245f0d1c2b3a49586776655443322110ffee",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"go.sum: h1:J7TrZGKGUwhFXGv0fVqLkJ9UQb1pVwXrVuU1jQkPX8E=",
		"id 3fa85f64-5717-4562-b3fc-2c963f66afa6",
		`<img src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==">`,
		"pass the token= parameter, or secret= if there is none",
		"the password: it must have eight letters",
		"--- FAIL: TestTokenRefresh_WithSecret/password=empty (0.00s)",
		"=== RUN   TestAPIKeyRotation12345678",
		"token := os.Getenv(\"API_TOKEN\")",
		"password = getPassword(user, 12345678)",
		"token = tokens[i+1]",
		"secret: sha256.New224(nil)",
		"if token == expected12345 {",
		"API_KEY=${OPENAI_API_KEY}", "PASSWORD=$1", "export TOKEN=\"$(gh auth token)\"",
		"API_KEY=<your key>", `API_KEY=""`, "password: ********", "SECRET=xxxxxxxx", "api_key: your-api-key-1234",
		"max_tokens=4096 prompt_tokens: 128000 token_count=99", "MAX_TOKEN=4096",
		"type Token struct { Kind TokenKind2 }",
		"func (p *Parser) token() Token",
		"password: string | null", "token: CancellationToken,", "secret?: string;",
		"the Bearer token authentication-scheme-of-the-web is", "Bearer authentication", "a Basic understanding of it", "basic authentication",
		"http://localhost:8080/path@v1.2.3", "https://example.com/@scope/pkg", "ssh://git@github.com/x/y", "git@github.com:x/y.git",
		"\u89c1 http://localhost:8080\uff0c\u6216\u5199\u4fe1\u7ed9a@b.c", "http://localhost:8080\u6216a@b.c", "see http://host:name\uff0ca@b.c",
		"postgres://user:password@localhost/db", "https://user:${PASS}@host", "proxy http://<user>:<pass>@host",
		"task-sk-circle-fade-dot-animation-long-name", "sk-circle-fade-dot-animation-long-name-9", "risk-1234567890abcdefghijABCDEFGHIJ",
		"AKIAIOSFODNN7EXAMPLEX123", "MYAKIAQ3EGTZ7XN5BWKM2A", "ghp_short", "xoxb-your-bot-token", "AIzaShort",
		"-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----",
		"if strings.Contains(s, \"-----BEGIN RSA PRIVATE KEY-----\") {\n\treturn nil\n}",
		"the -----BEGIN PRIVATE KEY----- header",
		`{"prev":"00000000000000000000000000000000","crc":"1a2b3c4d"}`,
		"Content-Type: text/html; charset=utf-8", "Secret: config.Secret.Name2", "token: uuid.New().String()",
	} {
		if got := plain(t, in); got != in {
			t.Errorf("touched:\n  in %q\n got %q", in, got)
		}
	}
}

func pem() string {
	var b strings.Builder
	b.WriteString("-----BEGIN RSA PRIVATE KEY-----\n")
	for i := range 4 {
		b.WriteString(strings.Repeat(string(rune('A'+i))+"b3/x+9Z", 8) + "\n")
	}
	b.WriteString("Qq==\n-----END RSA PRIVATE KEY-----\n")
	return b.String()
}

func TestPrivateKeys(t *testing.T) {
	numbered := func(s string) string {
		var b strings.Builder
		for i, line := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
			fmt.Fprintf(&b, "%6d\t%s\n", i+1, line)
		}
		return b.String()
	}
	frames := map[string]func(string) string{
		"as it is": func(s string) string { return "x\n" + s + "y\n" },
		"numbered": numbered,
		"CRLF":     func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"JSON":     func(s string) string { return `{"key":"` + jsonEscape(s) + `"}` },
		"diff":     func(s string) string { return "+" + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n+") },
		"one line": func(s string) string { return strings.ReplaceAll(s, "\n", "") },
		"blanks":   func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\n", " ")) + " y" },
		"headers": func(s string) string {
			return strings.Replace(s, "-----\n", "-----\nVersion: GnuPG v2\nComment: my key\n\n", 1)
		},
		"coloured": func(s string) string {
			return "\x1b[32m+\x1b[m" + strings.ReplaceAll(s, "\n", "\x1b[m\n\x1b[32m+\x1b[m")
		},
		"truncated": func(s string) string { return s[:150] },
		"head":      func(s string) string { return s[:97] + "\n[exit 0]" },
		"grep": func(s string) string {
			return "a.pem:1:" + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\na.pem:2:")
		},
	}
	for name, frame := range frames {
		in := frame(pem())
		r := New(testKey(), nil)
		out, found := r.Text(in)
		for _, part := range []string{"b3/x+9Z", "Qq=="} {
			if strings.Contains(out, part) {
				t.Errorf("%s: %q is left:\n%s", name, part, out)
			}
		}
		if strings.Count(in, "\n") != strings.Count(out, "\n") || !strings.Contains(out, "BEGIN RSA PRIVATE KEY") {
			t.Errorf("%s: the lines changed:\n%s", name, out)
		}
		if back := restore(out, found); back != in {
			t.Errorf("%s: not restored:\n%s", name, back)
		}
	}
}

// TestEncodedPrivateKeys: a private key in base64, as a Kubernetes Secret and a kubeconfig hold it.
func TestEncodedPrivateKeys(t *testing.T) {
	for _, label := range []string{"PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"} {
		key := "-----BEGIN " + label + "-----\n" + strings.Repeat(
			"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 5) + "-----END " + label + "-----\n"
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
			text := encoding.EncodeToString([]byte(key))
			for _, frame := range []string{"%s", "  tls.key: %s\n  tls.crt: x", `{"client-key-data":"%s"}`, `a\n%s\nb`} {
				if out, found := New(testKey(), nil).Text(fmt.Sprintf(frame, text)); len(found) != 1 ||
					found[0].Bytes != text {
					t.Errorf("%s: %q left %q", label, frame, out)
				}
			}
			wrapped := strings.TrimSpace(regexp.MustCompile(".{76}").ReplaceAllString(text, "$0\n"))
			if out, found := New(testKey(), nil).Text("x\n" + wrapped + "\nsome words\n"); out == "" ||
				len(found) != strings.Count(wrapped, "\n")+1 || !strings.HasSuffix(out, "]\nsome words\n") {
				t.Errorf("%s: wrapped left %q", label, out)
			}
		}
	}
	certificate := base64.StdEncoding.EncodeToString([]byte(
		"-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEA\n-----END CERTIFICATE-----\n"))
	if got := plain(t, "tls.crt: "+certificate); got != "tls.crt: "+certificate {
		t.Errorf("touched a certificate: %q", got)
	}
}

func restore(out string, found []Found) string {
	of := map[string]string{}
	for _, f := range found {
		of[f.Marker] = f.Bytes
	}
	return ReplaceMarkers(out, func(m string) string { return cmp.Or(of[m], m) })
}

func TestKnownValues(t *testing.T) {
	value := `p"ss\w/rd<42> ü`
	r := New(testKey(), []Secret{{Kind: "DB_LOGIN", Value: value}, {Kind: "x", Value: "short"}})
	once, _ := json.Marshal(value)
	twice, _ := json.Marshal(string(once))
	for name, in := range map[string]string{
		"plain": "is " + value + " it", "JSON": string(once), "JSON in JSON": string(twice),
		"slashes": strings.ReplaceAll(string(once), "/", `\/`),
		"URL":     "?q=p%22ss%5Cw%2Frd%3C42%3E+%C3%BC&x=short",
	} {
		out, found := r.Text(in)
		if len(found) != 1 || !strings.Contains(out, "[redacted:db-login:") ||
			found[0].Marker != markerOf(t, r, value) {
			t.Errorf("%s: %q, %v", name, out, found)
		}
	}
	// Case counts.
	if out, _ := r.Text(strings.ToUpper(value)); HasMarker(out) {
		t.Errorf("another case: %q", out)
	}
}

func markerOf(t *testing.T, r *Redactor, value string) string {
	t.Helper()
	_, found := r.Text(value)
	if len(found) != 1 {
		t.Fatalf("found %v", found)
	}
	return found[0].Marker
}

func TestMarkersOfEqualSecrets(t *testing.T) {
	key := secrets()["openai-key"]
	a, b := New(testKey(), nil), New([]byte("another key"), nil)
	if markerOf(t, a, key) != markerOf(t, New(testKey(), nil), key) {
		t.Error("equal secrets, unequal markers")
	}
	if markerOf(t, a, key) == markerOf(t, a, key[:len(key)-1]+"x") {
		t.Error("unequal secrets, equal markers")
	}
	if markerOf(t, a, key) == markerOf(t, b, key) {
		t.Error("the key does not matter")
	}
	text := "a [redacted:openai-key:3f9a1c] b [redacted:x:12345] [redacted:A:123456] [redacted:openai-key:3f9a1c] [redacted:y:abcdef]"
	if got := Markers(text); len(got) != 2 || got[0] != "[redacted:openai-key:3f9a1c]" ||
		got[1] != "[redacted:y:abcdef]" {
		t.Errorf("markers %q", got)
	}
}

// TestOverlap: of secrets that overlap nothing is left over.
func TestOverlap(t *testing.T) {
	r := New(testKey(), []Secret{{"one", "abcd-efgh-ijkl"}, {"two", "ijkl-mnop-qrst"}, {"three", "efgh-ijkl-mnop"}})
	for _, in := range []string{"abcd-efgh-ijkl-mnop-qrst", "API_TOKEN=xx1abcd-efgh-ijkl"} {
		out, found := r.Text("< " + in + " >")
		if len(found) != 1 || strings.Contains(out, "mnop") || strings.Contains(out, "xx1") ||
			restore(out, found) != "< "+in+" >" {
			t.Errorf("%q: %q, %v", in, out, found)
		}
	}
}

func TestFromEnviron(t *testing.T) {
	got := FromEnviron([]string{
		"OPENAI_API_KEY=abcdefgh12345", "DB_PASSWORD=postgres", "GITHUB_TOKEN=short", "PATH=/usr/bin:/bin",
		"SSH_KEY_PASSPHRASE=correct horse battery", "GOOGLE_APPLICATION_CREDENTIALS=/home/x/key.json", "HOME_TOKEN=/a/b/c/d/e",
		"DATABASE_URL=postgres://u:hunter22@h/d", "SHORT_URL=postgres://u:hunter2@h/d", "WORD_URL=postgres://u:fifteenletterss@h/d", "USER_URL=postgres://user12345@h/d", "BARE_URL=//u:hunter22@h", "PROXY_TOKEN=http://u:short@h/abc123def456",
		"LONG_URL=postgres://u:sixteenlettersss@h/d", "OPENAI_BASE_URL=http://127.0.0.1:1/v1", "AUTHOR=somebody1234", "TOKENIZER=cl100k_base_x",
		"GITHUB_TOKEN_RO=qwertz0123456", "STRIPE_API_KEY_LIVE=xyz0123456789", "COMPASS=points2north34", "TOKENS_PER_MINUTE=123456789012",
	})
	want := []Secret{{"openai-api-key", "abcdefgh12345"}, {"ssh-key-passphrase", "correct horse battery"},
		{"database-url-password", "hunter22"}, {"long-url-password", "sixteenlettersss"},
		{"github-token-ro", "qwertz0123456"}, {"stripe-api-key-live", "xyz0123456789"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestJSON(t *testing.T) {
	r := New(testKey(), []Secret{{"env", "hunter2\"hunter2"}})
	args := `{"id":"a/hunter2\"hunter2","content":"X=hunter2\"hunter2\nAPI_TOKEN=\"qwertz-99\""}`
	in, err := json.Marshal(map[string]any{
		"id": `hunter2"hunter2`, "args": args,
		"list": []any{1.5, nil, true, "DB_PASSWORD=hunter2", map[string]any{"k": "ü"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	out, changed, err := r.JSON(in,
		&JSONOptions{Keep: []string{"id"}, Nested: []string{"args"}, Found: func(path []string, f Found) {
			paths = append(paths, strings.Join(path, ".")+" "+f.Bytes)
		}})
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	var got struct {
		ID, Args string
		List     []any
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	var inner struct{ ID, Content string }
	if err := json.Unmarshal([]byte(got.Args), &inner); err != nil {
		t.Fatalf("%v in %s", err, got.Args)
	}
	if got.ID != `hunter2"hunter2` || strings.Contains(inner.ID, "hunter2") ||
		strings.Contains(inner.Content, "hunter2") || strings.Contains(inner.Content, "qwertz") {
		t.Errorf("got %+v %+v", got, inner)
	}
	if !strings.HasSuffix(inner.Content, `"`) || !strings.Contains(inner.Content, "\nAPI_TOKEN=\"[redacted:token:") {
		t.Errorf("content %q", inner.Content)
	}
	want := []string{`args.id hunter2"hunter2`, `args.content hunter2"hunter2`, "args.content qwertz-99",
		"list hunter2"}
	if fmt.Sprint(paths) != fmt.Sprint(want) {
		t.Errorf("found %q, want %q", paths, want)
	}
	same := []byte(`{ "a" : [ 1 , {"b":"c\u00e9"} ] }`)
	if out, changed, err := r.JSON(same, nil); err != nil || changed || !bytes.Equal(out, same) {
		t.Errorf("clean JSON: %s, %v, %v", out, changed, err)
	}
	if _, _, err := r.JSON([]byte(`{"a":`), nil); err == nil {
		t.Error("no error for what is no JSON")
	}
}

// texts draws texts in which secrets stand among what resembles them.
func texts() *rapid.Generator[string] {
	parts := []string{" ", "\n", "\t", "=", ": ", `"`, `\n`, `\"`, "@", "://", "a", "word", "12345", "Bearer ",
		"Basic ", "TOKEN=", "password: ",
		"API_KEY", "postgres://u:", "s3cr3tpass", "known value 42", "known value", "a b c d e f g h i", "a b c d e f", "g h", "xa b", "dXNlcjpwYXNzd29yZDE=", "[redacted:x:abcdef]", "[redacted:",
		"DB_PASSWORD='", "DB_PASSWORD='a b c d e f g h'", "curl ", " -u ", "u:pw123", " --password ", "a1b2&c3d4", "&", "'", "$ecret12", "Authorization: token ", "https://", "line one 1\nline two 2", "line one 1", "\r\n",
		pem(), "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", "AKIA", "é", "\xff"}
	for _, k := range []string{"openai-key", "aws-key-id", "github-token", "jwt"} {
		parts = append(parts, secrets()[k])
	}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 40).Draw(t, "parts"), "")
	})
}

func TestTextProperties(t *testing.T) {
	r := New(testKey(), []Secret{{"known", "known value 42"}})
	rapid.Check(t, func(t *rapid.T) {
		in := texts().Draw(t, "text")
		out, found := r.Text(in)
		if strings.Count(in, "\n") != strings.Count(out, "\n") {
			t.Fatalf("the lines changed: %q, %q", in, out)
		}
		if strings.Contains(out, "known value 42") {
			t.Fatalf("a known value is left: %q", out)
		}
		at := 0
		for _, f := range found { // what is not a secret stays as it is
			i := strings.Index(out[at:], f.Marker)
			j := strings.Index(in, f.Bytes)
			if i < 0 || j < 0 {
				t.Fatalf("%v is not in %q / %q", f, in, out)
			}
			if out[at:at+i] != in[:j] && !strings.HasPrefix(in, out[at:at+i]) {
				t.Fatalf("changed %q into %q", in, out)
			}
			in, at = in[len(out[at:at+i])+len(f.Bytes):], at+i+len(f.Marker)
		}
		if out[at:] != in {
			t.Fatalf("the end changed: %q, %q", in, out[at:])
		}
	})
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"TOKEN=\\", "://a:b@", "-----BEGIN PRIVATE KEY-----", "[redacted:", "Basic AA==", "a\\u00", "eyJ"} {
		f.Add(s)
	}
	r := New(testKey(), []Secret{{"k", "known value 42"}})
	f.Fuzz(func(t *testing.T, in string) {
		out, found := r.Text(in)
		if len(found) == 0 && out != in {
			t.Errorf("%q became %q", in, out)
		}
	})
}

// corpus is a megabyte of what a stream holds: code, logs, JSON, with a secret
// now and then.
func corpus() string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b,
			"2026-01-02T15:04:05Z INFO request id=3fa85f64-5717-4562-b3fc-%012d path=/api/v1/users?page=%d status=200 token_count=%d\n", i, i, i)
		b.WriteString("\tif err := s.store.Put(ctx, key, value); err != nil {\n\t\treturn fmt.Errorf(\"put %s: %w\", key, err)\n\t}\n")
		b.WriteString(`{"kind":"tool.returned","body":{"call":"c1","name":"Bash","text":"ok  \tanamnesis/opstream\t0.412s\n"}}` + "\n")
		b.WriteString("see https://example.com:8443/docs#basic and the password policy; commit 70ce245f0d1c2b3a49586776655443322110ffee\n")
		if i%50 == 0 {
			b.WriteString("DATABASE_URL=postgres://app:s3cr3t" + fmt.Sprint(i) + "@db/app\n")
		}
	}
	return b.String()[:1<<20]
}

// BenchmarkText's bar is 20 ms a megabyte with all patterns, in JSON that is
// checked, too: at least 50 MB/s.
func BenchmarkText(b *testing.B) {
	var known []Secret
	for i := range 20 {
		known = append(known, Secret{"known", fmt.Sprintf("%dQzKwP%dxVbN%dmTrL%dhG", i*7, i*13, i*17, i*29)})
	}
	r := New(testKey(), known)
	text := corpus()
	b.Run("mixed", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			r.Text(text)
		}
	})
	clean := strings.ReplaceAll(text, "postgres://app:", "postgres://")
	b.Run("clean", func(b *testing.B) {
		b.SetBytes(int64(len(clean)))
		b.ReportAllocs()
		for b.Loop() {
			r.Text(clean)
		}
	})
	b.Run("learned", func(b *testing.B) { // as many as are learned at most
		l := new(Learned)
		for i := range MaxLearned {
			l.Add(Secret{"learned", fmt.Sprintf("%dQzKwP%dxVbN%dmTrL%dhGpY%dsDfJ", i*7, i*13, i*17, i*29, i*31)})
		}
		r := NewLearning(testKey(), known, l)
		r.Text("")
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			r.Text(text)
		}
	})
	b.Run("learn", func(b *testing.B) { // the table made anew with each value
		for b.Loop() {
			r.current.Store(nil)
			r.table()
		}
	})
	data, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		b.Fatal(err)
	}
	for _, valid := range []bool{true, false} {
		b.Run(fmt.Sprintf("json/valid=%v", valid), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := r.JSON(data, &JSONOptions{Valid: valid}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

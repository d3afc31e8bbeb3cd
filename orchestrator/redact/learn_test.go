package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// keyKinds are twelve kinds of keys, each in a text that shows it by its form,
// with the part of it that is secret.
func keyKinds() map[string][2]string {
	const r = "A7fK2mQ9xZ3bV8nL5tR1wY6cH4jD0pSgE2uN"
	return map[string][2]string{
		"openai":       {"key sk-proj-" + r, r},
		"anthropic":    {"key sk-ant-api03-" + r, r},
		"github":       {"ghp_" + r, r},
		"github-pat":   {"github_pat_11" + r[:20] + "_" + r, r},
		"gitlab":       {"glpat-" + r[:20], r[:20]},
		"aws":          {"AKIAQ7Z3M9X2K5W8R4T6", "Q7Z3M9X2K5W8R4T6"},
		"slack":        {"xoxb-" + r, r},
		"google":       {"AIza" + r[:35], r[:35]},
		"stripe":       {"sk_live_" + r[:24], r[:24]},
		"npm":          {"npm_" + r, r},
		"url-password": {"postgres://app:" + r[:20] + "@db.local/app", r[:20]},
		"named":        {"DB_PASSWORD=" + r[:16], r[:16]},
	}
}

// encodings bring a value into a text in another form.
func encodings() map[string]func(string) string {
	out := map[string]func(string) string{
		"cut down":     func(s string) string { return "x-" + s },
		"url":          url.QueryEscape,
		"url all":      func(s string) string { return escapeAll(s, "%%%02x") },
		"url partial":  func(s string) string { return s[:3] + escapeAll(s[3:5], "%%%02X") + s[5:] },
		"url twice":    func(s string) string { return strings.ReplaceAll(escapeAll(s, "%%%02x"), "%", "%25") },
		"json":         func(s string) string { b, _ := json.Marshal(s); return string(b) },
		"json escapes": func(s string) string { return escapeAll(s[:4], `\u%04x`) + s[4:] },
		"c escapes":    func(s string) string { return escapeAll(s, `\x%02x`) },
		"hex":          func(s string) string { return hex.EncodeToString([]byte("<" + s + ">")) },
		"HEX":          func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"wrapped":      func(s string) string { return wrap(s, 23, "\n") },
		"continued":    func(s string) string { return wrap(s, 19, "\\\n  ") },
		"printable":    func(s string) string { return wrap(s, 20, "=\r\n") },
		"coloured":     func(s string) string { return s[:5] + "\x1b[01;31m\x1b[K" + s[5:8] + "\x1b[m\x1b[K" + s[8:] },
		"each colour":  func(s string) string { return eachRune(s, "\x1b[38;5;1m%c") },
		"UTF-16":       func(s string) string { return eachRune(s, "%c\x00") },
		"bold":         func(s string) string { return eachRune(s, "%[1]c\b%[1]c") },
		"markdown":     func(s string) string { return strings.NewReplacer("_", `\_`, "-", `\-`, "+", `\+`).Replace("x_" + s) },
		"zero width":   func(s string) string { return s[:4] + "\u200b" + s[4:] },
		"hex lines":    func(s string) string { return wrap(hex.EncodeToString([]byte(s)), 20, "\n") },
		"base64 lines": func(s string) string {
			return wrap(base64.StdEncoding.EncodeToString([]byte("password: "+s+"\n")), 19, "\r\n  ")
		},
	}
	for lead := range 3 {
		out[fmt.Sprintf("base64 %d", lead)] = func(s string) string {
			return base64.StdEncoding.EncodeToString([]byte("abc"[:lead] + s + "?>?>"))
		}
		out[fmt.Sprintf("base64url %d", lead)] = func(s string) string {
			return base64.RawURLEncoding.EncodeToString([]byte("abc"[:lead] + s))
		}
	}
	return out
}

func escapeAll(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func eachRune(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

func wrap(s string, n int, end string) string {
	var b strings.Builder
	for len(s) > n {
		b.WriteString(s[:n] + end)
		s = s[n:]
	}
	return b.String() + s
}

// inOrder puts back what was replaced.
func inOrder(s string, found []Found) string {
	return ReplaceMarkers(s, func(string) string {
		f := found[0]
		found = found[1:]
		return f.Bytes
	})
}

// TestLearned: a value that a pattern recognised is found in every form from then
// on, under the same marker, and what is outside of it stays.
func TestLearned(t *testing.T) {
	for kind, k := range keyKinds() {
		for name, encode := range encodings() {
			r := NewLearning(testKey(), nil, new(Learned))
			shown, found := r.Text("before " + k[0] + " behind")
			if len(found) != 1 || strings.Contains(shown, k[1]) {
				t.Fatalf("%s: not recognised: %q", kind, shown)
			}
			in := "before " + encode(k[1]) + " behind"
			out, again := r.Text(in)
			if len(again) == 0 {
				t.Errorf("%s in %s: %q", kind, name, out)
				continue
			}
			for _, f := range again {
				if f.Marker != found[0].Marker {
					t.Errorf("%s in %s: marker %s, was %s", kind, name, f.Marker, found[0].Marker)
				}
			}
			if inOrder(out, again) != in || !strings.HasPrefix(out, "before ") || !strings.HasSuffix(out, " behind") {
				t.Errorf("%s in %s: %q", kind, name, out)
			}
			rest := strings.Join(strings.FieldsFunc(ReplaceMarkers(out, func(string) string { return " " }),
				func(r rune) bool { return r <= ' ' }), "")
			if len(rest) > len("beforebehind")+len(`"x-"`)+20 {
				t.Errorf("%s in %s: much is left: %q", kind, name, out)
			}
			// The same text has it before it is recognised, in JSON, too.
			fresh := NewLearning(testKey(), nil, new(Learned))
			data, err := json.Marshal([]string{in, k[0]})
			if err != nil {
				t.Fatal(err)
			}
			var told int
			if data, _, err = fresh.JSON(data, &JSONOptions{Found: func([]string, Found) { told++ }}); err != nil ||
				told < 2 || strings.Contains(string(data), k[1]) {
				t.Errorf("%s in %s: %d told in %s, %v", kind, name, told, data, err)
			}
		}
	}
}

// TestKnownEncoded: a value that was known from the start is found in every
// form, too.
func TestKnownEncoded(t *testing.T) {
	for _, value := range []string{"hunter2!", "p/w+x(y)!z=%2Fé", strings.Repeat("long/", 40)} {
		r := New(testKey(), []Secret{{"k", value}})
		for name, encode := range encodings() {
			in := "<" + encode(value) + ">"
			out, found := r.Text(in)
			if len(found) == 0 || inOrder(out, found) != in {
				t.Errorf("%q in %s: %q", value, name, out)
			}
		}
	}
}

// TestNotLearned: words, names, numbers and paths are no secret elsewhere because
// they once stood behind a name.
func TestNotLearned(t *testing.T) {
	l := new(Learned)
	r := NewLearning(testKey(), nil, l)
	for _, v := range []string{"changeme-please-now", "localhost", "production-database", "hunter2hunter2", "release20261",
		"anamnesis/orchestrator/v1", "invented-by-me-1", "1234567890123456", "aaaaaaaaaaaaaaaaaaaA1", "Passw0rd1", "/run/secrets/db-Password1"} {
		r.Text("API_TOKEN=" + v)
		if got := l.Values(0); len(got) > 0 {
			t.Errorf("%s was learned: %v", v, got)
			l = new(Learned)
			r = NewLearning(testKey(), nil, l)
		}
	}
}

// TestLearnedTogether: several redactors share what one of them learned, each with
// its own key; a fixed one learns nothing; and past the bound nothing is added.
func TestLearnedTogether(t *testing.T) {
	l := new(Learned)
	a, b := NewLearning(testKey(), nil, l), NewLearning([]byte("another"), nil, l)
	k := keyKinds()["named"]
	if out, _ := b.Text(k[1]); out != k[1] {
		t.Fatalf("known too early: %s", out)
	}
	a.Text(k[0])
	if out, _ := b.Text(k[1]); out == k[1] {
		t.Error("not shared")
	}
	fixed := New(testKey(), nil)
	fixed.Text(k[0])
	if out, _ := fixed.Text(k[1]); out != k[1] {
		t.Errorf("a fixed one learned: %s", out)
	}
	for i := range MaxLearned {
		l.Add(Secret{"k", fmt.Sprintf("Zq%07dMxR4tY9", i)})
	}
	values := l.Values(0)
	if len(values) != MaxLearned || !slices.Contains(values, Secret{"password", k[1]}) {
		t.Errorf("%d values", len(values))
	}
	if more := l.Values(MaxLearned + 1); len(more) != 0 {
		t.Errorf("%d beyond the end", len(more))
	}
}

// TestLearnedWhileWriting: a Writer finds in later pieces what it recognised in
// earlier ones.
func TestLearnedWhileWriting(t *testing.T) {
	k := keyKinds()["github"]
	in := k[0] + "\n" + strings.Repeat("words and more words\n", 50) +
		base64.StdEncoding.EncodeToString([]byte(k[1])) + "\n"
	var out strings.Builder
	w := NewLearning(testKey(), nil, new(Learned)).NewWriter(&out)
	for piece := range slices.Chunk([]byte(in), 64) {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(Markers(out.String())); got != 1 || strings.Count(out.String(), markerBegin) != 2 {
		t.Errorf("%d markers:\n%s", got, out.String())
	}
}

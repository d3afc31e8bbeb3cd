package redact

import (
	"fmt"
	"strings"
	"testing"
)

// borders are texts just at a limit of a rule, and beside it.
func borders() []side {
	key, many := secrets()["github-token"], strings.Repeat
	return []side{
		{"options", []string{
			"7z x -px -p«hunter2» a.7z", "mysql -p«abc» db", "--password «hunter2».", "--token «abc123» x", `\nsshpass -p «s3cret» h`, "curl -u u:«p2» h",
		}, []string{
			"mysql -u root -p dbname1", "redis-cli -a'Kx8Rt3Vq' ping", "sshpass -pab ssh h", "mysql -p******** db", "find / -print1", "--token abc12 x",
			"--token ÀÀÀÀÀÀ x", "--token 123456 x", "curl -u u:p h", "--password", "docker run -p Kx8Rt3Vq h",
		}},
		{"cookies", []string{
			"Cookie: session=«9f8e7d6c»", "Cookie: session=«abcdefghijklmnop»", "Cookie: session=«a1b2c3dd»", "Cookie: cn=«Kx8Rt3Vq0ZmL7nWb»",
			"Set-Cookie:[[sid=«Kx8Rt3Vq0ZmL7nWb»]]", "Cookie: =x; sid=«Kx8Rt3Vq0ZmL7nWb»",
		}, []string{
			"cookie_consent=accepted2026202620", `cookie "sid=Kx8Rt3Vq0ZmL7nWb"`, "curl --cookiexid=Kx8Rt3Vq0ZmL7nWb h", "Set-Cookie: a=b; Path=/Kx8Rt3Vq0ZmL7nWb9",
			"Cookie: session=9f8e7d6", "Cookie: session=abcdefghijklmno", "Cookie: cn=Kx8Rt3Vq0ZmL7nW", "Cookie: cn=abcdefghijklmnopq", "Cookie: session=",
		}},
		{".netrc", []string{"machine h 1 2| password «hun»"}, []string{
			"machine_h password hunter2", "xmachine h password hunter2", "machine h password hu", "machine h" + many(" 1", 300) + " password hunter2",
		}},
		{"names", []string{
			"x" + many("A", 63) + "_PASSWORD=«correct»", "PASSWORD123=«hunter»", `API_KEY="«QWERTZ99»"`, "password: «bcDEF123x»", "APP_SECRET=«$x9y8z7w».",
			"DB_PASSWORD=«postgre».", `{password:«q7Zb2c3d»}"`, "DB_PASSWORD=«hunter2» \bX", `\u003c«` + key + `»`, "q%20«" + key + "»&", `\n«` + key + `»`,
		}, []string{
			"x" + many("A", 62) + "_PASSWORD=correct", "D_PaSSWORD=postgres", "z_PASSWORD=postgres", "PASSWORD1234=hunter", `config[password] = "hunter2pw9"`,
			`f(DB_PASSWORD, "a1b2c3d4")`, `f("DB_PASSWORD", DB_HOST_NAME2)`, "DB_PASS=>hunter", "DB_PASS =hunter",
			"DB_PASS= hunter", "DB_PASS:hunter",
			"DB_PASS=>hunt3r2", "PASSWORD: hunter2", "FTP_PASS = q1w2e3", "DB_PASS: hunter2 x", `\\n` + key[1:], "q%2" + key,
		}},
		{"a name and its value in a row", []string{
			"DB_PASSWORD\t«S3cr3tPw99xQ» \t\n", "| DB_PASSWORD | «S3cr3tPw99xQ» |\r\n", "DB_PASSWORD\t«S3cr3tPw99xQ»", "- name: DB_PASSWORD\n  value: «QWERTZ99»\n",
			`"DB_PASSWORD",` + many(" ", 62) + `"value":"«S3cr3tPw99xQ»"`,
			`{\"name\":\"DB_PASSWORD\",\nvalue\":\"«S3cr3tPw99xQ»\"}`,
			`<x name="DB_PASSWORD"value="«S3cr3tPw99xQ»"/>`, "a\n| app-key  «Kx8Rt3Vq0ZmL»\n",
		}, []string{
			"app-key Kx8Rt3Vq0ZmL", "db_password  Kx8Rt3Vq0ZmL is it", "token 9f8e7d6c5b4a39281706", "ENV API_KEY Kx8Rt3Vq0ZmL7", "ENV API_KEY Kx8Rt3Vq(0ZmL7nWb",
			"ENV API_KEY some-words-joined-here", "DB_PASSWORD\tS3cr3tPw99xQ and", `"DB_PASSWORD",` + many(" ", 63) + `"value":"S3cr3tPw99xQ"`,
			`{\"name\":\"DB_PASSWORD\",\D\"value\":\"S3cr3tPw99xQ\"}`, `passwordValue = "q7Zw2Xc9Vb4Nm"`,
			"x app-key  Kx8Rt3Vq0ZmL\n",
		}},
		{"lengths", []string{
			"DB_PASSWORD=«" + many("q7", 256) + "»", "DB_PASSWORD='«" + many("a ", 256) + "»'", "PASSWORD=«123456»", "f(password=«12345678»)", "PGPASSWORD='«a b d»'",
			"PGPASSWORD='«abcdef»'", `secret_key = "«q1w2r4t5»"`, "SECRET=«xxxx[x»", "TOKEN=«N=N=N=»", "token: «0x3f879678abcdef123»",
			`API_KEY=\\\\"«qwertz99»\\\\"`,
		}, []string{
			"DB_PASSWORD=" + many("q7", 256) + "w", "DB_PASSWORD='" + many("a ", 256) + "b'", "PASSWORD=12345", "PASSWORD=1", "f(password=1234567)", "PGPASSWORD='a bd'",
			"PGPASSWORD='abcde'", `secret_key = "q1w2r4t"`, "SECRET=xxx[x", "TOKEN=N=N=N", "token: 0x3f879678abcdef12", `API_KEY=\\\\\"qwertz99\\\\\"`,
		}},
		{"signs in values", []string{
			"DB_PASSWORD=«a1b2c3&=d4»", `?token=«a\b2c3d4»&x`, `DB_PASSWORD=«hunter2»\`, "PrivateKey = «ab1cd/efgh»", "accessKey: «a1b2c3d4e5»",
			"app-key: «Kx8Rt3VmL»", "API_KEY='«/Qw3rT8Zx»'", "secretKey = «keys.0ecretKey2»", "token: «abc.Kx8Rt3Vq0ZmL7nWb»", "secret: «s#a256.New2nil»",
			"password: «hunter2secr9»",
		}, []string{
			"DB_PASSWORD=&x1y2z3w4", "token: abc&", "API_TOKEN=de-fgh-ij", "API_TOKEN=de.fgh.ij", "API_TOKEN=de_fgh_ij", `password: "ÀÀÀÀÀÀ"`, `"token":"wo$d"`,
			`"token":"worddddd"`, `"token":"12$45678"`, `"token": "a1b2(c3d4)"`, "DB_PASSWORD=ab(cdefg)",
			"accessKey: testRSA2048Key", "password: 123+45678",
			"password: bcDEFxyz12", "password: word+word", "token: abc.Kx8Rt3Vq0ZmL7nW", "token: a_b1.c_d234", "password: hunter22secr", `--token string\ x`,
		}},
		{"patterns", []string{
			"redis://u:«p[x»@h [redacted:x:123abc]", "«EAAA" + many("Kx8Rt3Vq", 8) + "»", "Basic «dXMgZXI6cGFzcw»", "authorization: bearer «aBcdeaBcdeaBcdeaBcde»",
			"password" + many(" ", 65) + "= «hunter2pw9»",
		}, []string{
			"https://hooks.zapier.com/hooks/catch/1234567/4567", "\bghp_short", "EAAA" + many("Kx8Rt3Vq", 8) + "A", "xoxb-210987654321-", "BBBBasic dXNlcjpwYXNz",
			"Basic dXNlcjpwYXNzd", "Basic dXNlcjp/YXNz", "authorization: bearer aBcdeaBcdeaBcdeaBcdex", "password" + many(" ", 66) + "= hunter2pw9",
		}},
		{"passwords in URLs", []string{
			"a+://u:«hunter2»@h", "ss://u:«abc»@h", "redis://:«éa12»@h", "postgres://appé:«hunter2»@h", "TOKEN=«$pass12»", "redis://:«hunté»@h",
		}, []string{
			"ss://u:ab@h", "://a:bcd@h", "x$s://u:hunter2@h", `ss://u:hun"ter2@h`, "ss://u:hun ter2@h", "TOKEN=$conf.pass12",
			"docker://app:3.0-build20260131a7f9c2@sha256:9f8e7d6c5b4a39281706",
		}},
	}
}

// TestHiddenInValues: a secret has one marker, whether a screen shows all of its bytes or not.
func TestHiddenInValues(t *testing.T) {
	r := New(testKey(), nil)
	for _, frame := range []string{"ss://u:%s@h", "DB_PASSWORD=%s"} {
		_, want := r.Text(fmt.Sprintf(frame, "hunter2"))
		for _, v := range []string{"hun\x7fter2", "hun\x00ter2", "hun\u200bter2", "hunx\bter2"} {
			if out, got := r.Text(fmt.Sprintf(frame, v)); len(got) != 1 || got[0].Marker != want[0].Marker ||
				got[0].Bytes != v {
				t.Errorf("%q in %s: %q", v, frame, out)
			}
		}
	}
}

// TestNothing: a Redactor that is not there finds nothing; a marker is listed once.
func TestNothing(t *testing.T) {
	var r *Redactor
	in := `{"foreign":{"data":"` + secrets()["github-token"] + `"}}`
	if out, found := r.Text(in); out != in || len(found) != 0 {
		t.Errorf("%q, %v", out, found)
	}
	if out, changed, err := r.JSON([]byte(in), &JSONOptions{Foreign: "foreign"}); changed || err != nil ||
		string(out) != in {
		t.Errorf("%s, %v", out, err)
	}
	if _, markers := New(testKey(), nil).Markers("DB_PASS=hunter2 DB_PASS=hunter2 DB_PASS=hunter3"); len(markers) != 2 {
		t.Errorf("markers %q", markers)
	}
}

// TestSidesInPieces: a text that comes byte by byte is redacted like the whole.
func TestSidesInPieces(t *testing.T) {
	for _, rule := range append(sides(), borders()...) {
		for _, in := range append(rule.takes, rule.spares...) {
			text := strings.NewReplacer("«", "", "»", "").Replace(in)
			var out strings.Builder
			w := New(testKey(), nil).NewWriter(&out)
			for i := range len(text) {
				if _, err := w.Write([]byte{text[i]}); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if want, _ := New(testKey(), nil).Text(text); out.String() != want {
				t.Errorf("%s: %q became %q, want %q", rule.name, text, out.String(), want)
			}
		}
	}
}

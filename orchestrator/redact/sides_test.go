package redact

import (
	"fmt"
	"strings"
	"testing"
)

// side is a rule's two sides: texts in which the secret stands between « and »,
// and texts that are like them and are left alone.
type side struct {
	name          string
	takes, spares []string
}

func sides() []side {
	half := "9f8e7d6c5b4a39281706" // of tokens that open nothing
	return []side{
		{"values between quotes", []string{
			"PGPASSWORD='«a b c»' psql", `PGPASSWORD="«a b c»" psql`, `export DB_PASSWORD="«it's a secret»"`, `X_SECRET='«say "hi" to»'`,
			`{"cmd":"PGPASSWORD='«a b c»' psql"}`, `{"cmd":"PGPASSWORD=\"«a b c»\" psql"}`, `DB_PASSWORD="«a \" b»"`,
		}, []string{
			`const INVALID_TOKEN = "Token is not valid"`, `ERR_PASSWORD: "the password is wrong"`,
			`"token": "the next word"`,
			`password: "must have eight letters"`, "PGPASSWORD='a b c\nd'", `echo "TOKEN=" 'and so on'`,
			`PASSWORD="$(pass show db)"`,
			`API_KEY="${OPENAI_API_KEY}"`, `PASSWORD='a b`, `SECRET="" next="x y z"`,
		}},
		{"passwords in URLs", []string{
			"postgres://u:«p/a?ss#w»@db/app", "postgres://u:«p/a@ss»@db/app", "redis://:«a/b+c=»@h:6379/0", "amqp://u:«x#y!zzz»@h", "postgres://u:«$ecret123»@h/d",
			"mysql://u@corp.example:«hunter2»@h/x", "https://u:«pa:ss:word»@h/x@y", "redis://u:«p[redacted:x»@h",
		}, []string{
			"http://localhost:8080/path@v1.2.3", "https://example.com:443/@scope/pkg", "https://[::1]:8080/a@b", "git+ssh://git@github.com:user/repo@v1",
			"http://h:80?mail=a@b.c", "https://h/p?to=x:y@z", "postgres://u:$PASS@h", "docker://alpine:3.19@sha256:" + half, "file://C:/Users/x@y",
			"see http://a.b:/c, mail me@x.y", "https://user:password@h",
		}},
		{"tokens as users of URLs", []string{
			"https://«" + half + half + "»@github.com/x/y", "https://«" + half + "abCD:x-oauth-basic»@github.com/x/y.git",
			"url = https://«glQ7xT2mVb9KpLw4Zr8N»@host/p",
		}, []string{
			"ssh://git@github.com/x/y", "https://first.last-name-of-somebody@host/", "sftp://deploy-user-of-staging@host/x", "https://user12@host",
		}},
		{"names", []string{
			"SECRET_KEY=«django-insecure-abc»", "DJANGO_SECRET_KEY=«some-words-joined»",
			"DB_PASS=«hunter2»", "db_pass: «hunter2hunter99»", `FTP_PASS = "«q1w2e3»"`, "SECRET_KEY_BASE=«0a1b2c3d4e5f»", "ENCRYPTION_KEY=«abc123def»",
			"DB_PASSWORD=«12345678»", "?password=«12345678»&x", "MYSQL_PWD=«246810»", "JENKINS_TOKEN2=«11aa22bb33»", "aws configure set aws_secret_access_key «wJalrXUtnFEMIK7MDENGbPxRfiCY123KEY»", "ENV API_KEY «Kx8Rt3Vq0ZmL7nWb»",
			"DD_APP_KEY=«3f9a1c7e5d2b»", "app-key: «Kx8Rt3Vq0ZmL»", `.dockerconfigjson: «eyJhdXRocyI6eyJoIjp7ImF1dGgiOiJkWE5sY2pwb2RXNTBaWEl5In19fQ==»`,
		}, []string{
			"tests_pass: true", "first_pass = run(x)", "RENDER_PASS 1", "max_token=4096", "MAX_TOKEN=12345678", "password: 12345678",
			"if ok_pass == 12345678 {", "min_password_length=12345678", "_pass=", "SECRET_KEY_BASE=$(rails secret)", "BYPASS=12345678",
			`password = os.Getenv("DB_PASSWORD")`, `password := os.Getenv("X1234567")`,
			`DB_PASSWORD = os.environ["DB_PASSWORD"]`,
			"passphrase=12345678901234567 if x", "secret_key_base: <%= ENV['X'] %>",
		}},
		{"names in other spellings", []string{
			`"SecretAccessKey": "«wJalrXUtnFEMI7MDENGbPxRfiCYzR8kL3mN9pQz»"`,
			"PrivateKey = «yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=»", "Ocp-Apim-Subscription-Key: «3f9a1c7e5d2b8f604a1c9e7d5b3f2a80»",
			"X-Vault-Token: «s.Kx8Rt3Vq0ZmL7nWbYc2HdJf9»", `os.environ["DB_PASSWORD"] = "«hunter2pw»"`, `$db['default']['password'] = '«s3cr3tpw99»';`,
			"      DB_PASS:            «s3cr3tpw99»", `      + password                      = "«tf-S3cretPass»"`, "wget --password=«hunter2pw» --user=me h", "user=root\npassword=«hunter2pw»\n",
			"jdbc:mysql://db/app?user=root&password=«hunter22»", "      POSTGRES_PASSWORD: «hunter2pw»\n", "curl -F password=«hunter2pw» h",
			"define('DB_PASSWORD', '«wpS3cret!»');", `os.getenv("API_TOKEN", "«a1b2c3d4»")`,
		}, []string{
			"const privateKey = await importKey(pem2)", "accessKey: string;", "secretKey = keys.secretKey2", "func (k PrivateKey) Public() {}", "publicKey: abc123def456", "PrivateKey: testRSA2048PrivateKey,", "TIOCTOKEN         = -0x3f879678", "API_TOKEN: string", "MAX_TOKEN: 4096\n",
			`["DB_PASSWORD", "DB_HOST_NAME2"]`, `env("DB_PASSWORD", "")`, `("password", "username1")`,
			"x --password=required", "--password=$PW", "f(password=password)", "login(user, password=password2)", "DB_PASSWORD: required\n",
		}},
		{"a name and its value", []string{
			`[{"name":"DB_PASSWORD","value":"«S3cr3tPw99xQ»"},{"name":"X","value":"y"}]`,
			"- name: DB_PASSWORD\n  value: «S3cr3tPw99xQ»\n- name: X", "{\n  \"name\": \"DB_PASSWORD\",\n  \"value\": \"«S3cr3tPw99xQ»\"\n}",
			"      + name  = \"DB_PASSWORD\"\n      + value = \"«S3cr3tPw99xQ»\"", `{\"Name\":\"API_KEY\",\"Value\":\"«kx8rt3vq0zml7nwb»\"}`, `<add key="api_key" value="«kx8rt3vq0zml7nwb»"/>`,
			"| Key         | Value        |\n| DB_PASSWORD | «S3cr3tPw99xQ» |\n", "DB_PASSWORD\t«S3cr3tPw99xQ»\n", "token                yes\npassword             «S3cr3tPw99xQ»\n",
		}, []string{
			"- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: {name: db12, key: p4ss}", `{"name":"DB_PASSWORD","value":"${DB_PASSWORD}"}`, `{"name":"max_token","value":"4096"}`,
			"| password | string |\n", "| token    | the next Token2Value of it |", "password\tusername\n", "NAME    TOKEN   STATUS\n",
		}},
		{"ampersands in values", []string{
			"password: «Tr0ub4dor&3»", "password = «a1b2c3d4&e&f»", "DB_PASSWORD=«Tr0ub4dor&3»", "password: «a1b2c3d4»&name=x",
			"?token=«a1b2c3d4»&x", "API_KEY=«a1b2c3d4»&B=2", "TOKEN=«a1b2c3d4»&& run", "PASSWORD=«a1b2c3d4»& wait",
		}, []string{"password: &anchor", "token: a&b", "if secret == x && y1234567 {"}},
		{"options", []string{
			"mysql --password «hunter2»", "--password '«hunter 2&3»' -h db", `x --api-key "«a1b2c3»"`, "--db-password «246810»", `["login","--token «ab12cd»"]`,
			"login --client-secret «Zx9+k/Qw3==» --tenant t",
		}, []string{
			"--password is required", "--password PASSWORD", "--password <password>", "--password $PW", "--password-stdin <f1l3name", "--token string   the token",
			"--private-key ~/.ssh/id_ed25519", "--private-key keys/id_25519.pem", "--private-key server2.pem", "--secret id=npmrc2,src=x", "--password --user x1y2z3",
			"`--password` has 8 letters", "--token @file1234", "--max-token 4096", "--password, 12345678", "--passphrase pass-word",
		}},
		{"curl", []string{
			"curl -u u:«pw» https://h", `curl -u CORP\joe:«pw12» h`, "curl -s -u 'me:«a b»' h", `curl --user "me:«p4$s»" h`, "curl -sSu me:«hunter2» h", "curl --proxy-user=me:«x1»,",
			"curl https://h \\\n  -u me:«hunter2»", `{"command":"curl -u me:«hunter2» h"}`, "curl -ume:«hunter2» h", "curl -Fuser=x -u me:«hunter2» h", "$ curl -X POST -H 'A: b' -u me:«hunter2»;",
		}, []string{
			"curl -u me https://h:8080", "curl -u $USER:$PASS h", `curl -u "${A}:${B}" h`, "curl -u user:password h", "curl -u <user>:<secret> h", "curl h\nps -u root:x1",
			"docker run -u 1000:1000 x", "curl h | rsync -u host:path2 .", "sort -u a:b1", "curly -u a:b1", "curl h; chown -u a:b1", "curl -u me: h",
		}},
		{"cookies", []string{
			"Set-Cookie: session=«" + half + "abcD»; HttpOnly; Path=/", "< set-cookie: connect.sid=«s%3AKx8Rt3Vq0ZmL7nWb.Yc2HdJ»; Path=/", "Cookie: theme=dark; sessionid=«" + half + "»; lang=en",
			`{"Cookie": "csrftoken=«Kx8Rt3Vq0ZmL»"}`, `"set-cookie": ["sid=«Kx8Rt3Vq0ZmL7nWb»; Path=/"]`,
			"curl --cookie 'PHPSESSID=«kx8rt3vq0zml7nwb»' h", `headers={'Cookie': 'remember_me=«Kx8Rt3Vq0ZmL7nWb»'}`,
			"Set-Cookie:[_gitlab_session=«3f9a1c7e5d2b8f60»; path=/]", "HTTP_COOKIE=auth_token=«Kx8Rt3Vq0ZmL7nWb»", "#HttpOnly_.h.example\tTRUE\t/\tTRUE\t1790000000\tid\t«Kx8Rt3Vq0ZmL7nWbYc2»",
			"h.example\tFALSE\t/\tFALSE\t0\tsession\t«kx8rt3vq0zml»",
		}, []string{
			"Set-Cookie: theme=dark; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "Cookie: lang=en-US; tz=Europe", "the cookie: session=yours", "cookies = requests.cookies.get('session')",
			"Set-Cookie: session=; Max-Age=0", "document.cookie = name", "cookie_consent=accepted2026", "Cookie: session=<session>", "a\tTRUE\tb\tc",
		}},
		{".netrc", []string{
			"machine h.example login ci password «qwertzuiop»", "machine h\n  login ci\n  password «hunter2»\n", "default login x password «a!b@c»", "     1\tmachine h\n     2\tlogin ci\n     3\tpassword «letmein»",
			"machine h password «hunter2» login ci", `echo "machine h login ci password «hunter22»" > ~/.netrc`,
		}, []string{
			"machine learning needs no password at all", "the default login has password hidden", "machine h login ci", "machine h login ci password $PW", "default password policy",
		}},
		{"options of commands", []string{
			"mysql -u root -p«hunter2» -h db", "mysqldump --all -p'«a b»' x", "sshpass -p «s3cret» ssh h", "sshpass -p'«secretword»' ssh h", "redis-cli -h h -a «Kx8Rt3Vq» ping", "docker login -u me -p «Kx8Rt3Vq» h",
			"helm registry login h -u me -p «hunter2»", "7z x -p«hunter2» a.7z", "ldapsearch -x -D cn=a -w «hunter2»", "mongosh -u a -p «hunter2» h", "keytool -list -storepass «changeit1»", `{"command":"mysql -uroot -p«hunter2» db"}`,
			"ssh-keygen -t rsa -N '«open s3same»'", "sqlcmd -S h -U sa -P «P@ssw0rd»",
		}, []string{
			"docker run -p 8080:80 nginx", "mysql -u root -p db", "mysql -p$PW", `mysql -p"${PW}"`, "mysql --port 3306", "mkdir -p a/b1", "helm install -p 12", "ssh-keygen -N ''", "unzip -P is an option", "mysql: use -p to ask",
			"mysql -u x; mkdir -px1", "az vm -p 8080",
		}},
		{"encoded logins", []string{
			`"auths": {"h": {"auth": "«dXNlcjpodW50ZXIy»"}}`, "//registry.example/:_auth=«dXNlcjpodW50ZXIy»",
			`auth: «dXNlcjpodW50ZXIy»`,
		}, []string{
			`"auth": "none"`, `"auth": "dXNlcg=="`, "auth = login(user)", "auth: oauth2",
		}},
		{"values that begin like variables", []string{
			"DB_PASSWORD=«$ecret123»", "DB_PASSWORD='«$ecret!!x9»'", "HASHED_PASSWORD=«$2b$12$abcdefghijkl»", "APP_SECRET=«$x9y8z7w6»",
		}, []string{
			"PASSWORD=$VAR", "PASSWORD=$1", "PASSWORD=$db_pass", "DB_PASSWORD=$pass1", "TOKEN=$TOKEN2024", "PASSWORD=${VAR}x", "PASSWORD=$(cat /run/x)",
			"DB_PASSWORD=$HOME/.secret12", "$password=$this->getPassword12();", "$token = $request->token99;", "PASSWORD=$env:DB_PASS12", "PASSWORD=$$", "TOKEN=$@",
		}},
		{"values that begin like paths", []string{
			"DB_PASSWORD=«/abcDEF123x»", "APP_SECRET=«/x9+Ab/c7==»", "API_KEY='«/Qw3rTy8Zx»'", "SIGNING_KEY=«/ab/Zy9xWv6uTs3rQp0oNm»",
		}, []string{
			"DB_PASSWORD=/run/secrets/db_password", "TOKEN=/var/lib/x/token.txt", "API_KEY=/etc/ssl/private/server-2024.key", "SECRET=/home/me/Projects/App2",
			"password: /abcDEF123x", "PRIVATE_KEY=./keys/Server2024.pem", "ACCESS_KEY=/tmp",
		}},
		{"Authorization", []string{
			"Authorization: token «" + half + "»", `"Authorization": "Token «` + half + `»"`,
			"-H 'Authorization: ApiKey «abcdef12»'", "authorization=«Zy9xWv6uTs3rQp0oNm7l»", "Authorization: Bearer «abc123def456ghi789»", "Bearer «==abc123def456ghi789»", `authorization=' «Zy9xWv6uTs3rQp0oNm7l»'`,
			"authorization: bearer «AbCdEfGhIjKlMnOpQrStUvWx»", `"Authorization": "Bearer «aBcDeFgHiJkLmNoPqR»"`,
		}, []string{
			"Authorization: token required", "Authorization: Bearer authentication", "authorization: it is needed for all 1234567890 of them",
			"Authorization: Bearer CancellationTokenSource", "Authorization: Bearer HTTPServerBearerTokenAPI",
			"Authorization: $TOKEN", `"authorization": {"type": "x"}`, "Authorization: CancellationTokenSource", "func authorization(x string) {",
		}},
	}
}

// TestSides shows of each rule what it takes, and what it spares.
func TestSides(t *testing.T) {
	for _, rule := range append(sides(), borders()...) {
		for _, in := range rule.takes {
			text := strings.NewReplacer("«", "", "»", "").Replace(in)
			out, found := New(testKey(), nil).Text(text)
			_, want, _ := strings.Cut(in, "«")
			want, _, ok := strings.Cut(want, "»")
			if !ok || len(found) != 1 || found[0].Bytes != want || restore(out, found) != text {
				t.Errorf("%s: %q: found %q in %q", rule.name, in, found, out)
			}
		}
		for _, in := range rule.spares {
			if got := plain(t, in); got != in {
				t.Errorf("%s: touched %q: %q", rule.name, in, got)
			}
		}
	}
}

// TestSecretsOfAWS: the secret beside an id of a key, in the forms that AWS prints.
func TestSecretsOfAWS(t *testing.T) {
	id, secret := secrets()["aws-key-id"], "wJalrXUtnFEMI7MDENGbPxRfi"+"CYzR8+L3/N9pQz1"
	for _, in := range []string{
		"User name,Access key ID,Secret access key\nme,%s,%s\n", "AWS Access Key ID [None]: %s\nAWS Secret Access Key [None]: %s\n", "ACCESSKEY\t%s\t2026-01-01T00:00:00Z\t%s\tActive", "| %s | %s |",
		"%s" + strings.Repeat(" ", 111) + "%s",
	} {
		if out, found := New(testKey(), nil).Text(fmt.Sprintf(in, id, secret)); len(found) != 2 ||
			found[1].Bytes != secret {
			t.Errorf("%q: %q", in, out)
		}
	}
	for _, in := range []string{strings.ToLower(id) + " " + secret, "X" + id + " " + secret, id + "A " + secret} {
		if got := plain(t, in); got != in {
			t.Errorf("touched %q: %q", in, got)
		}
	}
	for _, in := range []string{"%s " + strings.ToUpper(secret), "%s " + strings.ToLower(secret), "%s " + secret + "=", "%s" + strings.Repeat(" ", 112) + secret,
		"%s of 3f9a1c7e5d2b8f604a1c9e7d5b3f2a806c4e8d1f", "%s in " + secret[:30] + "/" + secret, "%s" + strings.Repeat(" and more of it", 40) + secret} {
		if out, found := New(testKey(), nil).Text(fmt.Sprintf(in, id)); len(found) != 1 {
			t.Errorf("%q: %q", in, out)
		}
	}
}

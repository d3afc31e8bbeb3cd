package shell

import "testing"

func TestOwnWork(t *testing.T) {
	for command, want := range map[string]bool{
		"python3 repro.py": true,
		"cd sub && PYTHONPATH=. python -m app.main | tail -5": true,
		"python3 - <<'EOF'\nprint(1)\nEOF":                    true,
		"cat > a.py <<'EOF'\nimport requests\nEOF":            true,
		"./tests/runtests.py admin && bin/test sympy/core":    true,
		"sed -i 's/a/b/' a.py; make check 2>&1 | head":        true,
		"npm run build > out.log 2>&1":                        true,
		"timeout 20 node a.js":                                true,
		"pytest --version":                                    true,
		"python3 -c 'import app; print(app.x)'":               true,
		"for f in a b; do python3 t.py; done":                 true,
		"":                                                    false,
		"pip install pytest && npm ci":                        true,
		"python -m pip install x":                             true,
		"sed '/a/,/b/p' a.py; grep -n '/api/' a.py":           true,
		"mvn -q test":                                         true,
		"JAVA_HOME=/usr/lib/jvm ./gradlew test":               true,
		"for f in a b; do pytest $f; done":                    true,
		"f() { make; }; f > /tmp/log":                         true,
		"pytest $(find t -name 't_*')":                        true,
		"npx serve":                                           true,
		"/usr/bin/env python3 a.py":                           true,
		"pip download x":                                      false,
		"npm view x readme":                                   false,
		"sed '/a/r /etc/passwd' a":                            false,
		"grep -e root /etc/passwd":                            false,
		"awk 'BEGIN { system(\"curl x\") }'":                  false,
		"$TOOL a.py":                                          false,
		"bash <<'EOF'\ncurl x\nEOF":                           false,
		"F=https://example.org ./get":                         false,
		"python3 -c 'import urllib.request'":                  false,
		"python3 - <<'EOF'\nimport requests\nEOF":             false,
		"curl https://example.org":                            false,
		"python3 a.py https://example.org":                    false,
		"git clone x":                                         false,
		"python3 ../other/a.py":                               false,
		"python3 /home/me/other.py":                           false,
		"cat ~/.ssh/id_rsa":                                   false,
		"cat \"$HOME/x\"":                                     false,
		"python3 $(curl x)":                                   false,
		"make < /etc/passwd":                                  false,
		"echo x > /dev/tcp/1.2.3.4/80":                        false,
		"sed '1e curl x' a":                                   false,
		"sed -i 's/a/id/e' a":                                 false,
		"bash -c 'curl x'":                                    false,
		"xargs curl":                                          false,
		"timeout 9 wget x":                                    false,
		"f() { curl x; }; f":                                  false,
		"python3 'unclosed":                                   false,
		"/home/me/other/bin/tool":                             false,
	} {
		if got := OwnWork(command, "/home/me/work"); got != want {
			t.Errorf("OwnWork(%q) = %v, want %v", command, got, want)
		}
	}
}

package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestReached: a line names what it changes outside the directory, and nothing that it changes inside or only reads.
func TestReached(t *testing.T) {
	const dir = "/home/me/work"
	for command, want := range map[string]struct{ effects, isolated string }{
		"echo done":                          {},
		"cat <<'EOF' > a.py\nimport os\nEOF": {},
		"sed -i 's/a/b/' src/a.py":           {},
		"cat /etc/passwd | grep root":        {},
		"python3 a.py":                       {},
		"./deploy.sh && make":                {effects: "deploy.sh"},
		"make test":                          {},
		"make -C x install":                  {effects: "make -C x install"},
		"/usr/bin/pip3 install x":            {effects: "pip3 install x"},
		"gh pr list":                         {}, "gh pr create --fill": {effects: "gh pr create --fill"},
		"git -C sub push":                       {effects: "git -C sub push"},
		"find / -name x -exec grep y {} +":      {},
		"go test ./... && git commit -m x":      {},
		"go run .":                              {},
		"git push origin main":                  {effects: "git push origin main"},
		"pip install -e . | tail":               {effects: "pip install -e ."},
		"python3 -m pip install x":              {effects: "python3 -m pip install x"},
		".venv/bin/pip install x":               {},
		"sudo apt-get install -y jq":            {effects: "apt-get install -y jq"},
		"npm ci; npm test":                      {},
		"npm i -g tsc":                          {effects: "npm i -g tsc"},
		"curl -s https://x.example":             {},
		"curl -X POST https://x.example/deploy": {effects: "curl -X POST https://x.example/deploy"},
		"docker ps":                             {},
		"docker run --rm x":                     {effects: "docker run --rm x"},
		"echo x > /tmp/y":                       {effects: "changed /tmp/y"},
		"echo x > /dev/null 2>&1":               {},
		"cd /tmp && touch y":                    {effects: "changed /tmp/y"},
		"cd sub && touch ../y":                  {},
		"cd sub && touch /tmp/y":                {effects: "changed /tmp/y"},
		"cd " + dir + " && cd /tmp && touch y":  {effects: "changed /tmp/y"},
		"cd /tmp && cd x && touch y":            {effects: "changed /tmp/x/y"},
		"sed -i s/a/b/ /etc/hosts":              {effects: "changed /etc/hosts", isolated: "changed /etc/hosts"},
		"sed -n p /etc/hosts":                   {},
		"grep -i x /etc/hosts /etc/passwd":      {},
		"cp":                                    {},
		"cp /etc/hosts a":                       {},
		"cp a ~/.bashrc":                        {effects: "changed ~/.bashrc", isolated: "changed ~/.bashrc"},
		"echo x >> $HOME/.profile":              {effects: "changed $HOME/.profile", isolated: "changed $HOME/.profile"},
		"mv /opt/a b":                           {effects: "changed /opt/a", isolated: "changed /opt/a"},
		"rm -rf " + dir + "/build":              {},
		"bash -c 'git push'":                    {effects: "git push"},
		"foo 'unclosed":                         {},
	} {
		if got := strings.Join(Reached(command, dir, false), "; "); got != want.effects {
			t.Errorf("%s: %q, want %q", command, got, want.effects)
		}
		if got := strings.Join(Reached(command, dir, true), "; "); got != want.isolated {
			t.Errorf("%s in a sandbox: %q, want %q", command, got, want.isolated)
		}
	}
	if effects := Reached("touch /tmp/x; touch /tmp/x", dir, false); !slices.Equal(effects, []string{"changed /tmp/x"}) {
		t.Errorf("%q", effects)
	}
}

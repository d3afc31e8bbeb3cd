package anamnesis

import (
	"testing"

	"anamnesis/opstream/op"
)

func TestLocalCommand(t *testing.T) {
	const dir = "/home/me/work"
	for command, want := range map[string]bool{
		"go test ./...":                        true,
		"go test -run 'TestX|TestY' ./pkg":     true,
		"cd sub && go vet ./... 2>&1 | head":   true,
		"ls -la; cat a.txt":                    true,
		"grep -rn \"func main\" . | wc -l":     true,
		"cat /home/me/work/a.txt":              true,
		"go test ./... > out.txt 2>/dev/null":  true,
		"sed -n '10,20p' a.go":                 true,
		"find . -name '*.go'":                  true,
		"python3 -m pytest -q":                 true,
		"git diff --stat":                      true,
		"cat *.md":                             true,
		"":                                     false,
		"curl https://example.org":             false,
		"go get example.org/x":                 false,
		"go run .":                             false,
		"go test -exec 'curl x' ./...":         false,
		"go vet -vettool=./x ./...":            false,
		"cat /etc/passwd":                      false,
		"cat ../other/secret":                  false,
		"cat ~/.ssh/id_rsa":                    false,
		"cat a/../../b":                        false,
		"cat /home/me/workshop/a":              false,
		"cat </etc/passwd":                     false,
		"cat < /etc/passwd":                    false,
		"echo x > /dev/tcp/1.2.3.4/80":         false,
		"ls $(curl x)":                         false,
		"ls `curl x`":                          false,
		"echo \"$(curl x)\"":                   false,
		"echo $SECRET":                         false,
		"ls & curl x":                          false,
		"cat a | sh":                           false,
		"ls; curl x":                           false,
		"ls\ncurl x":                           false,
		"ls || curl x":                         false,
		"LD_PRELOAD=./x.so ls":                 false,
		"find . -exec curl {} +":               false,
		"find . -execdir sh -c x \\;":          false,
		"rg --pre=./x foo":                     false,
		"sort --compress-program=curl a":       false,
		"sed '1e curl x' a":                    false,
		"sed -n '1e curl x' a":                 false,
		">ls curl x":                           false,
		"2>ls curl x":                          false,
		"cat <<EOF\nx\nEOF":                    false,
		"cat 'unclosed":                        false,
		"make":                                 false,
		"git fetch":                            false,
		"git -c core.pager=x log":              false,
		"python3 -c 'import x'":                false,
		"bash -c ls":                           false,
		"ls --color=always https://x.example/": false,
		"cmd":                                  false,
		"jq -n --slurpfile a=/etc/passwd . ":   false,
		"(ls)":                                 false,
		"ls # curl":                            false,
		"diff a <(curl x)":                     false,
	} {
		if got := LocalCommand(command, dir); got != want {
			t.Errorf("LocalCommand(%q) = %v, want %v", command, got, want)
		}
	}
	if LocalCommand("cat /home/me/work/a", "") {
		t.Error("an absolute path counts as inside a directory nobody named")
	}
}

func TestTaint(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(*span)
		want  bool
	}{
		{"local test", func(s *span) { s.bash("go test ./...", 1, "x_test.go:1: want 2", "") }, false},
		{"network command", func(s *span) { s.bash("curl example.org", 1, "error: not found", "") }, true},
		{"network tool", func(s *span) {
			s.call("FetchURL", `{"url":"x"}`, op.ToolReturned{Text: "error: 404", IsError: true, Network: true})
		}, true},
		{"file outside", func(s *span) {
			s.call("ReadFile", `{"path":"/etc/x"}`, op.ToolReturned{Text: "error: bad", IsError: true, Reads: []string{"/etc/x"}})
		}, true},
		{"file inside", func(s *span) {
			s.call("ReadFile", `{"path":"a"}`, op.ToolReturned{Text: "error: bad", IsError: true, Reads: []string{"a"}})
		}, false},
		{"written by a tainted call", func(s *span) {
			s.call("Download", `{}`, op.ToolReturned{Text: "ok", Network: true, Writes: []string{"page.html"}})
			s.call("ReadFile", `{"path":"page.html"}`, op.ToolReturned{Text: "error: bad", IsError: true, Reads: []string{"page.html"}})
		}, true},
		{"shown by a command", func(s *span) {
			s.call("Download", `{}`, op.ToolReturned{Text: "ok", Network: true, Writes: []string{"page.html"}})
			s.bash("cat page.html", 1, "error: bad", "")
		}, true},
		{"tainted call that the card does not rest on", func(s *span) {
			s.bash("curl example.org", 0, "fine", "")
			s.bash("go test ./...", 1, "x_test.go:1: want 2", "")
		}, false},
		{"tainted before the span", func(s *span) {
			s.call("ReadFile", `{"path":"old.html"}`, op.ToolReturned{Text: "error: bad", IsError: true, Reads: []string{"old.html"}})
		}, true},
		{"refused", func(s *span) {
			s.call("Bash", `{"command":"curl x"}`, op.ToolReturned{Text: "refused", Refused: true, IsError: true})
		}, false},
	} {
		s := newSpan(1, 1)
		tt.build(s)
		r := s.request(8000)
		r.Tainted = []string{"old.html"}
		res := pass(t, nil, r, nil)
		if got := res.Cards[0].Provenance.Tainted; got != tt.want {
			t.Errorf("%s: tainted %v, want %v", tt.name, got, tt.want)
		}
	}
}

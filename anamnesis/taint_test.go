package anamnesis

import (
	"slices"
	"testing"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
)

// TestTaint: a failed call is tainted if it showed text from outside the world.
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
			s.call("ReadFile", `{"path":"/etc/x"}`,
				op.ToolReturned{Text: "error: bad", IsError: true, Reads: []string{"/etc/x"}})
		}, true},
		{"file inside", func(s *span) {
			s.call("ReadFile", `{"path":"a"}`, op.ToolReturned{Text: "error: bad", IsError: true, Reads: []string{"a"}})
		}, false},
		{"written by a tainted call", func(s *span) {
			s.call("Download", `{}`, op.ToolReturned{Text: "ok", Network: true, Writes: []string{"page.html"}})
			s.call("ReadFile", `{"path":"page.html"}`,
				op.ToolReturned{Text: "error: bad", IsError: true, Reads: []string{"page.html"}})
		}, true},
		{"shown by a command", func(s *span) {
			s.call("Download", `{}`, op.ToolReturned{Text: "ok", Network: true, Writes: []string{"page.html"}})
			s.bash("cat page.html", 1, "error: bad", "")
		}, true},
		{"tainted call beside it", func(s *span) {
			s.bash("curl example.org", 0, "fine", "")
			s.bash("go test ./...", 1, "x_test.go:1: want 2", "")
		}, false},
		{"tainted before the span", func(s *span) {
			s.call("ReadFile", `{"path":"old.html"}`,
				op.ToolReturned{Text: "error: bad", IsError: true, Reads: []string{"old.html"}})
		}, true},
		{"refused", func(s *span) {
			s.call("Bash", `{"command":"curl x"}`, op.ToolReturned{Text: "refused", Refused: true, IsError: true})
			s.bash("go test ./...", 1, "x_test.go:1: want 2", "")
		}, false},
	} {
		s := newSpan(1, 1)
		tt.build(s)
		r := s.request(8000)
		if tt.name == "tainted before the span" {
			r.Tainted = []string{"old.html"}
		}
		recs := records(&r)
		got := slices.ContainsFunc(recs, func(rec *record) bool { return rec.failed() && rec.tainted })
		if got != tt.want {
			t.Errorf("%s: tainted %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestTaintIsolated: a command without a network taints nothing, whatever program it
// runs, unless it names a file outside the world or may read one that is tainted.
func TestTaintIsolated(t *testing.T) {
	for command, want := range map[string]bool{
		"sh x.sh": false, "make test": false, "CC=gcc ./build && ./run $X": false, "python3 - <<'EOF'\nprint(1)\nEOF": false,
		"npm run build > /tmp/log 2>&1; cat /tmp/log": false, "/usr/bin/env python3 a.py": false, "curl https://example.org": false, "cat /w/a": false,
		"cat /home/me/notes.txt": true, "python3 a.py --in=../other/x": true, "cat ~/x": true, "cat \"$HOME/x\"": true, "cat /usr/../home/me/x": true,
	} {
		if got := shell.ShowsOutside(command, "/w", true); got != want {
			t.Errorf("%q: outside %v, want %v", command, got, want)
		}
	}
	for _, isolated := range []bool{false, true} {
		call := func(command string, isolated bool) []op.Op {
			return []op.Op{
				{Body: &op.ToolCalled{Call: "c", Name: "Bash", Args: `{"command":"` + command + `"}`}},
				{Body: &op.ToolReturned{Call: "c", Name: "Bash", Isolated: isolated}},
			}
		}
		recs := records(&Request{WorldDir: "/w", Ops: call("curl example.org", isolated)})
		if recs[0].tainted == isolated {
			t.Errorf("isolated %v: tainted %v", isolated, recs[0].tainted)
		}
		recs = records(&Request{WorldDir: "/w", Tainted: []string{"page.html"}, Ops: call("sh x.sh", isolated)})
		if !recs[0].tainted {
			t.Errorf("isolated %v: a program that may read a tainted file is not tainted", isolated)
		}
	}
}

// TestTaintThroughFiles: what a command from outside left in files taints what
// later reads them, also when the command names no file.
func TestTaintThroughFiles(t *testing.T) {
	step := func(n int, command string, changed ...string) []op.Op {
		args := `{"command":"` + command + `"}`
		return []op.Op{
			{Step: n, Body: &op.ToolCalled{Call: "c", Name: "Bash", Args: args}},
			{Step: n, Body: &op.ToolReturned{Call: "c", Name: "Bash", Text: "out"}},
			{Step: n, Body: &op.WorldSaved{Commit: "c", Changed: changed, NChanged: len(changed)}},
		}
	}
	tests := []struct {
		then string
		want bool
	}{
		{"cat docs/notes.md", true},
		{"cat docs/*", true},
		{"grep -r x .", true},
		{"cd docs; cat notes.md", true},
		{"go test ./...", true},
		{"cat main.go", false},
		{"pwd", false},
	}
	for _, tt := range tests {
		ops := append(step(1, "curl x > docs/notes.md", "docs/notes.md"), step(2, tt.then)...)
		for i := range ops {
			ops[i].Seq = uint64(i + 1)
		}
		recs := records(&Request{Ops: ops, WorldDir: "/w"})
		if got := recs[len(recs)-1].tainted; got != tt.want {
			t.Errorf("%q after a download: tainted %v, want %v", tt.then, got, tt.want)
		}
		log := NewTaintLog("/w")
		for i := range ops[:3] {
			log.Add(&ops[i])
		}
		if got := log.Before(ops[2].Seq + 1); len(got) != 1 || got[0] != "docs/notes.md" {
			t.Errorf("tainted files: %q", got)
		}
		if got := log.Before(ops[2].Seq); len(got) != 0 {
			t.Errorf("tainted before anything happened: %q", got)
		}
		// The same when the download lies before the span.
		recs = records(&Request{Ops: ops[3:], WorldDir: "/w", Tainted: log.Before(ops[2].Seq + 1)})
		if got := recs[0].tainted; got != tt.want {
			t.Errorf("%q in a later span: tainted %v, want %v", tt.then, got, tt.want)
		}
	}
	many := step(1, "curl x", "a")
	many[2].Body.(*op.WorldSaved).NChanged = 500
	reads := []op.Op{
		{Step: 2, Body: &op.ToolCalled{Call: "r", Name: "ReadFile"}},
		{Step: 2, Body: &op.ToolReturned{Call: "r", Name: "ReadFile", Reads: []string{"main.go"}}},
	}
	for by, then := range map[string][]op.Op{"a command": step(2, "cat main.go"), "a file tool": reads} {
		if recs := records(&Request{Ops: append(slices.Clone(many), then...), WorldDir: "/w"}); !recs[1].tainted {
			t.Errorf("%s reads a file that may hold text from outside, and is not tainted", by)
		}
	}
	log := NewTaintLog("/w")
	for i := range many {
		many[i].Seq = uint64(i + 1)
		log.Add(&many[i])
	}
	if got := log.Before(9); !slices.Equal(got, []string{"", "a"}) {
		t.Errorf("tainted files: %q, want files without a name among them", got)
	}
}

// TestMayRead: a command may read a tainted file that it names, or that lies in a folder or in the world
// that it searches.
func TestMayRead(t *testing.T) {
	tainted := &tainter{dir: "/w", files: map[string]uint64{"docs/notes.md": 1}}
	for command, want := range map[string]bool{
		"cat docs/notes.md": true, "cat notes.md": true, "ls docs": true, "cat *.md": true, "go test ./...": true, "ls .": true, "ls /w/": true,
		"sort -R main.go": true, "grep x main.go": true, "rg x main.go": true, "git log": true,
		"cat main.go": false, "sort -n main.go": false, "recode main.go": false, "ls /w/src": false,
	} {
		if got := tainted.mayRead(command); got != want {
			t.Errorf("%q may read it: %v", command, got)
		}
	}
	if clean := newTainter("/w", nil); clean.mayRead("cat *") {
		t.Error("a command reads a tainted file where there is none")
	}
}

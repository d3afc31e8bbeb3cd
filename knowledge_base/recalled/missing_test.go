package recalled

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/knowledge_base/card"
)

// TestMissing: files that a card names are looked up; addresses, absolute paths and words are none.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "a.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &card.Card{
		Topic: "login", Issue: []string{"`pytest tests/test_login.py` fails, see https://example.com/a/b.html and /etc/x/y.conf"},
		Solution: []string{"raise the limit in src/old/b.py line 40, not in src/a.go; either/or, ../up/x.py, v1.2/3"},
	}
	if got, want := Missing(c, dir), []string{"tests/test_login.py", "src/old/b.py"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if SubjectGone(c, Missing(c, dir)) {
		t.Error("src/a.go is there")
	}
	c.Solution = []string{"raise the limit in src/old/b.py"}
	if !SubjectGone(c, Missing(c, dir)) {
		t.Error("what the solution names is gone")
	}
	c.Solution = []string{"raise the limit"}
	if SubjectGone(c, Missing(c, dir)) {
		t.Error("the solution names no file")
	}
	if line := heading(Hit{Card: c, Missing: []string{"src/old/b.py"}}); !strings.Contains(line, "names what is not here: src/old/b.py") {
		t.Errorf("heading %q", line)
	}
}

// TestMissingPrograms: programs that a card says were run are looked up; words of the shell are none.
func TestMissingPrograms(t *testing.T) {
	c := &card.Card{Topic: "build", Issue: []string{"`no-such-check` failed: x"}, Solution: []string{
		"install it", "Run before: `no-such-program --all`", "Run before: `cd web && no-such-tool`", "Run before: `export A=1`", "Run before: `./run`", "Run before: `go build`",
	}}
	if got, want := Missing(c, t.TempDir()), []string{"no-such-program", "no-such-tool"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if SubjectGone(c, Missing(c, t.TempDir())) {
		t.Error("go is there")
	}
	c.Solution = c.Solution[:3]
	if !SubjectGone(c, Missing(c, t.TempDir())) {
		t.Error("what the solution ran is not installed")
	}
}

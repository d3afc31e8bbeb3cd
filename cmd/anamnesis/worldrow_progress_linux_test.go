package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// slowDirectory takes a while to be read at first, and little room: its files
// are holes. A git index lists them.
func slowDirectory(t *testing.T) (top string) {
	t.Helper()
	top = t.TempDir()
	dir := filepath.Join(top, "w")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		path := filepath.Join(dir, fmt.Sprint("file", i))
		if err := os.WriteFile(path, []byte("1"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "-q")
	git(t, dir, "add", ".")
	for i := range 8 {
		if err := os.Truncate(filepath.Join(dir, fmt.Sprint("file", i)), 160<<20); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// TestRowSeenProgress: a first snapshot that takes long shows at a terminal how far
// it is, by a verb of world as well as at a task's beginning, and takes the line
// away at its end.
func TestRowSeenProgress(t *testing.T) {
	t.Parallel()
	heavy(t)
	const words = "turns:\n  - reply: Done.\n"
	for name, args := range map[string][]string{
		"save": {"world", "save", "--dir", "w", "--store", "s"},
		"run":  {"run", "--dir", "w", "--model", "script:words.yaml", "Go."},
	} {
		t.Run(name, func(t *testing.T) {
			top := slowDirectory(t)
			if err := os.WriteFile(filepath.Join(top, "words.yaml"), []byte(words), 0o600); err != nil {
				t.Fatal(err)
			}
			p := atTerminal(t, top, args...)
			p.sees(" of about 9 files, ")
			p.sees("\r\x1b[K")
			if code, rest := p.ends(); code != 0 ||
				strings.Contains(rest[strings.LastIndex(rest, "\r\x1b[K")+1:], "of about") {
				t.Errorf("exit code %d, then %q", code, rest)
			}
		})
	}
}

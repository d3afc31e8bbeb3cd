package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckSizes: what a remote sent is within the limits, each of which may be reached.
func TestCheckSizes(t *testing.T) {
	line := func(kind string, size int, path string) string { return fmt.Sprintf("%s %d %s\n", kind, size, path) }
	for _, tt := range []struct {
		name, list string
		tooMuch    bool
		text       string // of the error; "" if there is none
	}{
		{"nothing", "", false, ""},
		{"each kind", line("commit", 9, "") + line("tree", 9, "") + line("blob", 9, "a.md"), false, ""},
		{"the longest file", line("blob", MaxBlobBytes, "a.md"), false, ""},
		{"a longer file", line("blob", 1, "a.md") + line("blob", MaxBlobBytes+1, "my cards/a b.md"), true, "my cards/a b.md has"},
		{"the longest folder", line("tree", maxTreeBytes, "f"), false, ""},
		{"a longer folder", line("tree", maxTreeBytes+1, "f"), true, "at most"},
		{"the most bytes", strings.Repeat(line("tree", maxTreeBytes, ""), maxUnpackedBytes/maxTreeBytes), false, ""},
		{"a byte more", strings.Repeat(line("tree", maxTreeBytes, ""), maxUnpackedBytes/maxTreeBytes) + line("commit", 1, ""), true, "at most"},
		{"the most objects", strings.Repeat(line("blob", 0, ""), maxObjects), false, ""},
		{"an object more", strings.Repeat(line("blob", 0, ""), maxObjects+1), true, "at most"},
		{"a missing object", "1234 missing\n", false, "no object"},
	} {
		err := checkSizes(tt.list)
		if (err != nil) != (tt.text != "") || errors.Is(err, ErrTooMuch) != tt.tooMuch ||
			err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// branch commits a change of files on a branch from another commit, and returns its id. An empty
// text removes the file.
func branch(t *testing.T, dir, name, from string, files map[string]string) string {
	t.Helper()
	gitIn(t, dir, "checkout", "-q", "-f", "-B", name, from)
	for path, text := range files {
		path = filepath.Join(dir, path)
		err := os.WriteFile(path, []byte(text), 0o600)
		if text == "" {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-q", "-m", name)
	return strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD"))
}

// TestCompare: what taking the other side in would bring are the files that it changed since the
// base, whatever was changed here.
func TestCompare(t *testing.T) {
	r := newRepo(t)
	gitIn(t, r.dir, "commit", "-q", "--allow-empty", "-m", "begin")
	base := branch(t, r.dir, "base", "HEAD",
		map[string]string{"same.md": "same", "both.md": "base", "gone.md": "gone", "mine.md": "base"})
	theirs := branch(t, r.dir, "theirs", base, map[string]string{"both.md": "theirs", "gone.md": "", "new.md": "new"})
	ours := branch(t, r.dir, "ours", base, map[string]string{"both.md": "ours", "mine.md": "mine"})
	for _, tt := range []struct {
		name, head, theirs string
		upToDate, forward  bool
		want               string
	}{
		{"the same", base, base, true, true, ""},
		{"nothing new", ours, base, true, false, ""},
		{"nothing of ours", base, theirs, false, true, "both.md base|base|theirs, gone.md gone|gone|-, new.md -|-|new"},
		{"both", ours, theirs, false, false, "both.md base|ours|theirs, gone.md gone|gone|-, new.md -|-|new"},
	} {
		gitIn(t, r.dir, "checkout", "-q", "-f", "-B", "main", tt.head)
		m, err := r.Compare(t.Context(), tt.theirs)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var got []string
		for _, s := range m.Changed {
			var sides []string
			for _, data := range [][]byte{s.Base, s.Ours, s.Theirs} {
				text := string(data)
				if data == nil {
					text = "-"
				}
				sides = append(sides, text)
			}
			got = append(got, s.Path+" "+strings.Join(sides, "|"))
		}
		if list := strings.Join(got, ", "); m.UpToDate != tt.upToDate || m.Forward != tt.forward || list != tt.want {
			t.Errorf("%s: up to date %v, forward %v, %s; want %s", tt.name, m.UpToDate, m.Forward, list, tt.want)
		}
	}
	if err := os.Symlink("same.md", filepath.Join(r.dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	gitIn(t, r.dir, "add", "-A")
	gitIn(t, r.dir, "commit", "-q", "-m", "link")
	linked := strings.TrimSpace(gitIn(t, r.dir, "rev-parse", "HEAD"))
	gitIn(t, r.dir, "checkout", "-q", "-f", "-B", "main", base)
	if m, err := r.Compare(t.Context(), linked); err == nil ||
		!strings.Contains(err.Error(), "link.md is no plain file") {
		t.Errorf("with a link: %+v, %v", m, err)
	}
}

// TestRemoteAddress: a remote is a name in the configuration, or an address that fits on a line of one.
func TestRemoteAddress(t *testing.T) {
	r := newRepo(t)
	gitIn(t, r.dir, "config", "remote.named.url", `/a "b"\c`)
	for remote, want := range map[string]string{
		"named": `/a "b"\c`, "/there": "/there", "https://host/x": "https://host/x", "": "!", "a\nb": "!", "a\rb": "!",
	} {
		q, err := r.quarantine(t.Context(), remote, "")
		if want == "!" {
			if err == nil || !strings.Contains(err.Error(), "no address") {
				t.Errorf("%q: %v", remote, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", remote, err)
			continue
		}
		if got := gitIn(t, r.dir, "--git-dir="+q.git, "config", "remote.in.url"); got != want+"\n" {
			t.Errorf("%q: %q", remote, got)
		}
		q.remove()
	}
}

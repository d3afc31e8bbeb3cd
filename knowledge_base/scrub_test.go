package knowledgebase

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hide replaces the word hunter2.
func hide(text string) (string, []string) {
	out := strings.ReplaceAll(text, "hunter2", "[redacted:password:1]")
	if out == text {
		return text, nil
	}
	return out, []string{"[redacted:password:1]"}
}

// TestSecrets: secrets are found in files, names and the history; looking changes nothing, and removing leaves the
// history.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	mustPut(t, s, newCard("k1", "clean", "x"))
	path := mustPut(t, s, newCard("k2", "say hunter2", "hunter2 is asked for"))
	if _, err := s.FindSecrets(t.Context()); err == nil || !strings.Contains(err.Error(), "no redaction is set") {
		t.Errorf("without a redactor: %v", err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.opts.Redact = hide
	for _, done := range []bool{false, true} {
		look := s.FindSecrets
		if done {
			look = s.RemoveSecrets
		}
		found, err := look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if found.Done != done || len(found.Files) != 1 || strings.Join(found.Files[0].Kinds, " ") != "name password" ||
			strings.Contains(found.Files[0].Path, "hunter2") ||
			len(found.History) == 0 || len(found.Unread) > 0 {
			t.Errorf("%+v; done: %v", found, done)
		}
		if data, err := os.ReadFile(path); (err != nil) != done || !done && string(data) != string(before) {
			t.Errorf("done %v: the file holds %q, %v", done, data, err)
		}
	}
	c, err := s.Get("k2")
	if err != nil || c.Topic != "say [redacted:password:1]" {
		t.Errorf("%+v, %v", c, err)
	}
	found, err := s.RemoveSecrets(t.Context())
	if err != nil || found.Done || len(found.Files) > 0 || len(found.History) == 0 {
		t.Errorf("again: %+v, %v", found, err)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*", "*hunter2*")); err != nil || len(names) > 0 {
		t.Errorf("files of the name are left: %q, %v", names, err)
	}
	s.Close()
	if _, err := s.FindSecrets(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed folder: %v", err)
	}
	if _, err := s.RemoveSecrets(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed folder: %v", err)
	}
}

// TestSecretsNameTaken: a file whose name is to lose its secret does not replace another.
func TestSecretsNameTaken(t *testing.T) {
	s := openStore(t, t.TempDir())
	path := mustPut(t, s, newCard("k1", "say hunter2", "x"))
	s.opts.Redact = hide
	found, err := s.FindSecrets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), filepath.Base(found.Files[0].Path)), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	var conflict *ConflictError
	if _, err := s.RemoveSecrets(t.Context()); !errors.As(err, &conflict) ||
		!strings.Contains(err.Error(), "move it away") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

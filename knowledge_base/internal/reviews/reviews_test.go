package reviews

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/durable"
)

// readOnly is a disk that takes no more bytes.
type readOnly struct{ durable.OS }

var errFull = errors.New("no space left on device")

func (f readOnly) Open(name string, flag int) (durable.File, error) {
	file, err := f.OS.Open(name, flag)
	return fullFile{file}, err
}

type fullFile struct{ durable.File }

func (f fullFile) WriteAt(data []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(data[:len(data)/2], off)
	return n, errors.Join(err, errFull)
}

// A review that did not reach the disk is not known, and is recorded by another try.
func TestNoteFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reviews.jsonl")
	c := &card.Card{Topic: "a topic"}
	l, err := Open(readOnly{}, path, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Record(Reviewed, time.Now(), []*card.Card{c}); !errors.Is(err, errFull) || l.Knows(c.Hash()) {
		t.Errorf("on a full disk: %v, known: %t", err, l.Knows(c.Hash()))
	}
	l.fs = durable.OS{}
	if err := l.Record(Reviewed, time.Now(), []*card.Card{c}); err != nil || !l.Knows(c.Hash()) {
		t.Errorf("afterwards: %v, known: %t", err, l.Knows(c.Hash()))
	}
	again, err := Open(durable.OS{}, path, "")
	if err != nil || !again.Reviewed[c.Hash()] {
		t.Errorf("opened again: %v, %v", again, err)
	}
}

// TestOpen: lines of this version count, those of a later one are left alone, and what cannot be read is
// counted.
func TestOpen(t *testing.T) {
	hash := strings.Repeat("a", 64)
	for _, tt := range []struct {
		name, text        string
		reviewed, arrived bool
		bad               int
	}{
		{"nothing", "", false, false, 0},
		{"a review", `{"v":1,"hash":"` + hash + `"}` + "\r\n\n", true, false, 0},
		{"an arrival", `{"v":2,"hash":"` + hash + `"}`, false, true, 0},
		{"a later version", `{"v":3,"hash":"` + hash + `"}` + "\n", false, false, 0},
		{"no version", `{"hash":"` + hash + `"}` + "\n", false, false, 1},
		{"a short hash", `{"v":1,"hash":"` + hash[1:] + `"}` + "\n", false, false, 1},
		{"a long hash", `{"v":2,"hash":"a` + hash + `"}` + "\n", false, false, 1},
		{"a torn line", `{"v":1,"ha` + "\n" + `{"v":1,"hash":"` + hash + `"}` + "\n", true, false, 1},
	} {
		path := filepath.Join(t.TempDir(), "reviews.jsonl")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Open(durable.OS{}, path, "")
		if err != nil || l.Reviewed[hash] != tt.reviewed || l.Arrived[hash] != tt.arrived || l.Bad != tt.bad ||
			l.Knows(hash) != (tt.reviewed || tt.arrived) {
			t.Errorf("%s: %+v, %v", tt.name, l, err)
		}
	}
}

// TestOpenShared: lessons after which files of a folder are named count as reviewed, beside those of the list. A
// relative path, which a project could fill, names no folder.
func TestOpenShared(t *testing.T) {
	dir, hash := t.TempDir(), strings.Repeat("a", 64)
	t.Chdir(dir)
	if err := os.MkdirAll(filepath.Join("reviews", hash), 0o700); err != nil {
		t.Fatal(err)
	}
	for shared, want := range map[string]bool{filepath.Join(dir, "reviews"): true, "reviews": false, "": false, filepath.Join(dir, "none"): false} {
		l, err := Open(durable.OS{}, filepath.Join(dir, "list"), shared)
		if err != nil || l.Reviewed[hash] != want || l.Bad != 0 {
			t.Errorf("%q: %+v, %v", shared, l, err)
		}
	}
}

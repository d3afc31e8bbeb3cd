package reviews

import (
	"errors"
	"path/filepath"
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
	l, err := Open(readOnly{}, path)
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
	again, err := Open(durable.OS{}, path)
	if err != nil || !again.Reviewed[c.Hash()] {
		t.Errorf("opened again: %v, %v", again, err)
	}
}

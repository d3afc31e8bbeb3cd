package taskdir

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
)

// saidStream is a stream that a test writes to; what it seals is under its
// control.
type saidStream struct {
	t   *testing.T
	h   Home
	log *opstream.Log
}

func newSaidStream(t *testing.T) *saidStream {
	t.Helper()
	s := &saidStream{t: t, h: Home{State: t.TempDir()}}
	s.open()
	return s
}

func (s *saidStream) open() {
	s.t.Helper()
	if err := os.MkdirAll(s.h.Task("t"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	var err error
	if s.log, err = opstream.Open(s.h.Task("t"), &opstream.Options{SealAfter: -1}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.log.Close() })
}

func (s *saidStream) say(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		body, err := op.Encode(&op.UserSaid{Text: text})
		if err == nil {
			_, err = s.log.Append(s.t.Context(), opstream.Entry{Kind: string(op.KindUserSaid), Body: body})
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// follow follows it to the test's end.
func (s *saidStream) follow() *Follower {
	s.t.Helper()
	f, err := Follow(s.h, "t")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { f.Close() })
	return f
}

// heard is what a follower was given since the last restart.
type heard struct {
	texts    []string
	restarts int
}

func (h *heard) restart() { h.restarts++; h.texts = nil }

func (h *heard) visit(o op.Op) error {
	switch b := o.Body.(type) {
	case *op.UserSaid:
		h.texts = append(h.texts, b.Text)
	case *op.LogSealed:
		h.texts = append(h.texts, "(sealed)")
	}
	return nil
}

func (h *heard) want(t *testing.T, restarts int, texts ...string) {
	t.Helper()
	if !slices.Equal(h.texts, texts) || h.restarts != restarts {
		t.Fatalf("heard %q after %d restarts, want %q after %d", h.texts, h.restarts, texts, restarts)
	}
}

// TestFollower: each operation is given once, as it is written.
func TestFollower(t *testing.T) {
	s, h := newSaidStream(t), new(heard)
	s.say("a")
	f := s.follow()
	next := func() {
		t.Helper()
		if err := f.Next(h.restart, h.visit); err != nil {
			t.Fatal(err)
		}
	}
	next()
	h.want(t, 0, "a")
	next()
	h.want(t, 0, "a")
	s.say("b", "c")
	next()
	h.want(t, 0, "a", "b", "c")

	// What the visitor refuses is given again.
	s.say("d")
	refused := errors.New("refused")
	if err := f.Next(h.restart, func(op.Op) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("the visitor's error came back as %v", err)
	}
	next()
	h.want(t, 0, "a", "b", "c", "d")
}

// TestFollowerWithdrawn: where the last line is replaced by another, as after a
// crash before it was durable, everything is given anew.
func TestFollowerWithdrawn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after []string // written in the place of the line that is taken away
		want  []string
	}{
		{"by another", []string{"instead"}, []string{"a", "instead"}},
		{"by more", []string{"instead of it", "and on"}, []string{"a", "instead of it", "and on"}},
		{"by nothing", nil, []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, h := newSaidStream(t), new(heard)
			s.say("a")
			if err := s.log.Close(); err != nil { // writes the seal that is taken away
				t.Fatal(err)
			}
			f := s.follow()
			if err := f.Next(h.restart, h.visit); err != nil {
				t.Fatal(err)
			}
			h.want(t, 0, "a", "(sealed)")
			cutLastLine(t, s.h)
			if tt.after != nil {
				s.open()
				s.say(tt.after...)
			}
			if err := f.Next(h.restart, h.visit); err != nil {
				t.Fatal(err)
			}
			h.want(t, 1, tt.want...)
		})
	}
}

// segmentOf returns a stream's only segment.
func segmentOf(t *testing.T, h Home) (string, []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.Task("t"), "ops", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("segments %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return files[0], data
}

func cutLastLine(t *testing.T, h Home) {
	t.Helper()
	file, data := segmentOf(t, h)
	at := len(data) - 1
	for at > 0 && data[at-1] != '\n' {
		at--
	}
	if err := os.Truncate(file, int64(at)); err != nil {
		t.Fatal(err)
	}
}

// TestFollowerLines: lines come as they are recorded, a kind of a newer program
// with its name and its body.
func TestFollowerLines(t *testing.T) {
	s := newSaidStream(t)
	s.say("a")
	for kind, body := range map[string]string{"x.note": `{"n":1}`, string(op.KindUserSaid): `{"text":7}`} {
		if _, err := s.log.Append(t.Context(), opstream.Entry{Kind: kind, Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	f := s.follow()
	lines, err := f.Lines(1, 10)
	if err != nil || len(lines) != 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for _, l := range lines {
		if !json.Valid(l.JSON) || l.Body != nil || (l.Err != nil) != (l.Name == string(op.KindUserSaid)) {
			t.Errorf("%s: body %v, as recorded %s, error %v", l.Name, l.Body, l.JSON, l.Err)
		}
	}
	if few, err := f.Lines(0, 2); err != nil || len(few) != 2 || few[1].Seq != 2 {
		t.Errorf("two lines: %d, %v", len(few), err)
	}
	if l, err := f.Line(1); err != nil || l.Body == nil {
		t.Errorf("line 1: %+v, %v", l, err)
	}
	if _, err := f.Line(99); !errors.Is(err, ErrNoOp) {
		t.Errorf("line 99: %v", err)
	}
	if _, err := Follow(s.h, "../t"); !errors.Is(err, ErrNoTask) {
		t.Errorf("a path for a task: %v", err)
	}
}

// TestFollowerDamage: what precedes the damage is given, and the error says
// where it is, each time.
func TestFollowerDamage(t *testing.T) {
	s, h := newSaidStream(t), new(heard)
	s.say("a", "b", "c")
	if err := s.log.Close(); err != nil {
		t.Fatal(err)
	}
	file, data := segmentOf(t, s.h)
	data[len(data)/2] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f := s.follow()
	for range 2 {
		var at *opstream.CorruptError
		if err := f.Next(h.restart, h.visit); !errors.As(err, &at) || at.File != file {
			t.Fatalf("the damage is told as %v", err)
		}
	}
	if len(h.texts) == 0 || h.texts[0] != "a" || h.restarts > 1 {
		t.Errorf("heard %q after %d restarts", h.texts, h.restarts)
	}
}

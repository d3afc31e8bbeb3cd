package opstream

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestPeek: a record that is peeked at is the one that a reader of the whole stream gets, in each segment and with its blob.
func TestPeek(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, &Options{SegmentSizeBytes: 400})
	for _, text := range []string{"a", "b", strings.Repeat("long", 40_000), "d", "e", "f"} {
		mustAppend(t, l, Entry{Kind: "k", Body: []byte(`{"text":"` + text + `"}`)})
	}
	r := mustReader(t, dir, nil)
	last, _, err := r.Last()
	if err != nil || last < 6 {
		t.Fatalf("%d records: %v", last, err)
	}
	for seq := uint64(1); seq <= last; seq++ {
		want, err := r.Get(seq)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Peek(dir, seq)
		want.Durable, want.Ack = got.Durable, got.Ack // the lines behind it, which vouch for it, are not read
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("record %d: %+v, %v; want %+v", seq, got, err, want)
		}
	}
	for _, seq := range []uint64{0, last + 1} {
		if _, err := Peek(dir, seq); !errors.Is(err, ErrNoRecord) {
			t.Errorf("record %d: %v", seq, err)
		}
	}
	if _, err := Peek(t.TempDir(), 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("without a stream: %v", err)
	}

	segs, err := filepath.Glob(filepath.Join(dir, "ops", "*.jsonl"))
	if err != nil || len(segs) < 2 {
		t.Fatalf("segments %q: %v", segs, err)
	}
	data, err := os.ReadFile(segs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segs[0], bytes.Replace(data, []byte(`"text":"a"`), []byte(`"text":"A"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Peek(dir, 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a changed line: %v", err)
	}
}

//go:build unix

package stream

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream"
)

// TestCat: records are printed from a number on, of one kind or all, as text or JSON; a torn end is not an error.
func TestCat(t *testing.T) {
	dir := newStream(t)
	add(t, dir, "x.a", `{"n":1}`, "x.b", `{"n":"<2>"}`, "x.a", `{"n":3}`)
	for _, tt := range []struct {
		after  uint64
		kind   string
		asJSON bool
		want   []string // each line's beginning and end
	}{
		{0, "", false, []string{`1 | x.a step 0 tok 0 {"n":1}`, `2 | x.b step 0 tok 0 {"n":"<2>"}`, `3 | x.a step 0 tok 0 {"n":3}`, `4 | log.sealed step 0 tok 0 (not known durable yet) {}`}},
		{1, "x.a", false, []string{`3 | x.a step 0 tok 0 {"n":3}`}},
		{2, "x.b", false, nil},
		{1, "x.b", true, []string{`{"seq":2,"ts":"|","kind":"x.b","step":0,"tok":0,"durable":true,"body":{"n":"<2>"}}`}},
	} {
		var out strings.Builder
		torn, err := Cat(t.Context(), &out, dir, tt.after, tt.kind, tt.asJSON, false)
		if err != nil || torn != nil {
			t.Fatal(torn, err)
		}
		got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Len() == 0 {
			got = nil
		}
		if len(got) != len(tt.want) {
			t.Fatalf("%q, want %q", got, tt.want)
		}
		for i, want := range tt.want {
			begin, end, _ := strings.Cut(want, "|")
			if !strings.HasPrefix(got[i], begin) || !strings.HasSuffix(got[i], end) {
				t.Errorf("%q, want %q", got[i], want)
			}
		}
	}
	if _, err := Cat(t.Context(), brokenPipe{}, dir, 0, "", false, false); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("to a closed pipe: %v", err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "ops", "*"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	last := segments[0]
	info, err := os.Stat(last)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(last, info.Size()-3); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if torn, err := Cat(t.Context(), &out, dir, 0, "", false, false); err != nil || torn == nil ||
		strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%v, %v:\n%s", torn, err, &out)
	}
}

// TestPrintText: a record that is not yet durable says so, and its body cannot speak to the terminal.
func TestPrintText(t *testing.T) {
	rec := opstream.Record{Seq: 7, Kind: "x.a", Step: 2, Time: time.Unix(0, 0), Durable: true,
		Body: []byte("{\"n\":\"\x1b[2J\"}")}
	for durable, mark := range map[bool]string{true: "", false: " (not known durable yet)"} {
		rec.Durable = durable
		var out strings.Builder
		if err := Print(&out, rec, false); err != nil ||
			!strings.HasPrefix(out.String(), "7 1970-01-01T00:00:00.000000Z x.a step 2 tok 0"+mark+" {") ||
			strings.Contains(out.String(), "\x1b") {
			t.Errorf("%q, %v", &out, err)
		}
	}
}

// TestFirst: of several faults the first is reported, with the number of the others.
func TestFirst(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	if err := first([]error{a}); err != a {
		t.Error(err)
	}
	if err := first([]error{a, b, b}); !errors.Is(err, a) || err.Error() != "a (and 2 more)" {
		t.Error(err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func newStream(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// add appends kinds and bodies as the program does.
func add(t *testing.T, dir string, records ...string) {
	t.Helper()
	l, err := opstream.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := 0; i < len(records); i += 2 {
		if _, err := l.Append(t.Context(), opstream.Entry{Kind: records[i], Body: []byte(records[i+1])}); err != nil {
			t.Fatal(err)
		}
	}
}

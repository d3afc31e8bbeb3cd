//go:build unix

package stream

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"anamnesis/opstream"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// TestAppend: which lines of which kinds are appended to whose streams. What came before a bad line stays.
func TestAppend(t *testing.T) {
	const task = `{"task":"t","dir":"/w"}`
	for _, tt := range []struct {
		name, kind string
		ofTask     bool
		in         string
		want       string // bodies
		usage      bool   // the error is the user's
		err        string
	}{
		{name: "own kind", kind: "x.note", in: "{\"a\":1}\n\n  \n{\"a\":2}", want: `{"a":1} {"a":2}`},
		{name: "own kind in a task", kind: "x.note", ofTask: true, in: `{"a":1}`, want: task + ` {"a":1}`},
		{name: "known kind", kind: "user.said", in: `{"text":"go","source":"request"}`, want: `{"text":"go","source":"request"}`},
		{name: "known kind of a task", kind: "user.said", ofTask: true, in: `{"text":"go"}`, want: task, err: "kind user.said in the stream of task t; use a kind of your own, such as x.user.said"},
		{name: "seal", kind: "log.sealed", in: `{}`, err: "only the program writes that: kind log.sealed in the stream;"},
		{name: "no JSON", kind: "x.note", in: "{\"a\":1}\n{", want: `{"a":1}`, usage: true, err: "line 2 of standard input: "},
		{name: "no object", kind: "x.note", in: "\n7", usage: true, err: "line 2 of standard input: "},
		{name: "not readable as the kind", kind: "user.said", in: `{"text":7}`, usage: true, err: "line 1 of standard input: "},
		{name: "too long", kind: "x.note", in: "{}\n{\"a\":\"" + strings.Repeat("x", opstream.MaxBodyBytes) + `"}`, want: "{}", usage: true, err: "line 2 of standard input: "},
		{name: "secret", kind: "x.note", in: `{"a":"word s3cr3t-value-1234"}`, want: `{"a":"word [redacted:token:`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := newStream(t)
			if tt.ofTask {
				add(t, dir, "task.opened", task)
			}
			var durable []uint64
			a := appender(tt.kind)
			a.Durable = func(seq uint64) error { durable = append(durable, seq); return nil }
			err := a.Append(t.Context(), dir, 0, strings.NewReader(tt.in))
			if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || errors.As(err, new(*session.UsageError)) != tt.usage) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			got := bodies(t, dir)
			if !strings.HasPrefix(strings.Join(got, " "), tt.want) || tt.want == "" && len(got) > 0 {
				t.Errorf("appended %q, want %q", got, tt.want)
			}
			if tt.ofTask {
				got = got[1:]
			}
			if len(durable) != len(got) {
				t.Errorf("%d operations are said to be durable, of %d", len(durable), len(got))
			}
		})
	}
}

// TestAppendFails: an input that breaks off and a reader of the numbers that goes away end it, and what is durable stays.
func TestAppendFails(t *testing.T) {
	gone := errors.New("gone")
	dir := newStream(t)
	a := appender("x.note")
	a.Durable = func(uint64) error { return gone }
	if err := a.Append(t.Context(), dir, 0, strings.NewReader("{}\n{}\n")); !errors.Is(err, gone) {
		t.Errorf("%v, want %v", err, gone)
	}
	a = appender("x.note")
	if err := a.Append(t.Context(), dir, 0, io.MultiReader(strings.NewReader("{}\n"), iotest.ErrReader(gone))); !errors.Is(err, gone) || !strings.HasPrefix(err.Error(), "read standard input") {
		t.Errorf("%v, want %v", err, gone)
	}
	if got := bodies(t, dir); len(got) != 2 {
		t.Errorf("%q, want two", got)
	}
}

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
		torn, err := Cat(&out, dir, tt.after, tt.kind, tt.asJSON)
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
	if _, err := Cat(brokenPipe{}, dir, 0, "", false); !errors.Is(err, io.ErrClosedPipe) {
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
	if torn, err := Cat(&out, dir, 0, "", false); err != nil || torn == nil || strings.Count(out.String(), "\n") != 3 {
		t.Errorf("%v, %v:\n%s", torn, err, &out)
	}
}

// TestPrintText: a record that is not yet durable says so, and its body cannot speak to the terminal.
func TestPrintText(t *testing.T) {
	rec := opstream.Record{Seq: 7, Kind: "x.a", Step: 2, Time: time.Unix(0, 0), Durable: true, Body: []byte("{\"n\":\"\x1b[2J\"}")}
	for durable, mark := range map[bool]string{true: "", false: " (not known durable yet)"} {
		rec.Durable = durable
		var out strings.Builder
		if err := Print(&out, rec, false); err != nil || !strings.HasPrefix(out.String(), "7 1970-01-01T00:00:00.000000Z x.a step 2 tok 0"+mark+" {") || strings.Contains(out.String(), "\x1b") {
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

// appender knows one secret.
func appender(kind string) *Appender {
	return &Appender{
		Kind: kind, Recovered: func(*opstream.Recovery) {}, Durable: func(uint64) error { return nil },
		Secrets: func(taskdir.Owner) []redact.Secret {
			return []redact.Secret{{Kind: "TOKEN", Value: "s3cr3t-value-1234"}}
		},
	}
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

// bodies returns the bodies in a stream but for those of its log.
func bodies(t *testing.T, dir string) (all []string) {
	t.Helper()
	r, err := opstream.OpenReader(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for rec, err := range r.Since(0) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(rec.Kind, logKinds) {
			all = append(all, string(rec.Body))
		}
	}
	return all
}

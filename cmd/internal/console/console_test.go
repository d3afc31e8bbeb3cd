//go:build unix

package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// TestOutcomeError: how a turn ended is an exit code and, unless it is done, what to do next.
func TestOutcomeError(t *testing.T) {
	fault := func(status int, err error) error { return &model.Fault{Status: status, Err: err} }
	for name, row := range map[string]struct {
		out  runtime.Outcome
		code int
		want string
	}{
		"done":            {runtime.Outcome{Reason: "done"}, exit.Done, ""},
		"idle":            {runtime.Outcome{Reason: "idle"}, exit.Done, ""},
		"interrupted":     {runtime.Outcome{Reason: "interrupted"}, exit.Interrupted, "task t: interrupted; 'anamnesis resume t' continues it"},
		"interrupted why": {runtime.Outcome{Reason: "interrupted", Detail: "d"}, exit.Interrupted, "task t: interrupted: d; "},
		"evicted":         {runtime.Outcome{Reason: "evicted", Detail: "d"}, exit.Evicted, "task t: d; 'anamnesis resume t'"},
		"a limit":         {runtime.Outcome{Reason: "limit", Detail: "d", Limit: "max-steps"}, exit.Limit, "stopped by a limit: d; raise --max-steps, and 'anamnesis resume t'"},
		"another limit":   {runtime.Outcome{Reason: "limit", Detail: "d"}, exit.Limit, "stopped by a limit: d; 'anamnesis resume t'"},
		"asked":           {runtime.Outcome{Reason: "asked", Detail: "which\none?"}, exit.Stuck, "task t asks: which one?; 'anamnesis answer t' answers, then 'anamnesis resume t'"},
		"stuck":           {runtime.Outcome{Reason: "stuck", Detail: "d"}, exit.Stuck, "task t: stuck: d; answer with 'anamnesis resume t \"…\"'"},
		"an error":        {runtime.Outcome{Reason: "failed", Err: taskdir.ErrBusy}, exit.Refused, "; 'anamnesis resume t' continues it"},
		"no error":        {runtime.Outcome{Reason: "failed", Detail: "d"}, exit.Failed, "task t: d; 'anamnesis resume t'"},
		"no key":          {runtime.Outcome{Reason: "failed", Err: fault(0, model.ErrNoKey)}, exit.Usage, "correct the key, the address or the model's name, then 'anamnesis resume t'"},
		"no tools":        {runtime.Outcome{Reason: "failed", Err: fault(0, model.ErrNoTools)}, exit.Usage, "correct the key"},
		"a bad key":       {runtime.Outcome{Reason: "failed", Err: fault(401, errors.New("x"))}, exit.Usage, "correct the key"},
		"forbidden":       {runtime.Outcome{Reason: "failed", Err: fault(403, errors.New("x"))}, exit.Usage, "correct the key"},
		"no such model":   {runtime.Outcome{Reason: "failed", Err: fault(404, errors.New("x"))}, exit.Usage, "correct the key"},
		"an outage":       {runtime.Outcome{Reason: "failed", Err: fault(500, errors.New("x"))}, exit.Failed, "; 'anamnesis resume t'"},
	} {
		err := OutcomeError("t", row.out)
		if row.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || exit.Code(err) != row.code || !strings.Contains(err.Error(), row.want) ||
			strings.Contains(err.Error(), "correct the key") != strings.Contains(row.want, "correct the key") {
			t.Errorf("%s: %v (%d), want %q (%d)", name, err, exit.Code(err), row.want, row.code)
		}
	}
}

// TestAnnounce: what is about to run is said on standard error, unless only the answer or JSON is wanted.
func TestAnnounce(t *testing.T) {
	info := session.Info{
		Task: "t", Agent: "default", Model: "script:/x/m.yaml", EAS: 8000, EASFrom: "table", Approval: "ask",
		Dir: t.TempDir(), Banner: "a banner", Notice: "a notice", Warnings: []string{"a warning"},
	}
	for name, row := range map[string]struct {
		how    Show
		agent  string
		said   string // on standard error
		answer bool   // standard output has a line of JSON
	}{
		"text":    {Show{}, "", "a banner\ntask t · script:m.yaml · EAS 8000 (table) · approval ask\n", false},
		"default": {Show{}, "default", "a banner\ntask t · script:m.yaml · EAS", false},
		"agent":   {Show{}, "other", "a banner\ntask t · agent other · script:m.yaml", false},
		"quiet":   {Show{Quiet: true}, "other", "a banner\n", false},
		"JSON":    {Show{JSON: true}, "other", "", true},
	} {
		var out, said bytes.Buffer
		var warned []string
		info.Agent = row.agent
		c := &Console{In: strings.NewReader(""), Out: &out, Err: &said, Getenv: func(string) string { return "" }}
		c.Announce(row.how, info, func(texts ...string) { warned = append(warned, texts...) })
		if !strings.HasPrefix(said.String(), row.said) || row.how.Quiet && said.String() != row.said ||
			row.said == "" && said.Len() > 0 || (out.Len() > 0) != row.answer {
			t.Errorf("%s: said %q, printed %q", name, said.String(), out.String())
		}
		if list := strings.Join(warned, "|"); !strings.HasPrefix(list, "a warning|a notice") {
			t.Errorf("%s: warned %q", name, list)
		}
	}
}

// TestStandardInput: what is read is a pipe or a file, and no device; the same file is known behind two outputs.
func TestStandardInput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fmt.Fprint(w, "more")
	w.Close()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(name string) *os.File {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	one, two, null, dir := open(name), open(name), open(os.DevNull), open(t.TempDir())
	for in, want := range map[io.Reader]bool{r: true, one: true, null: false, dir: false, strings.NewReader("x"): false} {
		if got := piped(in); got != want {
			t.Errorf("%v is read: %v", in, got)
		}
	}
	if !sameFile(one, two) || sameFile(one, null) || sameFile(one, io.Discard) || sameFile(io.Discard, one) ||
		sameFile(io.Discard, io.Discard) {
		t.Error("files are not told apart")
	}
	for _, row := range []struct {
		in          io.Reader
		words, want string
		need        Need
	}{
		{null, "words", "words", Optional}, {null, "", "", Required}, {strings.NewReader("in"), "-", "in", Optional}, {r, "words", "words\n\n<stdin>\nmore\n</stdin>", Optional}, {one, "words", "words", Optional},
	} {
		c := &Console{In: row.in, Err: io.Discard, Out: io.Discard}
		if got, err := c.Request(t.Context(), row.words, row.need); got != row.want || err != nil {
			t.Errorf("%q: %q, %v, want %q", row.words, got, err, row.want)
		}
	}
}

// TestAsk: an answer is a line; without a terminal nobody is asked, and what was not asked is not agreed to.
func TestAsk(t *testing.T) {
	var said bytes.Buffer
	c := &Console{
		In: strings.NewReader("  one \ntwo\nlast"), Out: &said, Err: &said,
		Getenv: func(string) string { return "xterm" },
	}
	for _, want := range []string{"one", "two", "last", ""} {
		if got, err := c.Ask(t.Context(), "which? "); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if said.String() != strings.Repeat("which? ", 4) {
		t.Errorf("asked %q", said.String())
	}
	silent, end := io.Pipe()
	defer end.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Console{In: silent, Err: io.Discard}).Ask(ended, ""); exit.Code(err) != exit.Interrupted {
		t.Errorf("interrupted: %v", err)
	}
	if c.Drawable() || c.Keys() != nil || c.Width() != 120 {
		t.Error("there is a terminal")
	}
	if ok, err := c.Offer(t.Context(), "so?"); ok || err != nil {
		t.Errorf("offered without a terminal: %v, %v", ok, err)
	}
	if err := c.Confirm(t.Context(), "this", "so?", true); err != nil {
		t.Error(err)
	}
	if err := c.Confirm(t.Context(), "this", "so?", false); exit.Code(err) != exit.Refused ||
		!strings.Contains(err.Error(), "--yes approves what is shown\nthis: not approved") {
		t.Errorf("unasked: %v", err)
	}
	for answer, want := range map[string]bool{"y": true, "Y": true, "YES": true, "": false, "n": false, "yess": false} {
		if Yes(answer) != want {
			t.Errorf("%q is yes: %v", answer, !want)
		}
	}
}

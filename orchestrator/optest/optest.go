// Package optest helps tests that fold operations: it reads scripts of them and
// checks the chat that came of them. It does not know the fold.
package optest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// Parse reads a script of operations: a line each, `kind step {body}`.
func Parse(t *testing.T, text string) []op.Op {
	t.Helper()
	var out []op.Op
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, rest, _ := strings.Cut(line, " ")
		step, body, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(step)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		b, err := op.Decode(op.Kind(kind), []byte(body))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, op.Op{Seq: uint64(len(out) + 1), Step: n, Tok: len(op.ProjectedText(b)), Body: b})
	}
	return out
}

// Fold folds operations into a new state.
func Fold[S any](t *testing.T, fold func(*S, op.Op) error, ops []op.Op) *S {
	t.Helper()
	s := new(S)
	for _, o := range ops {
		if err := fold(s, o); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Update tells tests to rewrite their golden files.
var Update = flag.Bool("update", false, "rewrite golden files")

// Golden compares a text with a file; -update rewrites the file.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *Update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("%s differs; -update rewrites it if this is right:\n%s", path, got)
	}
}

// Render shows a chat as the goldens hold it.
func Render(ms []model.Message) []byte {
	var b bytes.Buffer
	for _, m := range ms {
		fmt.Fprintf(&b, "--- %s", m.Role)
		if m.CallID != "" {
			fmt.Fprintf(&b, " of %s", m.CallID)
		}
		fmt.Fprintf(&b, "\n%s\n", m.Text)
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "call %s: %s %s\n", c.ID, c.Name, c.Args)
		}
	}
	return b.Bytes()
}

// CheckChat reports what makes a chat invalid for a provider.
func CheckChat(ms []model.Message) error {
	for i := 0; i < len(ms); i++ {
		m := ms[i]
		if i > 0 && m.Role == model.RoleUser && ms[i-1].Role == model.RoleUser {
			return fmt.Errorf("messages %d and %d are both the user's", i-1, i)
		}
		if m.Role == model.RoleTool {
			return fmt.Errorf("message %d is a result without a call", i)
		}
		open := make(map[string]bool)
		for _, c := range m.Calls {
			open[c.ID] = true
		}
		for ; len(open) > 0; delete(open, ms[i].CallID) {
			i++
			if i >= len(ms) || ms[i].Role != model.RoleTool {
				return fmt.Errorf("a call of message %q has no result", m.Text)
			}
			if !open[ms[i].CallID] {
				return fmt.Errorf("message %d answers %q, which is not open", i, ms[i].CallID)
			}
		}
	}
	return nil
}

const (
	Opened = "task.opened 0 {\"task\":\"t\"}\nuser.said 0 {\"text\":\"go\",\"source\":\"request\"}\n"
	Begun  = Opened + "cards.recalled 0 {\"why\":\"start\"}\nworld.saved 0 {\"commit\":\"c0\"}\n"
	Called = Begun +
		`model.asked 1 {"last_seq":4}` + "\nmodel.replied 1 " + `{"calls":[{"id":"a","name":"Bash","args":"{}"},` +
		`{"id":"b","name":"Bash","args":"{}"}],"finish":"tool_calls"}` + "\n"
	Results = Called + "tool.returned 1 {\"call\":\"a\"}\ntool.returned 1 {\"call\":\"b\"}\n"
	Stepped = Results + "world.saved 1 {\"parent\":0,\"commit\":\"c1\"}\n"
)

// JumpBack is one whole jump back to step 0 from the step before.
func JumpBack(step string) string {
	return "jump.requested " + step + " {\"to\":0,\"by\":\"agent\"}\njump.intended " + step +
		" {\"to\":0,\"backward\":true,\"by\":\"agent\"}\njump.done " + step + " {\"to\":0,\"backward\":true}\n"
}

package builtin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/jobs"
	"anamnesis/orchestrator/feature/mail"
	"anamnesis/orchestrator/feature/research"
	"anamnesis/orchestrator/feature/subagent"
	"anamnesis/orchestrator/feature/todo"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain()
	os.Exit(m.Run())
}

// optIn are all the tools that have to be asked for.
func optIn(t *testing.T) []tool.Tool {
	t.Helper()
	tools, err := builtin.OptIn("SendDMail", "dmail", "SendDMail")
	if err != nil || len(tools) != 2 {
		t.Fatalf("OptIn = %d tools, %v", len(tools), err)
	}
	return tools
}

// TestOptIn: nobody has these without asking, and what does not exist is named.
func TestOptIn(t *testing.T) {
	for _, own := range builtin.Tools(builtin.Options{}) {
		for _, more := range optIn(t) {
			if own.Spec().Name == more.Spec().Name {
				t.Errorf("everybody has %s", own.Spec().Name)
			}
		}
	}
	if _, err := builtin.OptIn("dmail", "Dmail"); err == nil || !strings.Contains(err.Error(), `"Dmail"`) ||
		!strings.Contains(err.Error(), "SendDMail, dmail") {
		t.Errorf("OptIn = %v", err)
	}
}

// TestSchemas compares what the model is shown with files in testdata; set
// UPDATE_GOLDEN to write them anew.
func TestSchemas(t *testing.T) {
	schemas(t, builtin.Tools(builtin.Options{}), "tools.json")
	schemas(t, optIn(t), "tools_optin.json")
}

func schemas(t *testing.T, tools []tool.Tool, file string) {
	t.Helper()
	r, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	type shown struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		ReadOnly    bool   `json:"read_only"`
		Edits       bool   `json:"edits"`
		Schema      any    `json:"schema"`
	}
	var all []shown
	for _, s := range r.Specs() {
		all = append(all, shown{s.Name, s.Description, s.ReadOnly, s.Edits, s.Schema})
		for name, p := range s.Schema.Properties {
			if p.Description == "" {
				t.Errorf("%s: parameter %s has no description", s.Name, name)
			}
		}
	}
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(all); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", file)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the tools' schemas changed; if that is meant, run with UPDATE_GOLDEN=1:\n%s", got.Bytes())
	}
}

// echo is a timeline that says what it was asked.
type echo struct{}

func (echo) CheckJump(int) error { return nil }
func (echo) Recall(_ context.Context, m tool.Memory) (string, error) {
	return fmt.Sprintf("recalled %q %d", m.Query, m.Op), nil
}

func (echo) CheckMail(m op.Mail) (*op.JumpRequested, error) {
	return &op.JumpRequested{To: m.Checkpoint, Mail: &m}, nil
}

func (echo) MarkCheckpoint(_ context.Context, call string) (int, error) { return strconv.Atoi(call) }

func (echo) Cite(ops []uint64) (uint64, error) { return ops[0], nil }

// background are commands that print their names and end.
func background(t *testing.T, n int) *jobs.Jobs {
	js := jobs.New(gatetest.Place(t, op.TaskOpened{}).Ledger)
	t.Cleanup(func() { _ = js.Close() })
	for i := range n {
		id := fmt.Sprintf("bg_%d", i+1)
		got, err := js.Begin(t.Context(), tool.JobStart{Call: "c", Command: id,
			Run: func(_ context.Context, out io.Writer, started func(op.ToolStarted) error) (tool.JobEnd, error) {
				_, err := io.WriteString(out, "output of "+id)
				return tool.JobEnd{}, errors.Join(err, started(op.ToolStarted{}))
			}})
		if err != nil || got != id {
			t.Fatalf("began %s as %s: %v", id, got, err)
		}
		if err := js.Wait(t.Context(), id, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	return js
}

func noTodos() []op.Todo { return nil }

// workers are subagents that say what they were asked.
type workers struct{}

func (workers) Begin(_ context.Context, s subagent.Start) (subagent.Working, error) {
	return worker(s), nil
}

type worker subagent.Start

func (w worker) Work(context.Context) (subagent.End, error) {
	return subagent.End{Text: w.Agent + " did " + w.Prompt}, nil
}

// second answers every question with its second choice.
func second(context.Context, string) (string, bool, error) { return "2", true, nil }

// sample returns the arguments of one call that must succeed, what its text
// must contain, and a prefix all its files share.
func sample(name string, i int) (args map[string]any, want string) {
	file := fmt.Sprintf("file%d.txt", i)
	switch name {
	case "Bash":
		return map[string]any{"command": fmt.Sprintf("echo number %d", i)}, fmt.Sprintf("number %d\n[exit 0]", i)
	case "TaskList":
		return map[string]any{}, "bg_1 ended with exit code 0"
	case "TaskOutput":
		return map[string]any{"task_id": fmt.Sprintf("bg_%d", i+1)}, fmt.Sprintf(
			"output of bg_%d\n[bg_%d ended", i+1, i+1)
	case "TaskStop":
		return map[string]any{"task_id": fmt.Sprintf("bg_%d", i+1)}, fmt.Sprintf("bg_%d ended with exit code 0", i+1)
	case "ReadFile":
		return map[string]any{"path": file}, fmt.Sprintf("     1\tunique%d\n", i)
	case "WriteFile":
		return map[string]any{"path": fmt.Sprintf("new%d", i), "content": strings.Repeat("x", i)}, fmt.Sprintf(
			"created new%d; bytes_written: %d;", i, i)
	case "StrReplaceFile":
		return map[string]any{"path": fmt.Sprintf("edit%d.txt", i), "old": fmt.Sprintf("unique%d", i),
			"new": "y"}, fmt.Sprintf("edited edit%d.txt; edits: 1; replacements: 1", i)
	case "PatchFile":
		return map[string]any{
			"patch": fmt.Sprintf("*** Begin Patch\n*** Update File: patch%d.txt\n-unique%d\n+z\n*** End Patch", i, i),
		}, fmt.Sprintf("patched patch%d.txt; hunks: 1", i)
	case "Glob":
		return map[string]any{"pattern": file}, file
	case "Grep":
		return map[string]any{"pattern": fmt.Sprintf("^unique%d$", i), "glob": "file*"}, file
	case "AskUser":
		return map[string]any{"question": "q", "choices": []string{"a", fmt.Sprint(i)}}, fmt.Sprintf("chose 2: %d", i)
	case "FetchURL":
		return map[string]any{"url": fmt.Sprintf("http://127.0.0.1/%d", i)}, "127.0.0.1 is not a public address"
	case "Think":
		return map[string]any{"thought": fmt.Sprint(i)}, "Noted."
	case "SetTodoList":
		return map[string]any{"todos": []map[string]string{{"title": fmt.Sprint(i), "status": "in_progress"}}},
			fmt.Sprintf("0 of 1 done; now: %d", i)
	case "Task":
		return map[string]any{"subagent": "explore", "description": "d",
			"prompt": fmt.Sprintf("part %d", i)}, fmt.Sprintf("explore did part %d", i)
	case "jump_to_step":
		return map[string]any{"step_id": i, "reason": "r"}, fmt.Sprintf("Jump to step %d scheduled", i)
	case "SendDMail":
		return map[string]any{"checkpoint_id": i, "message": "m"}, "the D-Mail was not sent"
	case "dmail":
		return map[string]any{"action": "checkpoint"}, fmt.Sprintf(
			"Checkpoint %d created: it is the end of this step. checkpoint_count: %d.", i, i+1)
	case "investigate":
		return map[string]any{
				"subject": fmt.Sprintf("npm:x%d", i), "question": "q", "findings": fmt.Sprintf("found %d", i),
				"cites": []int{i + 1},
			},
			fmt.Sprintf("Recorded for npm:x%d: found %d", i, i)
	case "recall":
		return map[string]any{"op": i + 1}, fmt.Sprintf(`recalled "" %d`, i+1)
	}
	return nil, ""
}

// conform runs one tool many times at once with different arguments; a tool
// that keeps state between calls mixes them up.
func conform(t *testing.T, r *tool.Registry, env tool.Env, name string) {
	t.Helper()
	const calls = 12
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			args, want := sample(name, i)
			data, err := json.Marshal(args)
			if err != nil {
				t.Error(err)
				return
			}
			tl, canonical, err := r.Validate(op.Call{ID: fmt.Sprint(i), Name: name, Args: string(data)})
			if err != nil {
				t.Errorf("%s %s: %v", name, data, err)
				return
			}
			own := env
			own.Call = fmt.Sprint(i)
			res, err := tl.Call(t.Context(), &own, canonical)
			if err != nil || res.IsError != (name == "FetchURL") || !strings.Contains(res.Text, want) {
				t.Errorf("%s %s: %+v, %v; want %q", name, data, res, err, want)
			}
			if res.Jump != nil && (res.Jump.To != i || res.Jump.Call != own.Call) {
				t.Errorf("%s %s: jump %+v", name, data, res.Jump)
			}
		})
	}
	wg.Wait()
}

// bound returns every tool, those that know their task bound to one.
func bound(t *testing.T) *tool.Registry {
	t.Helper()
	r, err := tool.NewRegistry(
		append(append(builtin.Tools(builtin.Options{}), subagent.Tool(agents(), nil)), optIn(t)...)...)
	if err != nil {
		t.Fatal(err)
	}
	own := []tool.Tool{research.Tool(echo{}), subagent.Tool(agents(), workers{}), todo.Tool(noTodos)}
	return r.Bind(slices.Concat(mail.Tools(echo{}), jobs.Tools(background(t, 12)), own)...)
}

func TestConformance(t *testing.T) {
	tools := append(append(builtin.Tools(builtin.Options{}), subagent.Tool(agents(), nil)), optIn(t)...)
	r := bound(t)
	dir := t.TempDir()
	for i := range 12 {
		for _, kind := range []string{"file", "edit", "patch"} {
			name := filepath.Join(dir, fmt.Sprintf("%s%d.txt", kind, i))
			if err := os.WriteFile(name, fmt.Appendf(nil, "unique%d\n", i), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	env := tool.Env{Root: root, Dir: dir, Ask: second, Timeline: echo{}}
	var wg sync.WaitGroup
	for _, tl := range tools {
		name := tl.Spec().Name
		if args, _ := sample(name, 0); args == nil {
			t.Errorf("%s has no sample call", name)
			continue
		}
		if !reflect.DeepEqual(tl.Spec(), tl.Spec()) {
			t.Errorf("%s: two calls of Spec differ", name)
		}
		wg.Go(func() { conform(t, r, env, name) })
	}
	wg.Wait()
}

// A call under a context that has ended is the program's failure, not the
// model's, and touches nothing.
func TestEndedContext(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file1.txt"), []byte("unique1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := bound(t)
	for _, spec := range r.Specs() {
		args, _ := sample(spec.Name, 1)
		given, _ := json.Marshal(args)
		tl, data, err := r.Validate(op.Call{Name: spec.Name, Args: string(given)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tl.Call(ctx, &tool.Env{Call: "c", Root: root, Dir: dir, Ask: second, Timeline: echo{}}, data)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: err = %v, want the context's", spec.Name, err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("files: %v", entries)
	}
}

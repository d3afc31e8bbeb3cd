package hook

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/workspace"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain()
	os.Exit(m.Run())
}

// runner returns the runner of one event's hooks, each a shell command.
func runner(t *testing.T, opened op.TaskOpened, event string, commands ...string) (*Runner, *workspace.Place) {
	t.Helper()
	opened.Task = "t"
	p := gatetest.Open(t, t.TempDir(), opened)
	var hooks []Hook
	for _, c := range commands {
		hooks = append(hooks, Hook{Event: event, Command: c, Timeout: time.Minute, match: regexp.MustCompile("")})
	}
	return New(hooks, p, func() approval.Mode { return approval.ModeAsk }), p
}

// ran shows what is recorded of hooks.
func ran(bodies []op.Body) string {
	var all []string
	for _, b := range bodies {
		h := b.(*op.HookRan)
		text := h.Decision + "|" + h.Said + "|" + h.Notice
		if h.Failed {
			text += "|failed"
		}
		if h.GoOn {
			text += "|on"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// TestCheck: what the exit codes and the JSON of hooks decide about a call.
func TestCheck(t *testing.T) {
	specific := func(fields string) string { return `echo '{"hookSpecificOutput":{` + fields + `}}'` }
	allow, ask, deny := specific(`"permissionDecision":"allow"`), specific(`"permissionDecision":"ask"`),
		specific(`"permissionDecision":"deny","permissionDecisionReason":"no"`)
	for _, tt := range []struct {
		name     string
		commands []string
		refused  string
		allows   bool
		asks     bool
		reminder string
		recorded string
	}{
		{"silent", []string{"true"}, "", false, false, "", ""},
		{"in words", []string{"echo fine"}, "", false, false, "", ""},
		{"exit 2", []string{"echo never >&2; exit 2"}, "never", false, false, "", "block|never|"},
		{"exit 2, on stdout", []string{"echo never; exit 2"}, "never", false, false, "", "block|never|"},
		{"exit 2 without a word", []string{"exit 2"}, "it gave no reason", false, false, "", "block|it gave no reason|"},
		{"exit 1", []string{"echo broken >&2; exit 1"}, "", false, false, "", "|exit 1: broken||failed"},
		{"allow", []string{allow}, "", true, false, "", "allow||"},
		{"ask", []string{ask}, "", false, true, "", "ask||"},
		{"deny", []string{deny}, "no", false, false, "", "block|no|"},
		{"allow and ask", []string{allow, ask}, "", false, true, "", "allow||; ask||"},
		{"ask and deny", []string{ask, deny}, "no", false, false, "", "ask||; block|no|"},
		{"deny twice", []string{deny, "echo never >&2; exit 2"}, "no\nnever", false, false, "", "block|no|; block|never|"},
		{"another decision", []string{specific(`"permissionDecision":"defer"`)}, "", false, false, "", ""},
		{"block", []string{`echo '{"decision":"block","reason":"no"}'`}, "no", false, false, "", "block|no|"},
		{"approve, as of old", []string{`echo '{"decision":"approve"}'`}, "", false, false, "", ""},
		{"do not go on", []string{`echo '{"continue":false,"stopReason":"enough"}'`}, "enough", false, false, "", "block|enough|"},
		{"go on", []string{`echo '{"continue":true}'`}, "", false, false, "", ""},
		{"no JSON", []string{"echo '{'"}, "", false, false, "", "|its JSON cannot be read: unexpected end of JSON input||failed"},
		{"context", []string{specific(`"additionalContext":"mind"`)}, "", false, false, "\n\n[hook] mind", "|mind|"},
		{"two contexts", []string{specific(`"additionalContext":"mind"`), specific(`"additionalContext":"gap"`)}, "", false, false, "\n\n[hook] mind\ngap", "|mind|; |gap|"},
		{"too much", []string{"head -c 200000 /dev/zero | tr '\\0' x"}, "", false, false, "", "|what it printed is ignored: it is more than 50000 characters||failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := runner(t, op.TaskOpened{}, preToolUse, tt.commands...)
			c := &gate.Call{Call: op.Call{ID: "c", Name: "Bash", Args: `{"command":"ls"}`}, Env: new(tool.Env)}
			bodies, err := r.Check(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			refused := ""
			for _, b := range bodies {
				if res, ok := b.(*op.ToolReturned); ok {
					refused = strings.TrimPrefix(res.Text, "Refused by a hook: ")
				}
			}
			if refused != tt.refused || c.HookAllows != tt.allows || c.HookAsks != tt.asks ||
				c.Reminder != tt.reminder {
				t.Errorf("refused %q, allows %v, asks %v, reminder %q", refused, c.HookAllows, c.HookAsks, c.Reminder)
			}
			if got := ran(c.Record); tt.refused == "" && got != tt.recorded {
				t.Errorf("recorded %q, want %q", got, tt.recorded)
			}
		})
	}
}

// TestAfter: which hooks see a result, and what they add to it.
func TestAfter(t *testing.T) {
	for _, tt := range []struct {
		event, command string
		isError        bool
		ran            bool
		text           string
	}{
		{postToolUse, "echo wrong >&2; exit 2", false, true, "out\n\n[hook] wrong"},
		{postToolUse, "true", false, true, "out\n"},
		{postToolUse, "echo wrong >&2; exit 2", true, false, "out\n"},
		{postFailure, "echo wrong >&2; exit 2", true, true, "out\n\n[hook] wrong"},
		{postFailure, "echo wrong >&2; exit 2", false, false, "out\n"},
		{postFailure, `grep -q '"error":"out' && exit 2`, true, true, "out\n\n[hook] it gave no reason"},
		{postToolUse, `grep -q '"stdout":"out' && exit 2`, false, true, "out\n\n[hook] it gave no reason"},
		{preToolUse, "exit 2", false, false, "out\n"},
	} {
		r, _ := runner(t, op.TaskOpened{}, tt.event, tt.command)
		res := &tool.Result{Text: "out\n", IsError: tt.isError}
		got := r.After(t.Context(), &gate.Call{Call: op.Call{ID: "c", Name: "Bash", Args: "{}"}}, res)
		if got != tt.ran || res.Text != tt.text {
			t.Errorf("%s %s, error %v: ran %v, %q", tt.event, tt.command, tt.isError, got, res.Text)
		}
	}
}

// TestPrompt: hooks forbid a request or add to it, also in plain words.
func TestPrompt(t *testing.T) {
	for _, tt := range []struct{ text, command, blocked, recorded string }{
		{"go", "exit 2", "it gave no reason", ""},
		{"go", "echo The branch is main.", "", "|The branch is main.|[hook] The branch is main."},
		{"go", `grep -q '"prompt":"go"' && echo seen`, "", "|seen|[hook] seen"},
		{"go", "true", "", ""},
		{"", "exit 2", "", ""},
	} {
		r, _ := runner(t, op.TaskOpened{}, promptSubmit, tt.command)
		bodies, err := r.Prompt(t.Context(), tt.text)
		if errors.Is(err, ErrBlocked) != (tt.blocked != "") ||
			err != nil && !strings.HasSuffix(err.Error(), tt.blocked) || ran(bodies) != tt.recorded {
			t.Errorf("%q, %s: %q, %v", tt.text, tt.command, ran(bodies), err)
		}
	}
}

// TestStop: a hook keeps the turn going a bounded number of times in a row.
func TestStop(t *testing.T) {
	const on = "block|more|[hook] Go on, a hook says: more|on"
	r, p := runner(t, op.TaskOpened{}, stop,
		`test -e stay || exit 0; grep -q '"stop_hook_active":true' && touch active; echo more >&2; exit 2`)
	stay := func(want bool) {
		t.Helper()
		err := os.RemoveAll(filepath.Join(p.Dir, "stay"))
		if want {
			err = os.WriteFile(filepath.Join(p.Dir, "stay"), nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stay(true)
	for i := range 2 {
		if got := ran(r.Stop(t.Context(), "done")); got != on {
			t.Errorf("%d: %q", i, got)
		}
		if _, err := os.Stat(filepath.Join(p.Dir, "active")); (err == nil) != (i > 0) {
			t.Errorf("%d: told that a hook kept it going: %v", i, err)
		}
	}
	stay(false)
	if got := ran(r.Stop(t.Context(), "done")); got != "" {
		t.Errorf("an end without a word: %q", got)
	}
	stay(true)
	for i := range maxBlocks {
		if got := ran(r.Stop(t.Context(), "done")); got != on {
			t.Errorf("%d: %q", i, got)
		}
	}
	if got, want := ran(r.Stop(t.Context(), "done")), fmt.Sprintf("|blocked the end of the turn %d times in a row; the turn ends||failed", maxBlocks); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := ran(r.Stop(t.Context(), "done")); got != on {
		t.Errorf("in the next turn: %q", got)
	}
}

// TestStopOfSubagent: the end of a subagent is an event of its own.
func TestStopOfSubagent(t *testing.T) {
	for _, event := range []string{stop, subagentStop} {
		r, p := runner(t, op.TaskOpened{}, event, "exit 2")
		p.State().Opened.Parent = &op.Parent{Task: "p", Agent: "explore"}
		if got := ran(r.Stop(t.Context(), "done")); (got == "") != (event == stop) {
			t.Errorf("%s: %q", event, got)
		}
	}
}

// TestNotify: hooks about a question run beside the task and decide nothing.
func TestNotify(t *testing.T) {
	r, p := runner(t, op.TaskOpened{}, notification,
		`grep -q '"message":"May I?"' && touch seen; echo shown >&2; exit 2`)
	last := p.State().Last
	r.Notify("permission_prompt", "May I?")
	r.Close()
	if _, err := os.Stat(filepath.Join(p.Dir, "seen")); err != nil {
		t.Error(err)
	}
	if err := p.ApplyQueued(); err != nil {
		t.Fatal(err)
	}
	if o, err := p.Op(last + 1); err != nil || ran([]op.Body{o.Body}) != "|exit 2: shown||failed" {
		t.Errorf("recorded %+v, %v", o.Body, err)
	}
	none, p := runner(t, op.TaskOpened{}, stop, "touch seen")
	none.Notify("permission_prompt", "May I?")
	none.Close()
	if _, err := os.Stat(filepath.Join(p.Dir, "seen")); err == nil {
		t.Error("a hook of another event ran")
	}
}

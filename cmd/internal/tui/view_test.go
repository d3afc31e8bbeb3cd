//go:build unix

package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	"anamnesis/cmd/internal/tui/editor"
	"anamnesis/cmd/internal/tui/feed"
	"anamnesis/cmd/internal/tui/frame"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
)

// idle returns a screen of some columns at which nothing happens, of a task or none.
func idle(t *testing.T, width int, task string) *screen {
	m := &screen{
		ctx: t.Context(), feed: feed.New(), scrollback: scrollback{width: width}, st: new(state.State),
		edit: editor.New(&editor.History{}, "", nil), now: time.Unix(1000, 0),
	}
	m.tall = 24
	m.o.Service = new(session.Service)
	m.info.Task, m.info.Model, m.info.Approval = task, "m", "ask"
	return m
}

// TestStanding: the last line says what model and mode there are, how full the context is, and where the task stands;
// on a narrow screen it leaves out what does not change.
func TestStanding(t *testing.T) {
	planned := false
	left := optest.Stepped + optest.JumpBack("2") + "world.saved 2 {\"parent\":0,\"commit\":\"c2\"}\n"
	for name, row := range map[string]struct {
		width  int
		task   string
		change func(m *screen)
		want   string
	}{
		"no task":        {80, "", func(*screen) {}, "/help|@file|!command|Ctrl-C twice leaves"},
		"no task, mode":  {80, "", func(m *screen) { m.o.Request.Plan = &planned }, "ask|/help|@file|!command|Ctrl-C twice leaves"},
		"no task, plan":  {80, "", func(m *screen) { m.o.Request.Plan, m.st.Grants.Plan = &planned, true }, "plan mode (Shift-Tab)|/help|@file|!command|Ctrl-C twice leaves"},
		"begun":          {80, "t", func(*screen) {}, "m|ask|step 0"},
		"changed mode":   {80, "t", func(m *screen) { m.st.Grants.Mode, m.st.Opened.Approval = "auto", "ask" }, "m|auto|step 0"},
		"unchanged mode": {80, "t", func(m *screen) { m.st.Grants.Mode, m.st.Opened.Approval = "edits", "edits" }, "m|ask|step 0"},
		"a span":         {80, "t", func(m *screen) { m.st.Model.EAS, m.st.Model.Window = 8000, 128000 }, "m|ask|0 of 8.0k EAS (window 128k)|step 0"},
		"narrow":         {60, "t", func(m *screen) { m.st.Model.EAS, m.st.Model.Window = 8000, 128000 }, "ask|0 of 8.0k EAS|step 0"},
		"not narrow":     {61, "t", func(m *screen) { m.st.Model.EAS = 8000 }, "m|ask|0 of 8.0k EAS|step 0"},
		"cost":           {80, "t", func(m *screen) { m.st.Totals.Usage.USD = 1.5 }, "m|ask|$1.50|step 0"},
		"jumps": {80, "t", func(m *screen) {
			m.st = optest.Fold(t, state.Fold, optest.Parse(t, optest.Stepped))
			m.st.Totals.Jumps = 2
		}, "m|ask|step 1|2 jumps"},
		"a branch":        {80, "t", func(m *screen) { m.st = optest.Fold(t, state.Fold, optest.Parse(t, left)) }, "m|ask|step 2, branch from 0|1 jump"},
		"jobs":            {80, "t", func(m *screen) { m.st.Jobs.Running, m.s = make([]state.RunningJob, 1), new(session.Session) }, "m|ask|step 0|1 job (/jobs)"},
		"jobs of nothing": {80, "t", func(m *screen) { m.st.Jobs.Running = make([]state.RunningJob, 1) }, "m|ask|step 0"},
	} {
		m := idle(t, row.width, row.task)
		row.change(m)
		if got := strings.Join(m.standing(), "|"); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// TestSummary: the end of a turn counts what this turn added.
func TestSummary(t *testing.T) {
	for name, row := range map[string]struct {
		change func(m *screen)
		steps  stepsMsg
		want   string
	}{
		"nothing":      {func(*screen) {}, stepsMsg{}, ""},
		"files":        {func(*screen) {}, stepsMsg{changed: 1, names: []string{"a"}}, "── 1 file changed: a"},
		"tests":        {func(m *screen) { m.turn.tests = []string{"2 passed", "2 passed"} }, stepsMsg{}, "── 2 passed"},
		"time":         {func(*screen) {}, stepsMsg{took: 1400 * time.Millisecond}, "── 1s"},
		"less time":    {func(*screen) {}, stepsMsg{took: 499 * time.Millisecond}, ""},
		"a second":     {func(*screen) {}, stepsMsg{took: 500 * time.Millisecond}, "── 1s"},
		"cards":        {func(m *screen) { m.st.Totals.CardsWritten, m.turn.cards = 3, 1 }, stepsMsg{}, "── 2 cards written"},
		"no new cards": {func(m *screen) { m.st.Totals.CardsWritten, m.turn.cards = 3, 3 }, stepsMsg{}, ""},
		"cost":         {func(m *screen) { m.st.Totals.Usage.USD, m.turn.usage.USD = 1.5, 0.5 }, stepsMsg{}, "── $1.00"},
		"no new cost":  {func(m *screen) { m.st.Totals.Usage.USD, m.turn.usage.USD = 1.5, 1.5 }, stepsMsg{}, ""},
		"tokens":       {func(m *screen) { m.st.Totals.Usage.Prompt, m.turn.usage.Prompt = 500, 100 }, stepsMsg{}, "── 400 tokens"},
	} {
		m := idle(t, 80, "t")
		row.change(m)
		m.summary(row.steps)
		if got := strings.TrimSpace(paint.Strip(strings.Join(m.out, "\n"))); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// TestOutcome: a turn that is not done says why, and a fault that was printed is not repeated.
func TestOutcome(t *testing.T) {
	for name, row := range map[string]struct {
		out    runtime.Outcome
		change func(m *screen)
		want   string
	}{
		"done":        {runtime.Outcome{Reason: "done"}, func(*screen) {}, ""},
		"idle":        {runtime.Outcome{Reason: "idle"}, func(*screen) {}, ""},
		"interrupted": {runtime.Outcome{Reason: "interrupted"}, func(*screen) {}, "interrupted · everything so far is recorded; type to continue"},
		"leaving":     {runtime.Outcome{Reason: "interrupted", Detail: "d"}, func(m *screen) { m.leaving = true }, "interrupted: d · everything so far is recorded"},
		"run":         {runtime.Outcome{Reason: "interrupted"}, func(m *screen) { m.o.Once = true }, "interrupted · everything so far is recorded"},
		"a limit":     {runtime.Outcome{Reason: "limit", Detail: "d", Limit: "max-steps"}, func(*screen) {}, "limit: d; raise --max-steps to continue"},
		"stuck":       {runtime.Outcome{Reason: "stuck", Detail: "d"}, func(*screen) {}, "stuck: d"},
		"no detail":   {runtime.Outcome{Reason: "stuck"}, func(*screen) {}, "stuck"},
		"a fault":     {runtime.Outcome{Reason: "failed", Detail: "d", Err: &model.Fault{Err: errNamed("e")}}, func(*screen) {}, "failed: " + (&model.Fault{Err: errNamed("e")}).Error()},
		"printed":     {runtime.Outcome{Reason: "failed", Detail: "d"}, func(m *screen) { m.turn.fault = "d" }, "failed"},
	} {
		m := idle(t, 80, "t")
		row.change(m)
		m.outcome(turnMsg{out: row.out})
		if got := paint.Strip(strings.Join(m.out, "\n")); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// errNamed is an error of a text.
type errNamed string

func (e errNamed) Error() string { return string(e) }

// TestWorking: what runs is shown with its time, and what the model does while nothing runs.
func TestWorking(t *testing.T) {
	for name, row := range map[string]struct {
		change func(m *screen)
		want   string
	}{
		"nothing":  {func(*screen) {}, ""},
		"thinking": {func(m *screen) { m.running, m.begun = true, m.now.Add(-3*time.Second) }, "thinking  3 s · Esc interrupts"},
		"opening":  {func(m *screen) { m.opening, m.begun, m.activity = true, m.now, "jumping" }, "jumping  0 s · Esc interrupts"},
		"thoughts": {func(m *screen) { m.running, m.begun, m.reply.thinking = true, m.now, "so\nit is" }, "thinking: so it is  0 s · Esc interrupts"},
		"an outage": {func(m *screen) {
			m.running, m.begun, m.st.Outage = true, m.now,
				&state.Outage{Wait: op.Wait{Until: m.now.Add(9 * time.Second)}}
		}, "asking again in 9s, at "},
		"over": {func(m *screen) {
			m.running, m.begun, m.st.Outage = true, m.now, &state.Outage{Wait: op.Wait{Until: m.now}}
		}, "thinking  0 s"},
	} {
		m := idle(t, 120, "t")
		row.change(m)
		got := paint.Strip(strings.Join(m.working(), "\n"))
		if !strings.Contains(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// TestLastView: a screen that is left draws nothing once no turn runs and no task is being opened.
func TestLastView(t *testing.T) {
	for _, tt := range []struct{ leaving, running, opening, drawn bool }{
		{true, false, false, false}, {true, true, false, true}, {true, false, true, true}, {false, false, false, true},
	} {
		m := idle(t, 80, "t")
		m.frame, m.leaving, m.running, m.opening = new(frame.Frame), tt.leaving, tt.running, tt.opening
		if drawn := m.View().Content != ""; drawn != tt.drawn {
			t.Errorf("%+v: drawn %v", tt, drawn)
		}
	}
}

// TestPlanEdited: an edited plan replaces the proposed one and is shown; otherwise the plan is proposed again as it was.
func TestPlanEdited(t *testing.T) {
	for _, tt := range []struct {
		name      string
		msg       planEditedMsg
		plan, out string
	}{
		{"edited", planEditedMsg{text: "2. write b\n"}, "2. write b", "the plan as you edited it:\n2. write b"},
		{"unchanged", planEditedMsg{text: "1. write a"}, "1. write a\n", ""},
		{"emptied", planEditedMsg{text: " \n"}, "1. write a\n", ""},
		{"not edited", planEditedMsg{text: "2. write b\n", err: errors.New("no editor")}, "1. write a\n", "no editor"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := idle(t, 80, "t")
			m.plan = "1. write a\n"
			m.planEdited(tt.msg)
			if out := paint.Strip(strings.Join(m.out, "\n")); m.plan != tt.plan || !strings.Contains(out, tt.out) || tt.out == "" && out != "" {
				t.Errorf("the plan is %q, printed %q", m.plan, out)
			}
			if m.pick == nil || !strings.HasPrefix(m.pick.title, "Carry this plan out?") {
				t.Errorf("the plan is not proposed: %+v", m.pick)
			}
		})
	}
	m := idle(t, 80, "t")
	if m.planEdited(planEditedMsg{}); m.pick != nil {
		t.Errorf("without a plan: %+v", m.pick)
	}
	for _, once := range []bool{false, true} { // the last row continues to plan, and leaves a screen for one request
		m.plan, m.o.Once = "1. write a", once
		m.planEdited(planEditedMsg{})
		if m.pick.then(m, m.pick.rows[len(m.pick.rows)-1]); m.leaving != once {
			t.Errorf("for one request %v: leaving %v", once, m.leaving)
		}
	}
}

// TestNextMode: Shift-Tab goes through ask, edits and plan, and auto only where it was chosen before.
func TestNextMode(t *testing.T) {
	for name, row := range map[string]struct {
		chosen string
		want   string
	}{"never auto": {"ask", "edits plan ask edits"}, "auto": {"auto", "plan ask edits auto"}} {
		m := idle(t, 80, "")
		m.o.Request.Default.Approval, m.info.Approval = row.chosen, row.chosen
		var got []string
		for range 4 {
			m.nextMode()
			if m.planning() {
				got = append(got, "plan")
			} else {
				got = append(got, m.approval())
			}
		}
		if s := strings.Join(got, " "); s != row.want {
			t.Errorf("%s: %s, want %s", name, s, row.want)
		}
	}
	m := idle(t, 80, "")
	m.opening = true
	if m.nextMode(); m.moded || m.planning() {
		t.Error("the mode changed while the task was being opened")
	}
}

// TestCommand: a command may be named by a beginning that no other has; one that changes the task waits for the answer.
func TestCommand(t *testing.T) {
	for line, want := range map[string]string{
		"/unt": "the agent alone says when it is done", "/un": "/un could be /undo, /until", "/undoo": "did you mean /undo?", "/zzzzzzz": "/zzzzzzz is not a command · Enter again",
		"/jump x": "/jump x: want the number of a step", "/jump 1 x": "want the number of a step", "/jump 1 --git x": "want the number of a step", "/jump 1": "want the number of a step",
		"/undo": "the task is at its beginning",
	} {
		m := idle(t, 100, "")
		m.command(line)
		if got := paint.Strip(strings.Join(append(m.out, m.hint), "\n")); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for line, waits := range map[string]bool{"/compact": true, "/new": true, "/model x": true, "/until x": true, "/model": false, "/until": false, "/cost": false} {
		m := idle(t, 100, "")
		m.running = true
		m.command(line)
		if got := strings.Contains(paint.Strip(strings.Join(m.out, "\n")), "waits until the agent has answered"); got != waits || waits != (m.edit.Text() == line) {
			t.Errorf("%s waits: %v", line, got)
		}
	}
}

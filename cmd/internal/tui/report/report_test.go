//go:build unix

package report

import (
	"strings"
	"testing"

	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/session"
)

// service returns the service of a home that holds a task t with some operations.
func service(t *testing.T, bodies ...op.Body) *session.Service {
	t.Helper()
	root := t.TempDir()
	svc, err := session.New(session.Options{Getenv: func(name string) string {
		return map[string]string{"ANAMNESIS_HOME": root, "HOME": root}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	place := gatetest.Open(t, root, op.TaskOpened{Task: "t", Model: "small"})
	for _, b := range bodies { // one by one: each is of the step that it is recorded in
		if err := place.Record(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := place.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	return svc
}

func reply(reasoning string, calls ...op.Call) op.Body {
	return &op.ModelReplied{Reasoning: reasoning, Calls: calls}
}

// ran returns a command and what it printed.
func ran(id, command, text string) []op.Body {
	exit := 0
	args := `{"command":"` + command + `"}`
	return []op.Body{reply("", op.Call{ID: id, Name: "Bash", Args: args}),
		&op.ToolCalled{Call: id, Name: "Bash", Args: args},
		&op.ToolReturned{Call: id, Name: "Bash", Text: text, Exit: &exit}}
}

// ask ends a step and begins the next.
func ask() []op.Body { return []op.Body{&op.WorldSaved{}, &op.ModelAsked{}} }

func concat(parts ...[]op.Body) (all []op.Body) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// TestOut: the output of a step's commands, of the last one, and which steps ran any.
func TestOut(t *testing.T) {
	read := []op.Body{reply("", op.Call{ID: "r", Name: "ReadFile", Args: `{"path":"a"}`}),
		&op.ToolCalled{Call: "r", Name: "ReadFile", Args: `{"path":"a"}`},
		&op.ToolReturned{Call: "r", Name: "ReadFile", Text: "read"}}
	svc := service(t, concat(ran("a", "make", "built"), ask(), ran("b", "make test", "passed"), ask(), read, ask(),
		ran("d", "ls", "a"), ask())...)
	for step, want := range map[int]string{
		-1: "$ ls\na\nexit 0", 1: "$ make\nbuilt\nexit 0", 2: "$ make test\npassed\nexit 0", 4: "$ ls\na\nexit 0",
	} {
		if got, err := Out(svc, "t", step); err != nil || paint.Strip(got) != want {
			t.Errorf("step %d: %q, %v; want %q", step, paint.Strip(got), err, want)
		}
	}
	for _, step := range []int{0, 3, 9} {
		if got, err := Out(svc, "t", step); err == nil ||
			!strings.HasSuffix(err.Error(), "the step ran no command; these steps did: 1-2, 4") {
			t.Errorf("step %d: %q, %v", step, got, err)
		}
	}
	for _, step := range []int{-1, 1} {
		if got, err := Out(service(t, read...), "t", step); err != nil || paint.Strip(got) != "no command has run yet" {
			t.Errorf("without a command: %q, %v", got, err)
		}
	}
}

// TestOutTogether: the outputs of one step's commands are shown together, a long one shortened.
func TestOutTogether(t *testing.T) {
	var long strings.Builder
	for range maxHeadLines + maxTailLines + 2 {
		long.WriteString("x\n")
	}
	a, b := ran("a", "make", long.String()), ran("b", "ls", "y")
	calls := append(a[0].(*op.ModelReplied).Calls, b[0].(*op.ModelReplied).Calls...)
	svc := service(t, concat([]op.Body{reply("", calls...)}, a[1:], b[1:])...)
	got, err := Out(svc, "t", 1)
	if text := paint.Strip(got); err != nil ||
		!strings.Contains(text, "… 2 lines, 703 B in all: 'anamnesis show 7' at a shell\n") ||
		!strings.HasSuffix(text, "\n\n$ ls\ny\nexit 0") {
		t.Errorf("%v\n%s", err, text)
	}
	if got, err := Out(svc, "t", -1); err != nil || paint.Strip(got) != "$ ls\ny\nexit 0" {
		t.Errorf("the last command: %q, %v", paint.Strip(got), err)
	}
}

// TestThoughts: those of a step, or of all steps since the last request; steering is none.
func TestThoughts(t *testing.T) {
	svc := service(t,
		concat([]op.Body{reply("old")}, []op.Body{&op.UserSaid{Text: "next", Source: op.SourceRequest}}, ask(),
			[]op.Body{reply(" first\n")}, []op.Body{&op.UserSaid{Text: "mind", Source: op.SourceSteer}}, ask(),
			[]op.Body{reply("")}, ask(), []op.Body{reply("second")})...)
	for step, want := range map[int]string{
		-1: "∴ step 2\nfirst\n\n∴ step 4\nsecond", 1: "∴ step 1\nold", 2: "∴ step 2\nfirst",
		3: "the model sent no thoughts", 9: "the model sent no thoughts",
	} {
		if got, err := Thoughts(svc, "t", step); err != nil || paint.Strip(got) != want {
			t.Errorf("step %d: %q, %v; want %q", step, paint.Strip(got), err, want)
		}
	}
}

// TestCards: what was recalled, and what was written or would have been.
func TestCards(t *testing.T) {
	if got, err := Cards(service(t), "t"); err != nil ||
		paint.Strip(got) != "no card was recalled or written in this task" {
		t.Errorf("%q, %v", got, err)
	}
	svc := service(t, &op.CardsRecalled{Cards: []op.CardRef{{ID: "c1", Topic: "go cents"}}},
		&op.PassDone{Cards: []string{"c2"}}, &op.RepairsFound{Cards: []string{"c3"}})
	got, err := Cards(svc, "t")
	want := "recalled c1  go cents\nwritten  c2\nwritten  c3\n'anamnesis kb show ID'"
	if err != nil || !strings.HasPrefix(paint.Strip(got), want) {
		t.Errorf("%q, %v", paint.Strip(got), err)
	}
}

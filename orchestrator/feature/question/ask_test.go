package question_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
)

// answers is what a user who is present does: nil is nobody.
type answers func(context.Context) (op.Answer, bool)

// TestAsk: who answers a question, whether it is asked at all, and what becomes of it without an answer.
func TestAsk(t *testing.T) {
	yes := func(context.Context) (op.Answer, bool) { return op.Answer{Allow: true}, true }
	silent := func(context.Context) (op.Answer, bool) { return op.Answer{}, false }
	for _, tt := range []struct {
		name     string
		when     question.When
		earlier  string // of an earlier process: "asked", "answered"
		ended    error  // the cause that ended the context before
		here     answers
		meantime bool // another process answers
		ok       bool
		err      error
		asked    int    // questions recorded
		from     string // of the answer
		parked   bool   // as recorded
	}{
		{name: "the user who is present", when: question.Refuse, here: yes, ok: true, asked: 1, from: question.FromTerminal},
		{name: "the user goes without an answer", when: question.Wait, here: silent, asked: 1},
		{name: "nobody, and the program ends", when: question.Stop, err: question.ErrOpen, asked: 1, parked: true},
		{name: "nobody, and calls are refused", when: question.Refuse, err: question.ErrOpen, asked: 1, parked: true},
		{name: "another process", when: question.Wait, meantime: true, ok: true, asked: 1, from: question.FromPage, parked: true},
		{name: "asked before, answered here", when: question.Stop, earlier: "asked", here: yes, ok: true, asked: 1, from: question.FromTerminal},
		{name: "asked before, nobody here", when: question.Stop, earlier: "asked", err: question.ErrOpen, asked: 1},
		{name: "answered before", when: question.Stop, earlier: "answered", here: func(context.Context) (op.Answer, bool) {
			t.Error("the user is asked what is answered")
			return op.Answer{}, false
		}, ok: true, asked: 1, from: question.FromPage},
		{name: "answered before, nobody here", when: question.Stop, earlier: "answered", ok: true, asked: 1, from: question.FromPage},
		{name: "the call is over", when: question.Wait, ended: context.Canceled, here: yes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			place := gatetest.Place(t, op.TaskOpened{})
			q := op.QuestionAsked{About: op.AboutCall, Call: "c", Name: "Bash"}
			if tt.earlier != "" {
				record(t, place, &q)
			}
			if tt.earlier == "answered" {
				answer(t, place)
			}
			busy := func(string) bool {
				if tt.meantime {
					answer(t, place)
				}
				return true
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tt.ended != nil {
				cancel(tt.ended)
			}
			asked := q
			a, ok, err := question.New(place.Ledger, nil, tt.when, busy).Ask(ctx, &asked, nil, tt.here)
			if ok != tt.ok || !errors.Is(err, tt.err) || a.Allow != tt.ok {
				t.Errorf("%+v, %v, %v; want %v, %v", a, ok, err, tt.ok, tt.err)
			}
			qs := place.Questions()
			if len(qs) != tt.asked {
				t.Fatalf("%d questions are recorded, want %d", len(qs), tt.asked)
			}
			from := ""
			if len(qs) > 0 && qs[0].Answer != nil {
				from = qs[0].Answer.From
			}
			if from != tt.from || len(qs) > 0 && qs[0].Parked != tt.parked {
				t.Errorf("recorded: answer from %q, parked %v; want %q, %v", from, qs[0].Parked, tt.from, tt.parked)
			}
		})
	}
}

// TestAskAgain: a question that was acted on is a new one when it is asked again; one that stayed open is not.
func TestAskAgain(t *testing.T) {
	place := gatetest.Place(t, op.TaskOpened{})
	d := question.New(place.Ledger, nil, question.Stop, func(string) bool { return true })
	yes := func(context.Context) (op.Answer, bool) { return op.Answer{Allow: true}, true }
	for i, tt := range []struct {
		here  answers
		asked int
	}{{nil, 1}, {nil, 1}, {yes, 1}, {yes, 2}, {nil, 3}} {
		_, ok, err := d.Ask(t.Context(), &op.QuestionAsked{About: op.AboutCall, Call: "c"}, nil, tt.here)
		if ok != (tt.here != nil) || err != nil && !errors.Is(err, question.ErrOpen) {
			t.Errorf("%d: %v, %v", i, ok, err)
		}
		if n := len(place.Questions()); n != tt.asked {
			t.Errorf("%d: %d questions are recorded, want %d", i, n, tt.asked)
		}
	}
}

// TestAskEnds: a program that is asked to stop leaves its question open; a user who interrupts does not wait for an
// answer. One that cannot be recorded is an error.
func TestAskEnds(t *testing.T) {
	for cause, want := range map[error]error{notice.ErrTerminated: question.ErrOpen, notice.ErrLost: question.ErrOpen, context.Canceled: nil} {
		for _, present := range []bool{false, true} {
			place := gatetest.Place(t, op.TaskOpened{})
			ctx, cancel := context.WithCancelCause(t.Context())
			var here answers
			if present {
				here = func(ctx context.Context) (op.Answer, bool) {
					cancel(cause)
					<-ctx.Done()
					return op.Answer{Allow: true}, true
				}
			}
			busy := func(string) bool { cancel(cause); return true }
			_, ok, err := question.New(place.Ledger, nil, question.Wait, busy).Ask(ctx,
				&op.QuestionAsked{About: op.AboutCall}, nil, here)
			if ok || !errors.Is(err, want) || err != nil && want == nil {
				t.Errorf("%v, present %v: %v, %v; want %v", cause, present, ok, err, want)
			}
		}
	}
	place := gatetest.Place(t, op.TaskOpened{})
	if err := place.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	d := question.New(place.Ledger, nil, question.Wait, func(string) bool { return true })
	if _, ok, err := d.Ask(t.Context(), new(op.QuestionAsked), nil, nil); ok || err == nil {
		t.Errorf("a question that is not recorded: %v, %v", ok, err)
	}
}

// TestAskParks: while a question waits for a user who is not present, other tasks may work in the directory, unless
// something of this task works there. After the answer the task holds it again.
func TestAskParks(t *testing.T) {
	for _, busy := range []bool{false, true} {
		place := gatetest.Place(t, op.TaskOpened{})
		hold := func(task string) (*taskdir.LiveDir, error) {
			return taskdir.HoldDir(place.Ledger.Home, place.Dir, task, "")
		}
		own, err := hold("t")
		if err != nil {
			t.Fatal(err)
		}
		defer own.Release()
		answered := make(chan error)
		ask := func(string) bool {
			go func() {
				defer close(answered)
				// Parked or not, the answer comes once the question waits: nothing of the task receives before.
				place.Answered <- struct{}{}
				place.Answered <- struct{}{}
				other, err := hold("o")
				if (err == nil) == busy {
					t.Errorf("busy %v: another task holds the directory: %v", busy, err)
				}
				if err == nil {
					err = other.Release()
				} else if errors.Is(err, taskdir.ErrBusy) {
					err = nil
				}
				answer(t, place)
				answered <- err
			}()
			return busy
		}
		_, ok, err := question.New(place.Ledger, own, question.Wait, ask).Ask(t.Context(),
			&op.QuestionAsked{About: op.AboutCall}, nil, nil)
		if !ok || err != nil {
			t.Errorf("busy %v: %v, %v", busy, ok, err)
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if _, err := hold("o"); !errors.Is(err, taskdir.ErrBusy) {
			t.Errorf("busy %v: the directory is free after the answer: %v", busy, err)
		}
	}
}

func record(t *testing.T, place *workspace.Place, q *op.QuestionAsked) {
	t.Helper()
	if err := place.Record(t.Context(), q); err != nil {
		t.Fatal(err)
	}
}

// answer answers the question of a page.
func answer(t *testing.T, place *workspace.Place) {
	t.Helper()
	qs := place.Questions()
	if len(qs) == 0 {
		t.Error("no question is recorded")
		return
	}
	a := op.QuestionAnswered{Asked: qs[len(qs)-1].Seq, Answer: op.Answer{Allow: true}, From: question.FromPage}
	if err := place.Ledger.Answer(t.Context(), &a); err != nil {
		t.Error(err)
	}
}

// TestAsks: a task can have an answer without a user who is present if it waits, or ends and leaves the question open.
func TestAsks(t *testing.T) {
	for when, want := range map[question.When]bool{question.Wait: true, question.Stop: true, question.Refuse: false} {
		if got := question.New(nil, nil, when, nil).Asks(); got != want {
			t.Errorf("%s: %v", when, got)
		}
	}
}

// TestToldAgain: a question that an earlier process asked is shown once more where nobody is present to be asked.
func TestToldAgain(t *testing.T) {
	yes := func(context.Context) (op.Answer, bool) { return op.Answer{Allow: true}, true }
	for _, tt := range []struct {
		name     string
		here     answers
		answered bool
		told     string // of the questions: parked or not
	}{
		{"nobody is here", nil, false, "asked parked"},
		{"it is answered", nil, true, "asked"},
		{"the user is here", yes, false, "asked"},
	} {
		var told []string
		place := gatetest.OpenTold(t, t.TempDir(), func(o op.Op) {
			if q, ok := o.Body.(*op.QuestionAsked); ok && q.Parked {
				told = append(told, "parked")
			} else if ok {
				told = append(told, "asked")
			}
		}, op.TaskOpened{Task: "t"}, &op.ModelReplied{})
		q := op.QuestionAsked{About: op.AboutCall, Call: "c", Name: "Bash"}
		record(t, place, &q)
		if tt.answered {
			answer(t, place)
		}
		desk := question.New(place.Ledger, nil, question.Stop, func(string) bool { return true })
		if _, _, err := desk.Ask(t.Context(), &q, nil, tt.here); err != nil && !errors.Is(err, question.ErrOpen) {
			t.Fatal(err)
		}
		if got := strings.Join(told, " "); got != tt.told {
			t.Errorf("%s: told %q, want %q", tt.name, got, tt.told)
		}
	}
}

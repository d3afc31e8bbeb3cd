package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"anamnesis/anamnesis/quote"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/review"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// Figures are what the demo says of one task.
type Figures struct {
	ID              string   `json:"id"`
	Dir             string   `json:"dir"`
	Steps           int      `json:"steps"`
	Ops             uint64   `json:"ops"`
	Jumps           int      `json:"jumps"`
	Blocks          int      `json:"blocks"`
	CardsWritten    int      `json:"cards_written"`
	CardsRecalled   int      `json:"cards_recalled"`
	TestsPass       bool     `json:"tests_pass"`
	EAS             int      `json:"eas"`
	DiscardedTokens int      `json:"discarded_tokens"` // what passes replaced
	BlockTokens     int      `json:"block_tokens"`     // what replaces it
	ModelCalls      int      `json:"model_calls"`      // of the loop
	Usage           op.Usage `json:"usage"`            // as the recording has it: an estimate
}

func (f Figures) String() string {
	s := fmt.Sprintf("%s: %s, %s, %s, %s, %s written, %d recalled", f.ID, quote.Number(f.Steps, "step"),
		quote.Number(int(f.Ops), "op"),
		quote.Number(f.ModelCalls, "model call"), quote.Number(f.Jumps, "jump"),
		quote.Number(f.CardsWritten, "card"), f.CardsRecalled)
	if f.Blocks > 0 {
		s += fmt.Sprintf(",\n  %d discarded tokens became a block of %d (EAS %d)",
			f.DiscardedTokens, f.BlockTokens, f.EAS)
	}
	if f.TestsPass {
		return s + ", tests pass"
	}
	return s + ", TESTS FAIL"
}

// Player plays the demo for a front end.
type Player struct {
	Service *session.Service // of the home that the demo has to itself
	Say     io.Writer
	Width   int
	// Client makes the front end's side of a task, which shows it by a printer.
	Client func(show func(session.Info) view.Printer) session.Client
	Warn   func(texts ...string)
	// Ended turns the end of a turn into an error.
	Ended func(task string, out runtime.Outcome) error
}

// Play lays the demo out below dir and plays its tasks, one after the other, and calls
// after when one has ended.
func (p *Player) Play(ctx context.Context, dir string, after func(Figures) error) error {
	fmt.Fprintln(p.Say, "This is a recording: the model's words come from a script. The files, the commands, the jump, the pass and the card are real.")
	tasks, err := Lay(dir)
	if err != nil {
		return err
	}
	for i, t := range tasks {
		if i > 0 {
			if err := p.review(ctx, tasks[i-1].ID); err != nil {
				return err
			}
		}
		fmt.Fprintf(p.Say, "\n%s: %s\n", t.ID, Request)
		if err := p.run(ctx, t); err != nil {
			return err
		}
		figures, err := p.figures(ctx, t)
		if err != nil {
			return err
		}
		if err := after(figures); err != nil {
			return err
		}
	}
	return nil
}

// run runs one task to its end.
func (p *Player) run(ctx context.Context, d Task) error {
	var show view.Printer
	client := p.Client(func(i session.Info) view.Printer {
		show = view.NewText(nil, p.Say, p.Width, i.Dir, view.NoOutputs)
		return show
	})
	t, err := p.Service.Start(ctx, session.Request{
		Settings: session.Settings{Model: "script:" + d.Script, Approval: "auto"},
		Dir:      d.Dir, Text: Request, ID: d.ID, EAS: EAS, Writable: goCache(ctx),
	}, client)
	if err != nil {
		return err
	}
	p.Warn(t.Opening...)
	out, err := t.Run(ctx)
	if err == nil {
		show.End(out, t.State(), "")
		err = p.Ended(d.ID, out)
	}
	return session.JoinClose(err, t.Close())
}

// review approves the cards that the task left, as a user would with 'kb
// approve': a card in a model's words is not shown to other tasks before.
func (p *Player) review(ctx context.Context, task string) error {
	d := review.Decision{Act: review.Approve}
	err := p.Service.Ops(task, 0, func(o op.Op) error {
		if b, ok := o.Body.(*op.PassDone); ok {
			d.IDs = append(d.IDs, b.Cards...)
		}
		return nil
	})
	if err != nil || len(d.IDs) == 0 {
		return err
	}
	store, err := p.Service.Cards("", knowledgebase.Options{})
	if err != nil {
		return err
	}
	_, err = review.Decide(ctx, store, d)
	fmt.Fprintf(p.Say, "\na user reads the card and approves it: anamnesis kb approve %s\n", strings.Join(d.IDs, " "))
	return errors.Join(err, store.Close())
}

// goCache is where Go keeps what it has built: the demo's few tests are not worth
// building the standard library again in a private cache.
func goCache(ctx context.Context) []string {
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return nil
	}
	dir, err := session.RealDir(strings.TrimSpace(string(out)))
	if err != nil {
		return nil
	}
	return []string{dir}
}

// figures reads what a task came to, and runs the module's own tests.
func (p *Player) figures(ctx context.Context, d Task) (Figures, error) {
	fig := Figures{ID: d.ID, Dir: d.Dir}
	st := new(state.State)
	err := p.Service.Ops(d.ID, 0, func(o op.Op) error {
		if b, ok := o.Body.(*op.PassDone); ok && b.Block != "" {
			fig.DiscardedTokens += b.RangeTokens
			fig.BlockTokens += o.Tok
		}
		return state.Fold(st, o)
	})
	if err != nil {
		return fig, err
	}
	fig.Steps, fig.Ops, fig.Jumps, fig.Blocks = st.Steps.CountEnded(), st.Last, st.Totals.Jumps, st.Totals.Blocks
	fig.CardsWritten, fig.CardsRecalled = st.Totals.CardsWritten, st.Totals.CardsRecalled
	fig.EAS, fig.ModelCalls, fig.Usage = st.Opened.EAS, st.Totals.Replies, st.Totals.Usage
	check := exec.CommandContext(ctx, "go", "test", "./...")
	check.Dir = d.Dir
	fig.TestsPass = check.Run() == nil
	return fig, nil
}

// Home is the home that a demo below dir has to itself.
func Home(dir, user string) taskdir.Home {
	home := filepath.Join(dir, "home")
	return taskdir.Home{User: user, State: home, Data: home, Config: home}
}

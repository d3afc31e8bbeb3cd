//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/demo"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// demoTask is what the demo says of one task.
type demoTask struct {
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
	DiscardedTokens int      `json:"discarded_tokens"` // what passes stand for
	BlockTokens     int      `json:"block_tokens"`     // what stands in its place
	ModelCalls      int      `json:"model_calls"`      // of the loop
	Usage           op.Usage `json:"usage"`            // as the recording gives it: an estimate
}

// demoResult is what `demo --json` prints.
type demoResult struct {
	Recording bool       `json:"recording"` // the model's words are recorded
	Dir       string     `json:"dir"`
	Kept      bool       `json:"kept"`
	Tasks     []demoTask `json:"tasks"`
}

func (a *app) demoCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See a task jump back without forgetting, and the next one profit",
		Long: "Run two tasks on two small Go modules with the same trap. The model's words are a recording; the files,\n" +
			"commands, jump, pass, card and recall are the program at work. It needs the Go toolchain and no network.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), dir) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "keep everything below this directory, which must be new or empty")
	a.jsonFlag(cmd, "one JSON object instead")
	return cmd
}

func (a *app) demo(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return usageError("the demo runs real Go tests: install Go and put it in PATH")
	}
	kept := dir != ""
	dir, err := demoDir(dir)
	if err != nil {
		return err
	}
	if !kept {
		defer os.RemoveAll(dir)
	}
	say := a.stdout
	if a.json {
		say = io.Discard
	}
	fmt.Fprintln(say, "This is a recording: the model's words come from a script. The files, the commands, the jump, the pass and the card are real.")
	tasks, err := demo.Lay(dir)
	if err != nil {
		return err
	}
	state := filepath.Join(dir, "home")
	h := taskdir.Home{User: a.getenv("HOME"), State: state, Data: state, Config: state}
	res := demoResult{Recording: true, Dir: dir, Kept: kept}
	var drawn []func(int) string
	for i, t := range tasks {
		if i > 0 {
			if err := a.demoReview(ctx, h, tasks[i-1].ID, say); err != nil {
				return err
			}
		}
		fmt.Fprintf(say, "\n%s: %s\n", t.ID, demo.Request)
		figures, err := a.demoTask(ctx, h, t, say)
		if err != nil {
			return fmt.Errorf("%w%s", err, where(kept, dir))
		}
		res.Tasks = append(res.Tasks, figures)
		tl, err := readTimeline(h, t.ID)
		if err != nil {
			return err
		}
		drawn = append(drawn, func(width int) string { return view.Draw(tl, width) })
	}
	if a.json {
		return errors.Join(a.printJSON(res), failing(res))
	}
	out := a.styled()
	fmt.Fprintf(out, "\n%s\n\n", view.SideBySide(a.width(), drawn...))
	for _, t := range res.Tasks {
		fmt.Fprintln(out, t)
	}
	if kept {
		fmt.Fprintf(out, "\neverything is in %s; look around with ANAMNESIS_HOME=%s anamnesis timeline demo_one\n", dir, state)
	}
	return failing(res)
}

func where(kept bool, dir string) string {
	if kept {
		return fmt.Sprintf("; everything is kept in %s", dir)
	}
	return ""
}

func (t demoTask) String() string {
	s := fmt.Sprintf("%s: %d steps, %d ops, %d model calls, %d jump(s), %d card(s) written, %d recalled",
		t.ID, t.Steps, t.Ops, t.ModelCalls, t.Jumps, t.CardsWritten, t.CardsRecalled)
	if t.Blocks > 0 {
		s += fmt.Sprintf(",\n  %d discarded tokens became a block of %d (EAS %d)", t.DiscardedTokens, t.BlockTokens, t.EAS)
	}
	if t.TestsPass {
		return s + ", tests pass"
	}
	return s + ", TESTS FAIL"
}

func failing(res demoResult) error {
	for _, t := range res.Tasks {
		if !t.TestsPass {
			return fmt.Errorf("%s: the module's tests do not pass", t.ID)
		}
	}
	return nil
}

// demoDir makes the directory the demo works in.
func demoDir(dir string) (string, error) {
	if dir == "" {
		dir, err := os.MkdirTemp("", "anamnesis-demo-")
		if err != nil {
			return "", fmt.Errorf("make a directory for the demo: %w", err)
		}
		return filepath.EvalSymlinks(dir)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "", usageError("--dir %s: not empty; the demo wants a new directory", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", usageError("--dir: %v", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", usageError("--dir: %v", err)
	}
	return filepath.EvalSymlinks(abs)
}

// demoTask runs one task to its end and checks it with the module's own tests.
func (a *app) demoTask(ctx context.Context, h taskdir.Home, d demo.Task, say io.Writer) (demoTask, error) {
	var none demoTask
	svc, err := a.service()
	if err != nil {
		return none, err
	}
	var p view.Printer
	client := a.client(nil, func(i session.Info) view.Printer {
		p = view.NewText(nil, say, a.width(), i.Dir)
		return p
	})
	t, err := svc.At(h).Start(ctx, session.Request{
		Settings: session.Settings{Model: "script:" + d.Script, Approval: "auto"},
		Dir:      d.Dir, Text: demo.Request, ID: d.ID, EAS: demo.EAS, Writable: goCache(ctx),
	}, client)
	if err != nil {
		return none, err
	}
	a.warn(t.Opening...)
	out, err := t.Run(ctx)
	if err == nil {
		p.End(out, t.State())
		err = outcomeError(d.ID, out)
	}
	if err := session.JoinClose(err, t.Close()); err != nil {
		return none, err
	}
	return a.demoFigures(ctx, h, d)
}

// demoReview approves the cards that the task's passes wrote, as a user would with
// 'kb approve': a card in a model's words is not shown to other tasks before.
func (a *app) demoReview(ctx context.Context, h taskdir.Home, task string, say io.Writer) error {
	d := knowledgebase.Decision{Act: knowledgebase.Approve}
	err := taskdir.EachOp(h, task, func(o op.Op) error {
		if b, ok := o.Body.(*op.PassDone); ok {
			d.IDs = append(d.IDs, b.Cards...)
		}
		return nil
	})
	if err != nil || len(d.IDs) == 0 {
		return err
	}
	store, err := a.openKB(h.KnowledgeBase(), false)
	if err != nil {
		return err
	}
	_, err = store.Decide(ctx, d)
	fmt.Fprintf(say, "\na user reads the card and approves it: anamnesis kb approve %s\n", strings.Join(d.IDs, " "))
	return errors.Join(err, store.Close())
}

// goCache is where Go keeps what it has built: the demo's few tests are not
// worth building the standard library again in a private cache.
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

func (a *app) demoFigures(ctx context.Context, h taskdir.Home, d demo.Task) (demoTask, error) {
	fig := demoTask{ID: d.ID, Dir: d.Dir}
	st := new(state.State)
	err := taskdir.EachOp(h, d.ID, func(o op.Op) error {
		if b, ok := o.Body.(*op.PassDone); ok && b.Block != "" {
			fig.DiscardedTokens += b.RangeTokens
			fig.BlockTokens += o.Tok
		}
		return state.Fold(st, o)
	})
	if err != nil {
		return fig, err
	}
	fig.Steps, fig.Ops, fig.Jumps, fig.Blocks = st.EndedSteps(), st.Last, st.Totals.Jumps, st.Totals.Blocks
	fig.CardsWritten, fig.CardsRecalled = st.Totals.CardsWritten, st.Totals.CardsRecalled
	fig.EAS, fig.ModelCalls, fig.Usage = st.Opened.EAS, st.Totals.Replies, st.Totals.Usage
	check := exec.CommandContext(ctx, "go", "test", "./...")
	check.Dir = d.Dir
	fig.TestsPass = check.Run() == nil
	return fig, nil
}

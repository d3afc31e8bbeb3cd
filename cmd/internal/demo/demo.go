//go:build unix

// Package demo plays `anamnesis demo`: a model's recorded replies on two small real Go modules with the
// same trap. Nothing else of the demo is recorded.
package demo

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/review"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

//go:embed one.txtar two.txtar one.yaml two.yaml
var files embed.FS

// eas is the attention span of the recorded model, in tokens: small, so that even a short wrong path
// exceeds it.
const eas = 4000

const request = "The tests of this module fail: it adds up large amounts of money and is wrong by a cent. Make them " +
	"pass without changing the tests."

type Demo struct {
	*console.Console
	Service *session.Service
	Warn    func(texts ...string)
}

// Run plays the demo below dir, which must be new or empty. Without dir it uses a temporary
// directory, which it removes.
func (d *Demo) Run(ctx context.Context, dir, userHome string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return session.Usagef("the demo runs real Go tests: install Go and put it in PATH")
	}
	kept := dir != ""
	dir, err := emptyDir(dir)
	if err != nil {
		return err
	}
	if !kept {
		defer os.RemoveAll(dir)
	}
	home := filepath.Join(dir, "home")
	d.Service = d.Service.At(taskdir.Home{User: userHome, State: home, Data: home, Config: home})
	fmt.Fprintln(d.Out, "This is a recording: the model's words come from a script. The files, the commands, the "+
		"jump, the pass and the card are real.")
	err = d.task(ctx, dir, "demo_one", "one", "ledger")
	if err == nil {
		err = d.approve(ctx, "demo_one")
	}
	if err == nil {
		err = d.task(ctx, dir, "demo_two", "two", "invoice")
	}
	switch {
	case kept && err != nil:
		return fmt.Errorf("%w; everything is kept in %s", err, dir)
	case err != nil:
		return err
	case kept:
		fmt.Fprintf(d.Out,
			"\neverything is in %s; look around with ANAMNESIS_HOME=%s anamnesis timeline demo_one\n", dir, home)
	}
	next := "'anamnesis'"
	if own, err := os.Executable(); err == nil && strings.Contains(own, "go-build") { // go run
		next = "'go install ./cmd/anamnesis' here, then 'anamnesis'"
	} else if _, missing := exec.LookPath("anamnesis"); missing != nil && err == nil {
		next = own
	}
	fmt.Fprintf(d.Out, "\nnext: %s in a project of yours offers the keys and local models that it finds; 'anamnesis "+
		"install claude-code' works beside the agent you use\n", next)
	return nil
}

// task plays the files of a name in a module, draws the task's timeline and runs the module's tests.
func (d *Demo) task(ctx context.Context, dir, id, name, module string) error {
	dir, script := filepath.Join(dir, module), filepath.Join(dir, "scripts", name+".yaml")
	if err := lay(dir, script, name); err != nil {
		return fmt.Errorf("lay out the demo in %s: %w", dir, err)
	}
	fmt.Fprintf(d.Out, "\n%s: %s\n", id, request)
	var p view.Printer
	client := d.Client(nil, d.Warn, func(i session.Info) view.Printer {
		p = view.NewText(nil, d.Out, d.Width(), i.Dir, view.NoOutputs)
		return p
	})
	t, err := d.Service.Start(ctx, session.Request{
		Settings: session.Settings{Model: "script:" + script, Approval: "auto"},
		Dir:      dir, Text: request, ID: id, EAS: eas, Writable: goCache(ctx),
	}, client)
	if err != nil {
		return err
	}
	d.Warn(t.Opening...)
	out, err := t.Run(ctx)
	if err == nil {
		p.End(out, t.State(), "")
		if err = console.OutcomeError(id, out); err != nil && out.Err == nil { // 'resume' does not find the demo's task
			err = exit.With(exit.Code(err), fmt.Errorf("%s: %s", id, cmp.Or(out.Detail, out.Reason)))
		}
	}
	if err = session.JoinClose(err, t.Close()); err != nil {
		return err
	}
	tl, err := timeline.Read(d.Service.Home, id)
	if err != nil {
		return err
	}
	st := t.State()
	fmt.Fprintf(d.Styled(), "\n%s\n\n", view.Draw(tl, d.Width()))
	fmt.Fprintf(d.Out, "%s: %s, %s, %s written, %d recalled\n", id, quote.Number(st.Steps.CountEnded(), "step"),
		quote.Number(st.Totals.Jumps, "jump"), quote.Number(st.Totals.CardsWritten, "card"), st.Totals.CardsRecalled)
	// The demo must not claim a success that the module's tests do not confirm.
	check := exec.CommandContext(ctx, "go", "test", "./...")
	if check.Dir = dir; check.Run() != nil {
		return fmt.Errorf("%s: the module's tests do not pass", id)
	}
	return nil
}

// lay writes a module and a script.
func lay(dir, script, name string) error {
	words, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return err
	}
	module, err := files.ReadFile(name + ".txtar")
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.MkdirAll(filepath.Dir(script), 0o755)); err != nil {
		return err
	}
	for _, f := range txtar.Parse(module).Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(script, words, 0o644)
}

// approve approves the cards that the task left, as a user would with 'kb
// approve': a card in a model's words is not shown to other tasks before.
func (d *Demo) approve(ctx context.Context, task string) error {
	decision := review.Decision{Act: review.Approve}
	err := d.Service.Ops(task, 0, func(o op.Op) error {
		if b, ok := o.Body.(*op.PassDone); ok {
			decision.IDs = append(decision.IDs, b.Cards...)
		}
		return nil
	})
	if err != nil || len(decision.IDs) == 0 {
		return err
	}
	store, err := d.Service.Cards("", knowledgebase.Options{})
	if err != nil {
		return err
	}
	_, err = review.Decide(ctx, store, decision)
	fmt.Fprintf(d.Out, "\na user reads the card and approves it: anamnesis kb approve %s\n",
		strings.Join(decision.IDs, " "))
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

func emptyDir(dir string) (string, error) {
	if dir == "" {
		dir, err := os.MkdirTemp("", "anamnesis-demo-")
		if err != nil {
			return "", fmt.Errorf("make a directory for the demo: %w", err)
		}
		return filepath.EvalSymlinks(dir)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "", session.Usagef("--dir %s: not empty; the demo needs a new directory", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", session.Usagef("--dir: %v", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", session.Usagef("--dir: %v", err)
	}
	return filepath.EvalSymlinks(abs)
}

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

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/demo"
	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/orchestrator/session"
)

// demoResult is what `demo --json` prints.
type demoResult struct {
	Recording bool           `json:"recording"` // the model's words are recorded
	Dir       string         `json:"dir"`
	Kept      bool           `json:"kept"`
	Tasks     []demo.Figures `json:"tasks"`
}

func (a *app) demoCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a task that jumps back without forgetting, and a second one that benefits",
		Long: `Run two tasks on two small Go modules with the same bug. The model's replies are recorded;
files, commands, jump, pass, card and recall are real. Needs the Go toolchain and no network.`,
		RunE: a.withService(func(cmd *cobra.Command, _ []string, svc *session.Service) error {
			return a.demo(cmd.Context(), svc, dir)
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "keep everything below this directory, which must be new or empty")
	a.jsonFlag(cmd, "one JSON object instead")
	return cmd
}

func (a *app) demo(ctx context.Context, svc *session.Service, dir string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return exit.Usagef("the demo runs real Go tests: install Go and put it in PATH")
	}
	res := demoResult{Recording: true, Kept: dir != ""}
	var err error
	if res.Dir, err = demoDir(dir); err != nil {
		return err
	}
	if !res.Kept {
		defer os.RemoveAll(res.Dir)
	}
	h := demo.Home(res.Dir, a.getenv("HOME"))
	p := demo.Player{
		Service: svc.At(h), Say: a.stdout, Width: a.width(), Warn: a.warn, Ended: outcomeError,
		Client: func(show func(session.Info) view.Printer) session.Client { return a.client(nil, show) },
	}
	if a.json {
		p.Say = io.Discard
	}
	var drawn []func(int) string
	var failing error
	err = p.Play(ctx, res.Dir, func(f demo.Figures) error {
		res.Tasks = append(res.Tasks, f)
		if !f.TestsPass && failing == nil {
			failing = fmt.Errorf("%s: the module's tests do not pass", f.ID)
		}
		tl, err := timeline.Read(h, f.ID)
		drawn = append(drawn, func(width int) string { return view.Draw(tl, width) })
		return err
	})
	if err != nil && res.Kept {
		err = fmt.Errorf("%w; everything is kept in %s", err, res.Dir)
	}
	if err != nil {
		return err
	}
	return errors.Join(a.show(res, func() { a.printDemo(res, h.State, drawn) }), failing)
}

func (a *app) printDemo(res demoResult, home string, drawn []func(int) string) {
	out := a.styled()
	fmt.Fprintf(out, "\n%s\n\n", view.SideBySide(a.width(), drawn...))
	for _, t := range res.Tasks {
		fmt.Fprintln(out, t)
	}
	if res.Kept {
		fmt.Fprintf(out, "\neverything is in %s; look around with ANAMNESIS_HOME=%s anamnesis timeline demo_one\n", res.Dir, home)
	}
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
		return "", exit.Usagef("--dir %s: not empty; the demo wants a new directory", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", exit.Usagef("--dir: %v", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", exit.Usagef("--dir: %v", err)
	}
	return filepath.EvalSymlinks(abs)
}

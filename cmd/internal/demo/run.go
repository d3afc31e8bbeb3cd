package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/orchestrator/session"
)

// Result is the result of a demo.
type Result struct {
	Recording bool      `json:"recording"` // the model's replies are recorded
	Dir       string    `json:"dir"`
	Kept      bool      `json:"kept"`
	Tasks     []Figures `json:"tasks"`
	Failed    error     `json:"-"` // a module's tests do not pass

	home  string
	drawn []timeline.Timeline
}

// Run plays the demo below dir, which must be new or empty. Without dir it uses a temporary
// directory, which it removes.
func (p *Player) Run(ctx context.Context, dir, userHome string) (res Result, err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return res, session.Usagef("the demo runs real Go tests: install Go and put it in PATH")
	}
	res = Result{Recording: true, Kept: dir != ""}
	if res.Dir, err = emptyDir(dir); err != nil {
		return res, err
	}
	if !res.Kept {
		defer os.RemoveAll(res.Dir)
	}
	h := Home(res.Dir, userHome)
	p.Service, res.home = p.Service.At(h), h.State
	err = p.Play(ctx, res.Dir, func(f Figures) error {
		res.Tasks = append(res.Tasks, f)
		if !f.TestsPass && res.Failed == nil {
			res.Failed = fmt.Errorf("%s: the module's tests do not pass", f.ID)
		}
		tl, err := timeline.Read(h, f.ID)
		res.drawn = append(res.drawn, tl)
		return err
	})
	if err != nil && res.Kept {
		err = fmt.Errorf("%w; everything is kept in %s", err, res.Dir)
	}
	return res, err
}

// Print draws the tasks' timelines side by side, with their figures.
func (r *Result) Print(out io.Writer, width int) {
	var drawn []func(int) string
	for _, tl := range r.drawn {
		drawn = append(drawn, func(width int) string { return view.Draw(tl, width) })
	}
	fmt.Fprintf(out, "\n%s\n\n", view.SideBySide(width, drawn...))
	for _, t := range r.Tasks {
		fmt.Fprintln(out, t)
	}
	if r.Kept {
		fmt.Fprintf(out, "\neverything is in %s; look around with ANAMNESIS_HOME=%s anamnesis timeline demo_one\n",
			r.Dir, r.home)
	}
}

// emptyDir creates and returns the directory the demo works in.
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

//go:build linux

// Package hooks measures how long an agent waits for the hooks that record its
// sessions: the wrapper in the agent's configuration, the program it starts and the
// recorder that answers.
package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Options say what to measure.
type Options struct {
	Program string // path of the anamnesis program
	Temp    string // where the projects go; empty: the system's
	Calls   int    // calls of a row; 65536 directories and cold start a tenth of it
	Files   int    // of the project
	Only    []string
	Log     func(string)
}

// Defaults.
const (
	DefaultCalls = 200
	DefaultFiles = 15_000
)

// manyDirs is how many directories the row Many has.
const manyDirs = 65_536

// The rows. For cold the recorder is ended before each call.
const (
	Running = "running"
	Many    = "65536 directories"
	Cold    = "cold start"
)

// Rows lists the rows in their order.
func Rows() []string { return []string{Running, Many, Cold} }

// Row is one measurement.
type Row struct {
	Name        string        `json:"name"`
	Files       int           `json:"files"`
	Dirs        int           `json:"dirs"`
	Hooks       int           `json:"hooks"`
	P50         time.Duration `json:"p50_ns"`
	P99         time.Duration `json:"p99_ns"`
	Max         time.Duration `json:"max_ns"`
	MemoryBytes int64         `json:"memory_bytes"` // of the recorder at the end
	Note        string        `json:"note,omitempty"`
}

// Report is what was measured.
type Report struct {
	Program string `json:"program"`
	CPUs    int    `json:"cpus"`
	Load    string `json:"load"`
	Empty   Row    `json:"empty"` // the same wrapper around a program that does nothing
	Rows    []Row  `json:"rows"`
}

// Run measures the rows.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Program: o.Program, CPUs: runtime.NumCPU()}
	load, _ := os.ReadFile("/proc/loadavg") // reported only
	r.Load, _, _ = strings.Cut(string(load), " ")
	for _, name := range Rows() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, name) {
			continue
		}
		o.Log(name + ": directory and first save")
		row, err := measure(ctx, o, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		r.Rows = append(r.Rows, row)
	}
	o.Log("nothing")
	empty := o
	empty.Files, empty.Program = 1, "/bin/true"
	p, err := newProject(empty, Running)
	if err != nil {
		return nil, err
	}
	defer p.remove()
	var took []time.Duration
	for range o.Calls {
		d, err := p.hook(ctx, "PreToolUse", nil)
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	r.Empty = Row{Name: "a program that does nothing", Hooks: len(took)}
	r.Empty.figures(took)
	return r, nil
}

// project is a directory with a session that is recorded.
type project struct {
	o    Options
	row  string
	dir  string // of everything
	dirs int
}

func newProject(o Options, row string) (*project, error) {
	dir, err := os.MkdirTemp(o.Temp, "anamnesis-hooks")
	if err != nil {
		return nil, err
	}
	p := &project{o: o, row: row, dir: dir, dirs: max(o.Files/20, 1)}
	if row == Many {
		p.dirs = manyDirs
	}
	for i := range max(p.dirs, o.Files) {
		in := filepath.Join(p.world(), fmt.Sprintf("d%03d/d%03d", i%p.dirs/256, i%p.dirs))
		if i < p.dirs {
			err = errors.Join(err, os.MkdirAll(in, 0o700))
		}
		if i < o.Files {
			err = errors.Join(err, os.WriteFile(filepath.Join(in, fmt.Sprintf("f%d", i)), bytes.Repeat(fmt.Appendf(nil, "line of file %d\n", i), 60), 0o600))
		}
		if err != nil {
			return nil, errors.Join(err, p.remove())
		}
	}
	return p, nil
}

func (p *project) world() string { return filepath.Join(p.dir, "project") }

func (p *project) home() string { return filepath.Join(p.dir, "home") }

func (p *project) remove() error { return os.RemoveAll(p.dir) }

func (p *project) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "ANAMNESIS_HOME=" + p.home()}
}

func (p *project) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, p.o.Program, args...)
	cmd.Env = p.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// hook runs a hook as an agent does, and returns how long the agent waited.
func (p *project) hook(ctx context.Context, event string, more map[string]any) (time.Duration, error) {
	e := map[string]any{"session_id": "bench", "cwd": p.world(), "hook_event_name": event}
	for k, v := range more {
		e[k] = v
	}
	data, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	wrapper := filepath.Join(p.home(), "beside", "hook.sh")
	if _, err := os.Stat(wrapper); err != nil { // of the program that does nothing
		wrapper = filepath.Join(p.dir, "hook.sh")
		if err := os.WriteFile(wrapper, []byte("reply=$(exec 2>/dev/null; exec "+p.o.Program+" hook \"$1\")\nexit 0\n"), 0o600); err != nil {
			return 0, err
		}
	}
	cmd := exec.CommandContext(ctx, "sh", wrapper, "claude-code")
	cmd.Env, cmd.Stdin = p.env(), bytes.NewReader(data)
	begun := time.Now()
	err = cmd.Run()
	return time.Since(begun), err
}

// settled waits until the first snapshot of the session is saved. Until then every hook waits up to
// its time limit.
func (p *project) settled(ctx context.Context) error {
	for ctx.Err() == nil {
		if d, err := p.hook(ctx, "Notification", nil); err != nil || d < time.Second {
			return err
		}
	}
	return ctx.Err()
}

func measure(ctx context.Context, o Options, name string) (row Row, err error) {
	row = Row{Name: name}
	p, err := newProject(o, name)
	if err != nil {
		return row, err
	}
	row.Files, row.Dirs = o.Files, p.dirs
	defer func() { err = errors.Join(err, p.run(context.WithoutCancel(ctx), "pause"), p.remove()) }()
	if err := p.run(ctx, "install", "claude-code", "--yes"); err != nil {
		return row, err
	}
	if _, err := p.hook(ctx, "SessionStart", nil); err != nil {
		return row, err
	}
	if err := p.settled(ctx); err != nil {
		return row, err
	}
	if _, err := p.hook(ctx, "UserPromptSubmit", map[string]any{"prompt": "Measure."}); err != nil {
		return row, err
	}
	calls := o.Calls
	if name == Many || name == Cold { // each hook scans all directories, or starts a recorder
		calls = max(calls/10, 1)
	}
	var took []time.Duration
	for i := range calls {
		if i%max(calls/4, 1) == 0 {
			o.Log(fmt.Sprintf("%s: call %d of %d", name, i, calls))
		}
		if name == Cold {
			if err := errors.Join(p.run(ctx, "pause"), p.run(ctx, "pause", "--end")); err != nil {
				return row, err
			}
		}
		call := map[string]any{"tool_name": "Bash", "tool_use_id": fmt.Sprint("call", i), "tool_input": map[string]string{"command": fmt.Sprint("edit ", i)}}
		before, err := p.hook(ctx, "PreToolUse", call)
		if err != nil {
			return row, err
		}
		at := i * 7 % p.dirs
		file := filepath.Join(p.world(), fmt.Sprintf("d%03d/d%03d", at/256, at), "edited")
		if err := os.WriteFile(file, fmt.Appendf(nil, "call %d\n", i), 0o600); err != nil {
			return row, err
		}
		call["tool_response"] = map[string]any{"stdout": "ok", "stderr": ""}
		after, err := p.hook(ctx, "PostToolUse", call)
		if err != nil {
			return row, err
		}
		if took = append(took, before); name != Cold {
			took = append(took, after)
		}
	}
	row.Hooks, row.MemoryBytes = len(took), p.memory()
	row.figures(took)
	return row, p.settled(ctx) // a recorder that lags behind does not end in time
}

func (r *Row) figures(took []time.Duration) {
	slices.Sort(took)
	r.P50, r.P99, r.Max = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
}

// memory is the resident size of the recorder; 0 where none has a task open.
func (p *project) memory() int64 {
	entries, _ := os.ReadDir(filepath.Join(p.home(), "live")) // none: report nothing
	for _, e := range entries {
		var live struct {
			PID    int    `json:"pid"`
			Socket string `json:"socket"`
		}
		data, err := os.ReadFile(filepath.Join(p.home(), "live", e.Name()))
		if err != nil || json.Unmarshal(data, &live) != nil || live.Socket == "" {
			continue
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", live.PID))
		for line := range strings.Lines(string(status)) {
			var kib int64
			if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
				return kib << 10
			}
		}
	}
	return 0
}

// WriteText writes the figures as a table for people.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%d processors, load %s; how long an agent waits for a hook, in ms\n", r.CPUs, r.Load)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\tfiles\tdirectories\thooks\tp50\tp99\tmax\trecorder MiB\t")
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/1e6) }
	for _, row := range append(slices.Clone(r.Rows), r.Empty) {
		if row.Note != "" {
			fmt.Fprintf(tw, "%s\t%s\t\t\t\t\t\t\t\n", row.Name, row.Note)
			continue
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%s\t%s\t%s\t%d\t\n", row.Name, row.Files, row.Dirs, row.Hooks, ms(row.P50), ms(row.P99), ms(row.Max), row.MemoryBytes>>20)
	}
	return tw.Flush()
}

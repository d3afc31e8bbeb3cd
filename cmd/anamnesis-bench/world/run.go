//go:build unix

// Package world measures package worldstate beside what a user would use instead: a shadow git
// repository. All of them save and restore one copy of a directory, in turn and in the same run,
// so that a busy machine is busy for all of them. The directory itself is only read.
package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Options say what is measured.
type Options struct {
	// Dir is the directory to copy. It is never written.
	Dir string
	// Temp is where the copy and the stores go, a new directory in it, removed
	// at the end. Default: Dir's parent, so that the file system is Dir's own.
	Temp string
	// Rounds is how often each row is measured; rows of a whole first save take a third of it, at
	// least one.
	Rounds int
	// Only picks rows by name (see Rows). None: all.
	Only []string
	// Program is the anamnesis binary whose own process time is shown. "":
	// not shown.
	Program string
	// Log receives the progress, one line at a time.
	Log func(line string)
}

// DefaultRounds is what a user gets who names no number.
const DefaultRounds = 9

// A Report is one run's figures.
type Report struct {
	Dir    string `json:"dir"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Git    string `json:"git"` // its version
	CPUs   int    `json:"cpus"`
	Load   string `json:"load"` // the machine's load averages at begin and end
	Rows   []Row  `json:"rows"`
	Memory int64  `json:"memory_bytes"` // the peak of one process doing a first save; 0: not measured
}

// A Row is one kind of work.
type Row struct {
	Name    string   `json:"name"`
	Rounds  int      `json:"rounds"`
	Figures []Figure `json:"figures"`
	// SameTree counts how often our world id was git's tree id, of Compared.
	SameTree int `json:"same_tree"`
	Compared int `json:"compared"`
	// Note says why the row was not measured.
	Note string `json:"note,omitempty"`
}

// A Figure is one subject's medians in a row.
type Figure struct {
	Subject string        `json:"subject"`
	Wall    time.Duration `json:"wall_ns"`
	CPU     time.Duration `json:"cpu_ns"` // user and system, of all processes, until it is durable
	// Durable is how long after its beginning a restore was on the disk, where
	// that is waited for apart from its end; 0 elsewhere.
	Durable time.Duration `json:"durable_ns,omitempty"`
	// Ratio is the reference's median time over this one's.
	Ratio float64 `json:"ratio,omitempty"`
	// Note says why there are no figures.
	Note string `json:"note,omitempty"`
}

// work is a row to be.
type work struct {
	name     string
	first    bool // every save is a first save
	changed  int
	restores bool
}

func works() []work {
	return []work{
		{name: "first", first: true},
		{name: "unchanged"},
		{name: "save-1", changed: 1},
		{name: "save-100", changed: 100},
		{name: "save-1000", changed: 1000},
		{name: "restore-1", changed: 1, restores: true},
		{name: "restore-1000", changed: 1000, restores: true},
	}
}

// ErrUsage: Options name a row that does not exist, or a directory
// of which nothing is ever saved.
var ErrUsage = errors.New("bad options")

// Rows lists the rows' names.
func Rows() []string {
	var names []string
	for _, w := range works() {
		names = append(names, w.name)
	}
	return names
}

// runner is one run under way.
type runner struct {
	o        Options
	tree     *tree
	subjects []subject
	round    int // counts every change made, so that no two are alike
}

// Run measures. The error is for what kept it from measuring at all; a subject
// that fails has a Note.
func Run(ctx context.Context, o Options) (r *Report, err error) {
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("bench world: %w", err)
	}
	if o.Temp == "" {
		o.Temp = filepath.Dir(o.Dir)
	}
	for _, name := range o.Only {
		if !slices.Contains(Rows(), name) {
			return nil, fmt.Errorf("bench world: %w: no row %q; there are %q", ErrUsage, name, Rows())
		}
	}
	top, err := os.MkdirTemp(o.Temp, "anamnesis-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench world: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(top)) }()
	run := &runner{o: o}
	o.Log("copying " + o.Dir)
	if run.tree, err = copyTree(ctx, o.Dir, filepath.Join(top, "tree")); err != nil {
		return nil, fmt.Errorf("bench world: copy: %w", err)
	}
	r = &Report{Dir: o.Dir, Files: run.tree.count, Bytes: run.tree.bytes, CPUs: runtime.NumCPU(), Load: load()}
	if r.Git, err = gitVersion(ctx); err != nil {
		return nil, fmt.Errorf("bench world: git is what it measures against: %w", err)
	}
	if err := run.tree.removeIgnored(ctx, filepath.Join(top, "listing")); err != nil {
		return nil, fmt.Errorf("bench world: %w", err)
	}
	if err := run.rows(ctx, top, r); err != nil {
		return nil, fmt.Errorf("bench world: %w", err)
	}
	r.Load += ", at the end " + load()
	return r, nil
}

func (r *runner) rows(ctx context.Context, top string, out *Report) error {
	r.subjects = newSubjects(top, r.tree.root, r.o.Program)
	defer func() {
		for _, s := range r.subjects {
			s.close()
		}
	}()
	if err := r.memory(ctx, out); err != nil {
		return err
	}
	for _, w := range works() {
		if len(r.o.Only) > 0 && !slices.Contains(r.o.Only, w.name) {
			continue
		}
		r.o.Log("row " + w.name)
		row, err := r.row(ctx, w)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // the other rows' figures are kept
			row.Note = err.Error()
		}
		out.Rows = append(out.Rows, row)
	}
	return nil
}

// memory makes a process of this program do a first save. It comes first: the kernel counts
// the parent's memory at the fork as the child's, and this process is still small.
func (r *runner) memory(ctx context.Context, out *Report) error {
	for _, s := range r.subjects {
		p, ok := s.(*program)
		if !ok {
			continue
		}
		r.o.Log("measuring memory")
		if _, _, err := p.save(ctx); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
		out.Memory = p.peak
	}
	return nil
}

// samples are one subject's in one row.
type samples struct {
	wall, cpu, durable []time.Duration
	failed             error
}

func (r *runner) row(ctx context.Context, w work) (Row, error) {
	row := Row{Name: w.name, Rounds: r.o.Rounds}
	if w.first {
		row.Rounds = max(1, r.o.Rounds/3)
	}
	got := make([]samples, len(r.subjects))
	if err := r.warmUp(ctx, w, got); err != nil {
		return row, err
	}
	for round := range row.Rounds {
		trees := map[string]string{}
		if err := r.once(ctx, w, round, got, trees); err != nil {
			return row, err
		}
		if ours, theirs := trees[nameScan], trees[nameGit]; ours != "" && theirs != "" {
			row.Compared++
			if ours == theirs {
				row.SameTree++
			}
		}
	}
	row.Figures = r.figures(got)
	return row, nil
}

// racyWindow is how long a file must be at rest before any of them trusts its
// time stamps.
const racyWindow = 250 * time.Millisecond

// warmUp lets everybody save the present, so that stores and caches are warm.
func (r *runner) warmUp(ctx context.Context, w work, got []samples) error {
	if w.first {
		return nil
	}
	for range 2 {
		for i, s := range r.subjects {
			if err := ctx.Err(); err != nil {
				return err
			}
			if got[i].failed == nil {
				_, _, got[i].failed = s.save(ctx)
			}
		}
		select { // the second save finds every stamp old enough to be kept
		case <-time.After(racyWindow):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// once lets every subject do the work one time, another one first each round.
func (r *runner) once(ctx context.Context, w work, round int, got []samples, trees map[string]string) error {
	if !w.restores {
		r.round++
		if err := r.tree.change(w.changed, r.round); err != nil {
			return err
		}
	}
	for k := range r.subjects {
		i := (k + round) % len(r.subjects)
		s := r.subjects[i]
		if got[i].failed != nil || !w.restores && s.info().restoreOnly {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if w.restores {
			err = r.restore(ctx, w, s, &got[i])
		} else {
			err = r.save(ctx, w, s, &got[i], trees)
		}
		got[i].failed = err
	}
	return ctx.Err()
}

func (r *runner) save(ctx context.Context, w work, s subject, to *samples, trees map[string]string) error {
	if w.first {
		if err := s.fresh(ctx); err != nil {
			return err
		}
	}
	return to.measure(func() (err error) {
		_, trees[s.info().name], err = s.save(ctx)
		return err
	}, nil)
}

// restore lets one subject save two states and measures the way back.
func (r *runner) restore(ctx context.Context, w work, s subject, to *samples) error {
	var points []string
	for range 2 {
		id, _, err := s.save(ctx)
		if err != nil {
			return err
		}
		if points = append(points, id); len(points) == 1 {
			r.round++
			if err := r.tree.change(w.changed, r.round); err != nil {
				return err
			}
		}
	}
	var sync func() error
	if o, ok := s.(syncer); ok {
		sync = o.sync
	}
	if err := to.measure(func() error { return s.restore(ctx, points[0]) }, sync); err != nil {
		return err
	}
	return r.tree.expect(w.changed, r.round)
}

// measure takes one sample. sync, when not nil, waits for what f left under
// way.
func (s *samples) measure(f, sync func() error) error {
	cpu, begin := cpuTime(), time.Now()
	err := f()
	s.wall = append(s.wall, time.Since(begin))
	if err == nil && sync != nil {
		err = sync()
		s.durable = append(s.durable, time.Since(begin))
	}
	s.cpu = append(s.cpu, cpuTime()-cpu)
	return err
}

// cpuTime is what this process and its ended children have used.
func cpuTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

func median(list []time.Duration) time.Duration {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}

func (r *runner) figures(got []samples) []Figure {
	var out []Figure
	var reference time.Duration
	for i, s := range r.subjects {
		info := s.info()
		f := Figure{Subject: info.name}
		switch {
		case got[i].failed != nil:
			f.Note = got[i].failed.Error()
		case len(got[i].wall) == 0:
			continue
		default:
			f.Wall, f.CPU = median(got[i].wall), median(got[i].cpu)
			if len(got[i].durable) > 0 {
				f.Durable = median(got[i].durable)
			}
			if info.reference && (reference == 0 || f.Wall < reference) {
				reference = f.Wall
			}
		}
		out = append(out, f)
	}
	for i := range out {
		if f := &out[i]; f.Wall > 0 {
			f.Ratio = float64(reference) / float64(f.Wall)
		}
	}
	return out
}

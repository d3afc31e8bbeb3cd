package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/cmd/internal/bench/depot"
	"anamnesis/orchestrator/taskdir"
)

// The defaults of a run.
const (
	DefaultTasks = 200
	DefaultSeed  = 6
	// maxTasks bounds a run: beyond it the tables say nothing new.
	maxTasks = 20_000
)

// ErrUsage is wrapped by errors about options.
var ErrUsage = errors.New("usage")

// The parts of a bench.
const (
	PartRepair     = "repair"   // World B
	PartCards      = "cards"    // World C
	PartCompletely = "complete" // World B on the complete path
)

// Parts lists the parts, in the order of the report.
func Parts() []string { return []string{PartRepair, PartCards, PartCompletely} }

// Options tune a run. The zero value means the defaults.
type Options struct {
	Seed  uint64   // 0: DefaultSeed
	Tasks int      // of World B, a row; 0: DefaultTasks
	Arms  []string // of World B; nil: all
	Sweep bool     // all rows and not only the first two
	Only  []string // parts; nil: all but PartCompletely where Program is empty
	// Temp is where worlds and streams are made; empty: /dev/shm where there is
	// one, so that durability, which is not measured, costs nothing.
	Temp string
	// Program plays the commands of PartCompletely: this program's file, whose
	// main calls Command. Empty leaves the part out.
	Program string
	Workers int               // at once; 0: one a processor
	Log     func(line string) // progress; may be nil
}

func (o Options) withDefaults() (Options, error) {
	if o.Seed == 0 {
		o.Seed = DefaultSeed
	}
	if o.Tasks == 0 {
		o.Tasks = DefaultTasks
	}
	if o.Tasks < 2 || o.Tasks > maxTasks {
		return o, fmt.Errorf("%w: %d tasks; 2 to %d are possible", ErrUsage, o.Tasks, maxTasks)
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return o, fmt.Errorf("%w: there is no part %q; the parts are %s", ErrUsage, name, strings.Join(Parts(), ", "))
		}
	}
	if o.Temp == "" {
		o.Temp = os.TempDir()
		if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
			o.Temp = "/dev/shm"
		}
	}
	return o, nil
}

func (o *Options) has(part string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, part) }

// arms picks the arms by name.
func (o *Options) arms() ([]Arm, error) {
	all := Arms()
	if len(o.Arms) == 0 {
		return all, nil
	}
	var out []Arm
	var names []string
	for _, a := range all {
		names = append(names, a.Name)
		if slices.Contains(o.Arms, a.Name) {
			out = append(out, a)
		}
	}
	for _, n := range o.Arms {
		if !slices.Contains(names, n) {
			return nil, fmt.Errorf("%w: there is no arm %q; the arms are %s", ErrUsage, n, strings.Join(names, ", "))
		}
	}
	return out, nil
}

// Run runs the bench. The same options give the same report, byte for byte.
func Run(ctx context.Context, o Options) (*Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	arms, err := o.arms()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Temp, "anamnesis-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench memory: %w", err)
	}
	b := &bench{Options: o, dir: dir, src: depot.Source{Seed: o.Seed}}
	rep := &Report{Seed: o.Seed, Tasks: o.Tasks}
	err = b.parts(ctx, arms, rep)
	return rep, errors.Join(err, os.RemoveAll(dir))
}

type bench struct {
	Options
	dir string
	src depot.Source
}

func (b *bench) parts(ctx context.Context, arms []Arm, rep *Report) error {
	if b.has(PartRepair) {
		rows := Sweep()
		if !b.Sweep {
			rows = rows[:headlines]
		}
		for i, row := range rows {
			r, err := b.row(ctx, row, arms)
			if err != nil {
				return err
			}
			rep.Rows = append(rep.Rows, r)
			b.Log(fmt.Sprintf("row %d of %d: %s", i+1, len(rows), row.Name))
		}
	}
	if b.has(PartCards) {
		c, err := b.cards(ctx)
		if err != nil {
			return err
		}
		rep.Cards = c
		b.Log("World C")
	}
	if b.has(PartCompletely) && b.Program != "" {
		c, err := b.complete(ctx, Sweep()[:2])
		if err != nil {
			return err
		}
		rep.Complete = c
	}
	return nil
}

// row plays every task in every arm.
func (b *bench) row(ctx context.Context, row Row, arms []Arm) (*RowReport, error) {
	results := make([][]Metrics, len(arms))
	for i := range results {
		results[i] = make([]Metrics, b.Tasks)
	}
	err := b.each(ctx, b.Tasks*len(arms), func(n int) error {
		task, arm := n/len(arms), n%len(arms)
		m, err := b.one(ctx, &row.Params, &arms[arm], task, "")
		results[arm][task] = m
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("bench memory, %s: %w", row.Name, err)
	}
	return b.rowReport(row, arms, results), nil
}

// one plays one task in one arm, in a directory of its own.
func (b *bench) one(ctx context.Context, p *Params, arm *Arm, task int, program string) (Metrics, error) {
	root, err := os.MkdirTemp(b.dir, "task-")
	if err != nil {
		return Metrics{}, err
	}
	src := b.src.At("task", task)
	st := &stage{root: root, home: homeIn(root), program: program, now: clock()}
	m, err := st.play(ctx, p, arm, depot.New(&p.Params, src), "bench", src)
	if err != nil {
		err = fmt.Errorf("task %d, arm %s: %w", task, arm.Name, err)
	}
	return m, errors.Join(err, os.RemoveAll(root))
}

func homeIn(root string) taskdir.Home {
	state := filepath.Join(root, "home")
	return taskdir.Home{User: filepath.Join(root, "user"), State: state, Data: state, Config: state}
}

// clock is the time of every bench: a report must not depend on today's.
func clock() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// each runs n jobs on the workers and returns the first error.
func (b *bench) each(ctx context.Context, n int, job func(int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	jobs := make(chan int)
	var wg sync.WaitGroup
	for range b.Workers {
		wg.Go(func() {
			for i := range jobs {
				if err := job(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case jobs <- i:
		case <-ctx.Done():
		}
	}
	close(jobs)
	wg.Wait()
	return context.Cause(ctx)
}

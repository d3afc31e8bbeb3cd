// Package live asks a real model what package memory asks a simulated agent: whether it
// repairs more with the product's rollback and memory than without. It was tried with
// scripts and a local server only; no figure of a real model was taken here.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/cmd/internal/bench/depot"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// worlds is how many tasks of World B are played.
const worlds = 4

// limits of one task.
const (
	maxSteps = 60
	easWorld = 4_000 // so that the pass runs in a small world
)

// ErrUsage is wrapped by errors about options.
var ErrUsage = errors.New("usage")

// Options configure a run.
type Options struct {
	Model, BaseURL string
	MaxCostUSD     float64 // of the whole run
	Dir            string  // of results.jsonl and of the transcripts; a run continues there
	Seed           uint64
	Sandbox        string // of the commands; see session.Settings
	Program        string // this program's file; its main calls depot.CommandMain
	Log            func(line string)
}

// unit is one question: it is played once in each arm.
type unit struct {
	name string
	pair *pair         // nil: a task of World B
	pz   *depot.Puzzle // of World B
}

// The arms of a unit: with what is measured, and without.
const (
	with    = "with"    // World B: jump_to_step and its pass; pairs: the cards of the first repository
	without = "without" // World B: neither; pairs: an empty knowledge base
)

// result is one played unit in one arm, a line of results.jsonl. The first line names
// the run.
type result struct {
	Run    string  `json:"run,omitempty"`
	Unit   string  `json:"unit,omitempty"`
	Arm    string  `json:"arm,omitempty"`
	Solved bool    `json:"solved"`
	Steps  int     `json:"steps"`
	USD    float64 `json:"usd"`
	Ended  string  `json:"ended,omitempty"` // how the last turn ended
}

// units are the questions in the order that the seed draws.
func units(seed uint64) ([]unit, error) {
	out, err := pairs()
	if err != nil {
		return nil, err
	}
	p := depot.Params{Decisions: 2, Options: 3, Garden: 0.35, Hint: 0.5, Activations: 3, OutputTokens: [2]int{80, 400}}
	for i := range worlds {
		out = append(out, unit{name: fmt.Sprintf("world-%d", i+1), pz: depot.New(&p, depot.Source{Seed: seed}.At("task", i))})
	}
	r := rand.New(rand.NewPCG(seed, 1))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}

// order returns a unit's arms in the order that the seed draws.
func order(seed uint64, at int) []string {
	arms := []string{with, without}
	if rand.New(rand.NewPCG(seed, uint64(at)+2)).IntN(2) == 1 {
		slices.Reverse(arms)
	}
	return arms
}

// tasks is how many tasks a unit takes in both arms.
func (u unit) tasks() int {
	if u.pair != nil {
		return 3
	}
	return 2
}

// runner plays units.
type runner struct {
	Options
	svc  *session.Service
	each float64 // US dollars a task may cost
	done []result
	file *os.File
}

// Run plays what the directory has no result of, and reports. The stopping rule is fixed
// before the first request: every unit is played in both arms, each task may cost the
// same share of MaxCostUSD, and a task that reaches it counts as not solved. A limit is
// checked before a request, so that a task may exceed it by its last one.
func Run(ctx context.Context, svc *session.Service, o Options) (rep *Report, err error) {
	for what, path := range map[string]string{"--out": o.Dir, "this program": o.Program} {
		if hidden := "/tmp/"; o.Sandbox != "off" && strings.HasPrefix(path, hidden) {
			return nil, fmt.Errorf("%w: %s is %s, and commands in the sandbox do not see %s; use another directory, or --sandbox off", ErrUsage, what, path, hidden)
		}
	}
	all, err := units(o.Seed)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, u := range all {
		n += u.tasks()
	}
	r := &runner{Options: o, svc: svc, each: o.MaxCostUSD / float64(n)}
	if err := r.open(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.file.Close()) }()
	o.Log(fmt.Sprintf("%d tasks of at most $%.4f each, $%.2f together; every unit is played in both arms; %d results exist in %s", n, r.each, o.MaxCostUSD, len(r.done), o.Dir))
	for i, u := range all {
		for _, arm := range order(o.Seed, i) {
			if slices.ContainsFunc(r.done, func(d result) bool { return d.Unit == u.name && d.Arm == arm }) {
				continue
			}
			res, err := r.play(ctx, u, arm)
			if err != nil {
				return nil, fmt.Errorf("bench memory, %s, %s: %w; the same command continues", u.name, arm, err)
			}
			if err := r.record(res); err != nil {
				return nil, err
			}
			o.Log(fmt.Sprintf("%s, %s: solved %v, %d steps, $%.4f", u.name, arm, res.Solved, res.Steps, res.USD))
		}
	}
	return newReport(o, all, r.done), nil
}

// open reads the results of the directory, or begins there.
func (r *runner) open() error {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return fmt.Errorf("%w: --out: %v", ErrUsage, err)
	}
	name := filepath.Join(r.Dir, "results.jsonl")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("%w: --out: %v", ErrUsage, err)
	}
	r.file = f
	this := fmt.Sprintf("model %s, seed %d, at most $%g", r.Model, r.Seed, r.MaxCostUSD)
	dec := json.NewDecoder(f)
	for first := true; dec.More(); first = false {
		var d result
		if err := dec.Decode(&d); err != nil {
			return errors.Join(fmt.Errorf("%w: %s is damaged (%v); remove its last line", ErrUsage, name, err), f.Close())
		}
		if first && d.Run != this {
			return errors.Join(fmt.Errorf("%w: %s is of another run (%s); name another directory with --out", ErrUsage, name, d.Run), f.Close())
		}
		if d.Unit != "" {
			r.done = append(r.done, d)
		}
	}
	if info, err := f.Stat(); err != nil || info.Size() > 0 {
		return err
	}
	return r.write(result{Run: this})
}

func (r *runner) record(d result) error {
	r.done = append(r.done, d)
	return r.write(d)
}

func (r *runner) write(d result) error {
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("record a result: %w", err)
	}
	return nil
}

// play plays a unit in one arm, in a directory and a home of its own, which stay: they
// hold the transcripts. What an interrupted process left is set aside, not continued,
// and what it cost is not counted.
func (r *runner) play(ctx context.Context, u unit, arm string) (result, error) {
	root := filepath.Join(r.Dir, u.name+"-"+arm)
	if _, err := os.Stat(root); err == nil {
		aside, err := os.MkdirTemp(r.Dir, u.name+"-"+arm+"-interrupted-")
		if err != nil {
			return result{}, err
		}
		if err := os.Rename(root, filepath.Join(aside, "kept")); err != nil {
			return result{}, err
		}
	}
	home := r.svc.Home
	home.State, home.Data = filepath.Join(root, "home"), filepath.Join(root, "home")
	res := result{Unit: u.name, Arm: arm}
	var err error
	if u.pair != nil {
		err = r.playPair(ctx, u.pair, arm, root, home, &res)
	} else {
		err = r.playWorld(ctx, u.pz, arm, root, home, &res)
	}
	return res, err
}

// playPair plays the second repository of a pair; with, after the first one.
func (r *runner) playPair(ctx context.Context, p *pair, arm, root string, home taskdir.Home, res *result) error {
	if arm == with {
		first := *res // its steps and outcome do not count, its cost does
		if err := r.task(ctx, home, session.Request{Dir: filepath.Join(root, "learn"), Text: p.learn, ID: "learn"}, p.write("learn"), &first); err != nil {
			return err
		}
		res.USD = first.USD
	}
	dir := filepath.Join(root, "trap")
	if err := r.task(ctx, home, session.Request{Dir: dir, Text: p.trap, ID: "trap"}, p.write("trap"), res); err != nil {
		return err
	}
	var err error
	res.Solved, err = p.passes(ctx, "trap", dir)
	return err
}

// playWorld plays a task of World B with its commands as programs.
func (r *runner) playWorld(ctx context.Context, pz *depot.Puzzle, arm, root string, home taskdir.Home, res *result) error {
	pr := &depot.Project{Puzzle: pz, Dir: filepath.Join(root, pz.Project), Outside: filepath.Join(root, "outside")}
	bin := filepath.Join(root, "bin")
	if err := errors.Join(os.MkdirAll(pr.Outside, 0o755), pr.Install(r.Program, bin)); err != nil {
		return err
	}
	path := os.Getenv("PATH")
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+path); err != nil {
		return err
	}
	defer os.Setenv("PATH", path)
	req := session.Request{Dir: pr.Dir, Text: pz.Request(), ID: "world", EAS: easWorld, EASFrom: "bench", Writable: []string{pr.Outside}, NoResearch: true}
	if arm == without {
		req.Agent = filepath.Join(root, "without.yaml")
		if err := os.WriteFile(req.Agent, []byte("extends: default\nexclude_tools: [jump_to_step]\n"), 0o644); err != nil {
			return err
		}
	}
	if err := r.task(ctx, home, req, func(string) error { return pr.WriteConfig(nil) }, res); err != nil {
		return err
	}
	_, exit, err := pr.Run("npm test check")
	res.Solved = exit == 0
	return err
}

// task runs one task to the end of its turn and adds what it took.
func (r *runner) task(ctx context.Context, home taskdir.Home, req session.Request, fill func(dir string) error, res *result) error {
	if err := os.MkdirAll(req.Dir, 0o755); err != nil {
		return err
	}
	if err := fill(req.Dir); err != nil {
		return err
	}
	req.Settings = session.Settings{Model: r.Model, BaseURL: r.BaseURL, Approval: "auto", Sandbox: r.Sandbox, MaxSteps: maxSteps, MaxCostUSD: r.each}
	s, err := r.svc.At(home).Start(ctx, req, session.Client{})
	if err != nil {
		return err
	}
	out, err := s.Run(ctx)
	count(s.State(), res)
	if err = session.JoinClose(err, s.Close()); err != nil {
		return err
	}
	if out.Reason == "failed" || out.Reason == "interrupted" {
		return errors.Join(fmt.Errorf("the turn ended as %s: %s", out.Reason, out.Detail), out.Err, ctx.Err())
	}
	res.Ended = out.Reason
	return nil
}

func count(st *state.State, res *result) {
	res.Steps += st.Totals.Replies
	res.USD += st.Totals.Usage.USD
}

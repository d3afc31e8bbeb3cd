package depot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func world(deep bool, decisions, options int) Params {
	return Params{Deep: deep, Decisions: decisions, Options: options, Garden: 0.35, Hint: 0.5, Licence: 0.5, Activations: 3, OutputTokens: [2]int{80, 900}}
}

// TestPuzzles draws many tasks: each can be solved by right choices, no other
// choice leads to the end, and dead ends are as deep as the parameters say.
func TestPuzzles(t *testing.T) {
	for _, p := range []Params{world(true, 2, 4), world(false, 2, 4), world(true, 3, 5)} {
		gardens, hints := 0, 0
		for task := range 300 {
			pz := New(&p, Source{1}.At("task", task))
			var right []string
			for k, d := range pz.Decisions {
				right = append(right, d.Right)
				if !pz.LeadsOn(strings.Join(right, ",")) {
					t.Fatalf("task %d: the right choices %v do not lead on", task, right)
				}
				gardens += len(d.Garden)
				if k == len(pz.Decisions)-1 && len(d.Garden) > 0 {
					t.Errorf("task %d: a garden path at the last decision leads to the end", task)
				}
				dead, on := p.depths()
				for prefix, depth := range d.Depth {
					lim := dead
					if pz.LeadsOn(prefix) {
						lim = on
					}
					if depth < lim[0] || depth > lim[1] {
						t.Errorf("task %d: %s is %d deep, want %v", task, prefix, depth, lim)
					}
				}
			}
			if pz.Hint != "" {
				hints++
				if !strings.Contains(pz.Hint, pz.Decisions[len(pz.Decisions)-1].Right) || pz.LeadsOn(pz.HintAt) {
					t.Errorf("task %d: hint %q at %s", task, pz.Hint, pz.HintAt)
				}
			}
		}
		if gardens == 0 || hints == 0 {
			t.Errorf("%d garden paths, %d hints", gardens, hints)
		}
	}
}

// TestCommands walks through a project by hand.
func TestCommands(t *testing.T) {
	pz := &Puzzle{Seed: 1, Project: "p", Licence: true, Activations: 1, Output: [2]int{80, 90}, Decisions: []Decision{
		{Name: "backend", Options: []string{"sled", "lmdb"}, Right: "lmdb", Garden: []string{"sled"}, Code: "R101", Depth: map[string]int{"sled": 3, "lmdb": 3}},
		{Name: "cache", Options: []string{"redis", "varnish"}, Right: "redis", Code: "R102", Depth: map[string]int{"sled,redis": 2, "sled,varnish": 2, "lmdb,redis": 1, "lmdb,varnish": 1}},
	}}
	w := &Project{Puzzle: pz, Dir: t.TempDir(), Outside: t.TempDir()}
	if err := w.WriteConfig(nil); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		command string
		exit    int
		shows   string
	}{
		{"npm test status", exitOK, "state: fresh tree\nnext: decision backend: one of sled lmdb"},
		{"npm test stage backend 1", exitWrong, "not now"},
		{"npm test choose backend sled", exitOK, "next: npm test stage backend 1"},
		{"npm test stage backend 1", exitOK, "next: " + Activate},
		{"npm test stage backend 2", exitWrong, "no licence is active"},
		{Activate, exitOK, "licence activated: 1 of 1"},
		{"npm test stage backend 2", exitOK, "next: npm test stage backend 3"},
		{"npm test stage backend 3", exitOK, "next: decision cache: one of redis varnish"},
		{"npm test choose cache redis", exitOK, "state: backend=sled,cache=redis"},
		{"npm test stage cache 1", exitOK, "next: npm test stage cache 2"},
		{"npm test stage cache 2", exitDead, "error[R102]: cache redis is refused on backend=sled in project p"},
		{"npm test undo", exitOK, "state: backend=sled\nnext: decision cache"},
		{"npm test undo", exitOK, "state: fresh tree\nnext: decision backend"},
		{"npm test choose backend lmdb", exitOK, ""},
		{"npm test stage backend 1", exitOK, ""},
		{"npm test stage backend 2", exitOK, ""},
		{"npm test stage backend 3", exitOK, ""},
		{"npm test choose cache redis", exitOK, ""},
		{"npm test stage cache 1", exitOK, "next: npm test check"},
		{"npm test check", exitOK, "check passed"},
		{Activate, exitDead, "locked"},
		{"npm test check", exitDead, "locked"},
		{"rm -rf /", exitWrong, "unknown command"},
	} {
		out, exit, err := w.Run(step.command)
		if err != nil || exit != step.exit || !strings.Contains(out, step.shows) {
			t.Fatalf("%d: %s: exit %d, %v, want %d and %q in\n%s", i, step.command, exit, err, step.exit, step.shows, out)
		}
	}
	if _, err := os.Stat(filepath.Join(w.Outside, licenceFile)); err != nil {
		t.Error(err)
	}
}

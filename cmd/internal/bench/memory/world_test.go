package memory

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecall holds the curve to what defines it.
func TestRecall(t *testing.T) {
	for _, eas := range []int{4_000, 16_000, 128_000} {
		if got, want := Recall(eas/2, eas, eas), recallBase*recallAtEAS; math.Abs(got-want) > 1e-3 {
			t.Errorf("EAS %d, a statement half way: %.4f, want %.4f", eas, got, want)
		}
		for n := 1; n < eas; n *= 2 {
			if Recall(n, eas, eas) < Recall(2*n, eas, eas) || Recall(n, n, eas) < Recall(n, 2*n, eas) {
				t.Errorf("EAS %d: recall does not fall with distance and length at %d", eas, n)
			}
		}
		if p := Recall(1, 1, eas); p > recallBase || p < recallBase-0.01 {
			t.Errorf("EAS %d, at once: %.4f", eas, p)
		}
	}
}

// TestPuzzles draws many tasks: each can be solved by right choices, no other
// choice leads to the end, and dead ends are as deep as the parameters say.
func TestPuzzles(t *testing.T) {
	for _, p := range []Params{Defaults(), with(func(p *Params) { p.Deep = false }), with(func(p *Params) { p.Decisions, p.Options = 3, 5 })} {
		gardens, hints := 0, 0
		for task := range 300 {
			pz := newPuzzle(&p, source{1}.at("task", task))
			var right []string
			for k, d := range pz.Decisions {
				right = append(right, d.Right)
				if !pz.leadsOn(strings.Join(right, ",")) {
					t.Fatalf("task %d: the right choices %v do not lead on", task, right)
				}
				gardens += len(d.Garden)
				if k == len(pz.Decisions)-1 && len(d.Garden) > 0 {
					t.Errorf("task %d: a garden path at the last decision leads to the end", task)
				}
				dead, on := p.depths()
				for prefix, depth := range d.Depth {
					lim := dead
					if pz.leadsOn(prefix) {
						lim = on
					}
					if depth < lim[0] || depth > lim[1] {
						t.Errorf("task %d: %s is %d deep, want %v", task, prefix, depth, lim)
					}
				}
			}
			if pz.Hint != "" {
				hints++
				if !strings.Contains(pz.Hint, pz.Decisions[len(pz.Decisions)-1].Right) || pz.leadsOn(pz.HintAt) {
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
	pz := &puzzle{Seed: 1, Project: "p", Licence: true, Activations: 1, Output: [2]int{80, 90}, Decisions: []decision{
		{Name: "backend", Options: []string{"sled", "lmdb"}, Right: "lmdb", Garden: []string{"sled"}, Code: "R101", Depth: map[string]int{"sled": 3, "lmdb": 3}},
		{Name: "cache", Options: []string{"redis", "varnish"}, Right: "redis", Code: "R102", Depth: map[string]int{"sled,redis": 2, "sled,varnish": 2, "lmdb,redis": 1, "lmdb,varnish": 1}},
	}}
	w := &project{puzzle: pz, dir: t.TempDir(), outside: t.TempDir()}
	if err := w.writeConfig(nil); err != nil {
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
		{"npm test stage backend 1", exitOK, "next: " + activate},
		{"npm test stage backend 2", exitWrong, "no licence is active"},
		{activate, exitOK, "licence activated: 1 of 1"},
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
		{activate, exitDead, "locked"},
		{"npm test check", exitDead, "locked"},
		{"rm -rf /", exitWrong, "unknown command"},
	} {
		out, exit, err := w.run(step.command)
		if err != nil || exit != step.exit || !strings.Contains(out, step.shows) {
			t.Fatalf("%d: %s: exit %d, %v, want %d and %q in\n%s", i, step.command, exit, err, step.exit, step.shows, out)
		}
	}
	if _, err := os.Stat(filepath.Join(w.outside, licenceFile)); err != nil {
		t.Error(err)
	}
}

// TestFacts reads what the messages of every arm may say.
func TestFacts(t *testing.T) {
	g := newGrammar()
	for _, c := range []struct{ text, want string }{
		{"error[R102]: cache redis is refused on backend=sled in project p", "0 cache redis backend=sled "},
		{"Dead end: cache redis is refused.", "0 cache redis  "},
		{"Dead end: backend sled is refused on fresh tree: no cache works on it.", "0 backend sled fresh tree "},
		{"- Bash: npm test stage cache 2\n  in: world 12\n  error: error[R102]: cache redis is refused on backend=sled,tier=a in\n", "0 cache redis backend=sled,tier=a "},
		{"- cache varnish is refused on backend=sled\n  in: world 12\n  error: cache redis is refused on backend=sled\n", "0 cache varnish backend=sled "},
		{"x\nhint: cache must be one of a or b\n", "1 cache   a,b"},
		{"Not undone:\n- op 19: curl -X POST https://licence.example/activate\n", "2    "},
		{"next: curl -X POST https://licence.example/activate (once", ""},
	} {
		got := ""
		for _, f := range g.facts(c.text) {
			got += f.key()
			if f.at <= 0 || f.at > len(c.text) {
				t.Errorf("%q: a fact at byte %d", c.text, f.at)
			}
		}
		if got != c.want {
			t.Errorf("%q: read as %q, want %q", c.text, got, c.want)
		}
	}
}

// TestBeliefs says when a recalled failure counts.
func TestBeliefs(t *testing.T) {
	here := fact{kind: factRefused, decision: "cache", option: "redis", state: "backend=sled"}
	bare := here
	bare.state = ""
	for _, c := range []struct {
		name  string
		known beliefs
		state string
		want  bool
	}{
		{"nothing", nil, "backend=sled", false},
		{"same state", beliefs{here}, "backend=sled", true},
		{"another state", beliefs{here}, "backend=lmdb", false},
		{"no state", beliefs{bare}, "backend=lmdb", true},
		{"both: the one with a state explains the other", beliefs{bare, here}, "backend=lmdb", false},
	} {
		if got := c.known.failed("cache", "redis", c.state); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

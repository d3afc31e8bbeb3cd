package memory

import (
	"math"
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

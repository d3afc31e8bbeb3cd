package memory

import "testing"

// TestBelieved holds the agent to what a recalled card says of itself.
func TestBelieved(t *testing.T) {
	g := newGrammar()
	for name, tt := range map[string]struct {
		trust, line, card string
		unsure            bool
	}{
		"an observation": {"VERIFIED", "> Issue: `npm test stage cache 3` failed: error[R1]: cache redis is refused on backend=sled in project depot-00ff", "k1", false},
		"a hypothesis":   {"UNVERIFIED, seen in 2 tasks; before ruling anything out, check it", "> Issue: cache redis is refused on backend=sled in project depot-00ff", "k1", true},
		"a reason":       {"VERIFIED", "> Solution: The path was given up for this reason: Dead end: cache redis is refused on backend=sled.", "k1", true},
	} {
		text := "[lesson k1 · " + tt.trust + " · project world · task task_3 · ops 1-9 · 2026-01-03]\n> a topic\n>\n" + tt.line
		facts := g.facts(g.ownCards(text+"\n\ncache redis is refused on backend=sled", "depot-00ff"))
		if len(facts) != 2 || facts[0].card != tt.card || facts[0].unsure != tt.unsure || facts[0].date != "2026-01-03" || facts[1].card != "" {
			t.Errorf("%s: %+v", name, facts)
		}
		if other := g.facts(g.ownCards(text, "depot-1111")); name != "a reason" && len(other) != 0 {
			t.Errorf("%s: read as a lesson about another project: %+v", name, other)
		}
	}
	note := func(option, card, date string) fact {
		return fact{kind: factRefused, decision: "cache", option: option, state: "backend=sled", card: card, date: date}
	}
	b := beliefs{note("redis", "k1", "2026-01-09"), note("varnish", "k2", "2026-01-02"), note("ristretto", "", "")}
	if got := b.oldest("cache", "backend=sled", []string{"redis", "varnish", "ristretto"}); got != "varnish" {
		t.Errorf("the oldest note is checked first, not %q", got)
	}
	if got := b[:2].oldest("cache", "backend=sled", []string{"redis", "varnish"}); got != "" {
		t.Errorf("notes that agree are believed, and %q was checked", got)
	}
}

// TestSolutionsOfCards holds the agent to what a card says worked: in the state of the
// failure that it is about, and of nothing else.
func TestSolutionsOfCards(t *testing.T) {
	const issue = "error[R1]: cache redis is refused on backend=sled in project depot-00ff"
	for name, tt := range map[string]struct{ card, want string }{
		"a card":              {"[lesson k1 · VERIFIED · 2026-01-03]\n> " + issue + "\n> Solution: `npm test choose cache zstd` succeeded.", "zstd"},
		"on a failing result": {"[lesson k1 · VERIFIED; fits 1 of 1 like it] " + issue + "\nRepaired before with:\n  run: npm test choose cache zstd", "zstd"},
		"another decision":    {"[lesson k1 · VERIFIED]\n> " + issue + "\n> Solution: `npm test choose backend lmdb` succeeded.", ""},
		"another project":     {"[lesson k1 · VERIFIED]\n> error: cache redis is refused on backend=sled in project depot-1111\n> Solution: `npm test choose cache zstd` succeeded.", ""},
		"no card":             {issue + "\nnpm test choose cache zstd", ""},
	} {
		g := newGrammar()
		known := beliefs(g.facts(g.ownCards(tt.card, "depot-00ff")))
		if got := known.worked("cache", "backend=sled"); got != tt.want || known.worked("cache", "fresh tree") != "" {
			t.Errorf("%s: %q worked, want %q", name, got, tt.want)
		}
	}
}

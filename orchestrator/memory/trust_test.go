package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/experience"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/taskdir"
)

// memoryOf opens a task that recorded some operations, and its cards.
func memoryOf(t *testing.T, bodies ...op.Body) *Memory {
	t.Helper()
	root := t.TempDir()
	p := gatetest.Open(t, root, op.TaskOpened{Task: "t", EAS: 8000}, bodies...)
	m, err := Open(p.Ledger, p.Dir, filepath.Join(root, "cards"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func lessonCard(change func(*card.Card)) *card.Card {
	c := &card.Card{
		ID: "4yq2m5pkd3c7xw6a", Topic: "topic", State: card.Draft, Issue: []string{"`make` failed: no rule"},
		Solution: []string{"Write one."},
	}
	if change != nil {
		change(c)
	}
	return c
}

// TestOpenLayers: the project's own cards are searched before the user's, where there are any.
func TestOpenLayers(t *testing.T) {
	p := gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "t"})
	own := filepath.Join(p.Dir, filepath.FromSlash(knowledgebase.ProjectDir))
	user := filepath.Join(t.TempDir(), "cards")
	count := func(global string) (dirs []string) {
		t.Helper()
		m, err := Open(p.Ledger, p.Dir, global, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for _, s := range m.layers {
			dirs = append(dirs, s.Dir())
		}
		return dirs
	}
	if got := count(user); !slices.Equal(got, []string{user}) {
		t.Errorf("without cards of the project: %q", got)
	}
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := count(user); !slices.Equal(got, []string{user}) {
		t.Errorf("with a file in their place: %q", got)
	}
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := count(user); !slices.Equal(got, []string{own, user}) {
		t.Errorf("with cards of the project: %q", got)
	}
	if got := count(own); !slices.Equal(got, []string{own}) {
		t.Errorf("where they are the user's: %q", got)
	}
}

// TestEvidenceOf: the stream of its task confirms the operations that a card names, its failed command, and
// that the pass that wrote it rested on a pair.
func TestEvidenceOf(t *testing.T) {
	text := lessonCard(nil).Hash()
	m := memoryOf(t,
		&op.ModelReplied{Calls: []op.Call{{ID: "c1", Name: "Bash", Args: `{"command":"make"}`}}, Finish: "tool_calls"},
		&op.ToolCalled{Call: "c1", Name: "Bash", Args: `{"command":"make"}`, World: "tree"},
		&op.ToolReturned{Call: "c1", Name: "Bash", Text: "no rule"},
		&op.PassDone{
			Trigger: op.TriggerEnd, Cards: []string{"4yq2m5pkd3c7xw6a"}, Lessons: []string{text},
			Paired: []string{text},
		})
	ops, err := m.Ops(op.Range{First: 5, Last: 7})
	if err != nil {
		t.Fatal(err)
	}
	named := card.Provenance{
		Task: "t", Ranges: []card.Range{{First: 6, Last: 7}, {First: 5, Last: 5}},
		EvidenceHash: anamnesis.EvidenceHash(ops),
	}
	whole := evidence{Derived: true, Paired: true, Ran: true, World: "tree"}
	for name, tt := range map[string]struct {
		change func(*card.Card)
		want   evidence
	}{
		"whole":               {nil, whole},
		"another text":        {func(c *card.Card) { c.Solution = []string{"Delete all."} }, evidence{Derived: true, Ran: true, World: "tree"}},
		"another command":     {func(c *card.Card) { c.Issue = []string{"`ninja` failed: no rule"} }, evidence{Derived: true}},
		"no command":          {func(c *card.Card) { c.Issue = []string{"no rule"} }, evidence{Derived: true}},
		"other operations":    {func(c *card.Card) { c.Provenance.EvidenceHash = "0" }, evidence{Paired: true, Ran: true, World: "tree"}},
		"fewer operations":    {func(c *card.Card) { c.Provenance.Ranges = []card.Range{{First: 5, Last: 5}} }, evidence{Paired: true}},
		"none that exist":     {func(c *card.Card) { c.Provenance.Ranges = []card.Range{{First: 900, Last: 901}} }, evidence{}},
		"no operations":       {func(c *card.Card) { c.Provenance.Ranges = nil }, evidence{}},
		"no hash":             {func(c *card.Card) { c.Provenance.EvidenceHash = "" }, evidence{}},
		"a task that is gone": {func(c *card.Card) { c.Provenance.Task = "gone" }, evidence{}},
		"operations before 1": {func(c *card.Card) { c.Provenance.Ranges[1].First = 0 }, evidence{Paired: true, Ran: true, World: "tree"}},
	} {
		c := lessonCard(func(c *card.Card) {
			c.Provenance = named
			c.Provenance.Ranges = slices.Clone(named.Ranges)
		})
		if tt.change != nil {
			tt.change(c)
		}
		want := tt.want
		if changed := c.Hash() != text; changed {
			want.Paired = false
		}
		if got := evidenceOf(m.Home, c); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}

	// A card that only claims to be this task's has no evidence in it; one that the task wrote has.
	own := lessonCard(func(c *card.Card) { c.Provenance = named })
	claimed := lessonCard(func(c *card.Card) { c.Provenance, c.Topic = named, "another" })
	first, cached := m.evidence(own), m.evidence(own)
	if got := m.evidence(claimed); first != whole || cached != whole || got != (evidence{}) {
		t.Errorf("own: %+v, cached: %+v, claimed: %+v", first, cached, got)
	}
	m.ID = "other"
	if got := m.evidence(lessonCard(func(c *card.Card) { c.Provenance, c.Tags = named, []string{"x"} })); !got.Derived {
		t.Errorf("another task's card: %+v", got)
	}
	m.ID = "t"
	for name, tt := range map[string]struct {
		card *card.Card
		want bool
	}{
		"written":    {lessonCard(nil), true},
		"of its own": {lessonCard(func(c *card.Card) { c.Topic, c.SourceTask = "another", "t" }), true},
		"by its own": {claimed, true},
		"another's":  {lessonCard(func(c *card.Card) { c.Topic, c.SourceTask, c.Provenance.Task = "another", "u", "u" }), false},
	} {
		if got := m.claims(tt.card); got != tt.want {
			t.Errorf("%s: claims %v", name, got)
		}
	}
	// A task sees its own cards, and of others those of the required rung.
	for name, tt := range map[string]struct {
		card *card.Card
		only bool
		want bool
	}{
		"own draft":            {own, false, false},
		"own draft, reviewed":  {own, true, false},
		"another's draft":      {claimed, false, true},
		"reviewed":             {lessonCard(func(c *card.Card) { c.Topic, c.State = "another", card.Reviewed }), false, false},
		"reviewed, only those": {lessonCard(func(c *card.Card) { c.Topic, c.State = "another", card.Reviewed }), true, false},
	} {
		m.Home.ReviewedOnly = tt.only
		if got := m.trust(tt.card); got.Withheld != tt.want {
			t.Errorf("%s: withheld %v", name, got.Withheld)
		}
	}
}

// TestTrust: a reviewed card is believed, a verified one as long as its text is the one that held.
func TestTrust(t *testing.T) {
	text := lessonCard(nil).Hash()
	extractor := func(c *card.Card) { c.Provenance.Model = anamnesis.WriterExtractor }
	reviewed := func(c *card.Card) { c.State = card.Reviewed; extractor(c) }
	for name, tt := range map[string]struct {
		e      evidence
		change func(*card.Card)
		n      usage.Counts
		want   recalled.Trust
	}{
		"a draft":             {want: recalled.Trust{Rung: recalled.Hypothesis, Withheld: true}},
		"reviewed":            {change: reviewed, want: recalled.Trust{Rung: recalled.ReviewedRung}},
		"verified":            {n: usage.Counts{Verified: 1, VerifiedText: text, Met: 3}, want: recalled.Trust{Rung: recalled.Verified, Met: 3}},
		"by rules alone":      {change: extractor, n: usage.Counts{Verified: 1, VerifiedText: text}, want: recalled.Trust{Rung: recalled.Hypothesis, Withheld: true}},
		"changed since":       {n: usage.Counts{Verified: 1, VerifiedText: "0", Refuted: true}, want: recalled.Trust{Rung: recalled.Hypothesis, Withheld: true, Contradicted: true}},
		"held without a vote": {n: usage.Counts{VerifiedText: text}, want: recalled.Trust{Rung: recalled.Hypothesis, Withheld: true}},
		"with its command":    {e: evidence{Derived: true, Ran: true}, want: recalled.Trust{Rung: recalled.Hypothesis, Withheld: true, Check: "make"}},
		"without it":          {e: evidence{Derived: true}, want: recalled.Trust{Rung: recalled.Hypothesis, Withheld: true}},
		"not confirmed":       {e: evidence{Ran: true}, want: recalled.Trust{Rung: recalled.Hypothesis, Withheld: true}},
	} {
		if got := tt.e.trust(lessonCard(tt.change), tt.n); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	if got := TrustOf(taskdir.Home{State: t.TempDir()}, lessonCard(reviewed), usage.Counts{}); got.Rung != recalled.ReviewedRung {
		t.Errorf("without a stream: %+v", got)
	}
}

// TestNamedIn: what a solution names to be run or changed stands in the first line of a bullet.
func TestNamedIn(t *testing.T) {
	for text, want := range map[string]string{
		"Run `make all`, then `make test`.":                "[make all make test]",
		"Changed in Makefile: the rule\n`not this`":        "[Makefile]",
		"Reason, in the agent's words: `make` was missing": "[]",
		"Nothing is named.":                                "[]",
	} {
		if got := fmt.Sprint(namedIn(text)); got != want {
			t.Errorf("%q names %s, want %s", text, got, want)
		}
	}
	if got, want := errorOf("`make` failed: no rule"), errorOf("no rule"); got != want ||
		got == errorOf("`make` failed") {
		t.Errorf("errors %q and %q", got, want)
	}
}

// TestLineage: what a task was shown includes what the tasks of those cards had been shown, each once.
func TestLineage(t *testing.T) {
	ids := []string{"4yq2m5pkd3c7xw6a", "5yq2m5pkd3c7xw6b", "6yq2m5pkd3c7xw6c"}
	m := memoryOf(t,
		&op.CardsRecalled{Why: recallStart, Text: "cards", Cards: []op.CardRef{{ID: ids[0]}, {ID: ids[1]}}})
	if _, _, err := m.cards.Put(t.Context(), lessonCard(func(c *card.Card) { c.Provenance.Shown = []string{ids[1], ids[2]} })); err != nil {
		t.Fatal(err)
	}
	if got := m.lineage(); !slices.Equal(got, ids) {
		t.Errorf("shown: %q, want %q", got, ids)
	}
}

// TestRetireContradicted: a draft that enough tasks contradicted is retired, with those drawn from it.
func TestRetireContradicted(t *testing.T) {
	ids := []string{"4yq2m5pkd3c7xw6a", "5yq2m5pkd3c7xw6b", "6yq2m5pkd3c7xw6c"}
	states := func(contradicted int, found usage.What, first card.State) (out []card.State) {
		m := memoryOf(t)
		for i, id := range ids {
			c := lessonCard(func(c *card.Card) { c.ID, c.Topic = id, "topic "+id })
			if i == 0 {
				c.State = first
			}
			if i == 1 {
				c.Provenance.Shown = ids[:1]
			}
			if _, _, err := m.cards.Put(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		e := m.experience
		for i := range contradicted {
			if err := m.cards.Count(usage.Event{Card: ids[0], What: usage.Contradicted, Task: fmt.Sprint("u", i), Op: 1}); err != nil {
				t.Fatal(err)
			}
		}
		e.Findings = append(e.Findings, experience.Finding{Card: ids[0], What: found, Op: 1})
		if err := m.retireContradicted(&e); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			c, err := m.cards.Get(id)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, c.State)
		}
		return out
	}
	draft, retired := card.Draft, card.Retired
	for name, tt := range map[string]struct {
		tasks int
		found usage.What
		first card.State
		want  []card.State
	}{
		"by enough":      {3, usage.Contradicted, draft, []card.State{retired, retired, draft}},
		"by too few":     {2, usage.Contradicted, draft, []card.State{draft, draft, draft}},
		"by others only": {3, usage.Held, draft, []card.State{draft, draft, draft}},
		"retired before": {3, usage.Contradicted, retired, []card.State{retired, draft, draft}},
	} {
		if got := states(tt.tasks, tt.found, tt.first); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

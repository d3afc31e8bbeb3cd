package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// withCards opens a task of a repository, and cards of which the reviewed ones a user wrote.
func withCards(t *testing.T, cards []*card.Card, bodies ...op.Body) *Memory {
	t.Helper()
	m := memoryOf(t, bodies...)
	m.State().Opened.Repo = "repo"
	m.State().Said.Request = "make failed: no rule to make target all"
	if _, err := m.cards.Apply(t.Context(), knowledgebase.Change{By: knowledgebase.Person, Cards: cards}); err != nil {
		t.Fatal(err)
	}
	return m
}

// about returns a reviewed card about make's error.
func about(id, topic string, change func(*card.Card)) *card.Card {
	c := &card.Card{
		ID: id, Topic: topic, State: card.Reviewed,
		Issue:    []string{"`make all` failed: make: *** No rule to make target 'all'.  Stop."},
		Solution: []string{"Write a rule for all."},
	}
	c.Scope.Repo = "repo"
	if change != nil {
		change(c)
	}
	return c
}

// TestRecall: a task is shown few cards unasked, none of them twice, and none about what its project no longer has.
func TestRecall(t *testing.T) {
	var cards []*card.Card
	for i, what := range []string{"kernel image", "test binary", "user manual", "release archive"} {
		cards = append(cards, about(fmt.Sprint("card-", i), "make has no rule for the "+what, func(c *card.Card) {
			c.Issue = []string{"make failed: no rule to make target all of the " + what}
			c.Solution = []string{"Build the " + what + " by its own script."}
		}))
	}
	shown := func(m *Memory, why string) (ids []string, recorded bool) {
		t.Helper()
		last := m.State().Last
		if err := m.Recall(t.Context(), why); err != nil {
			t.Fatal(err)
		}
		if m.State().Last == last {
			return nil, false
		}
		o, err := m.Op(m.State().Last)
		if err != nil {
			t.Fatal(err)
		}
		b := o.Body.(*op.CardsRecalled)
		for _, c := range b.Cards {
			ids = append(ids, c.ID)
		}
		if b.Why != why || (len(ids) > 0) != (b.Text != "") {
			t.Errorf("recorded %+v", b)
		}
		return ids, true
	}
	m := withCards(t, cards)
	first, _ := shown(m, recallStart)
	if len(first) != startCards {
		t.Errorf("at the start: %q", first)
	}
	second, _ := shown(m, RecallPrompt)
	if len(second) != startCards ||
		slices.ContainsFunc(second, func(id string) bool { return slices.Contains(first, id) }) {
		t.Errorf("at further words: %q after %q", second, first)
	}
	if third, recorded := shown(m, RecallPrompt); recorded {
		t.Errorf("when all were shown: %q", third)
	}
	text, rec, err := m.Query(t.Context(), m.State().Said.Request)
	if err != nil || len(rec.Cards) != len(cards) || text != rec.Text || rec.Why != recallAsked {
		t.Errorf("asked: %+v, %v", rec, err)
	}
	if text, _, err := m.Query(t.Context(), "kubernetes ingress certificate"); text != "No card fits." || err != nil {
		t.Errorf("asked for another thing: %q, %v", text, err)
	}
	if ids, recorded := shown(withCards(t, nil), recallStart); len(ids) > 0 || !recorded {
		t.Errorf("without cards: %q, recorded %v", ids, recorded)
	}
}

// TestMet: a failed command is told of a card about its error, unless the card is the task's own, was shown
// before, or quotes another error.
func TestMet(t *testing.T) {
	command := op.Call{ID: "c1", Name: "Bash", Args: `{"command":"make all"}`}
	result := func(exit int) *tool.Result {
		return &tool.Result{Exit: &exit, Stderr: "make: *** No rule to make target 'all'.  Stop.\n"}
	}
	for name, tt := range map[string]struct {
		cards   []*card.Card
		bodies  []op.Body
		call    op.Call
		res     *tool.Result
		silent  bool
		met     string
		shown   string
		nothing bool
	}{
		"its error":           {cards: []*card.Card{about("a", "one", nil)}, res: result(2), met: "[a]", shown: "[a]"},
		"only counted":        {cards: []*card.Card{about("a", "one", nil)}, res: result(2), silent: true, met: "[a]", shown: "[]"},
		"another error":       {cards: []*card.Card{about("a", "one", func(c *card.Card) { c.Issue = []string{"`make` failed: out of memory"} })}, res: result(2), nothing: true},
		"it worked":           {cards: []*card.Card{about("a", "one", nil)}, res: result(0), nothing: true},
		"no command":          {cards: []*card.Card{about("a", "one", nil)}, res: &tool.Result{IsError: true}, nothing: true},
		"interrupted":         {cards: []*card.Card{about("a", "one", nil)}, res: result(130), nothing: true},
		"the task's own":      {cards: []*card.Card{about("a", "one", func(c *card.Card) { c.SourceTask = "t" })}, res: result(2), nothing: true},
		"a draft":             {cards: []*card.Card{about("a", "one", func(c *card.Card) { c.State = card.Draft })}, res: result(2), met: "[a]", shown: "[]"},
		"of two the reviewed": {cards: []*card.Card{about("a", "one", nil), about("b", "two", func(c *card.Card) { c.State = card.Draft })}, res: result(2), met: "[a b]", shown: "[a]"},
		"shown before": {
			cards: []*card.Card{about("a", "one", nil)}, res: result(2), nothing: true,
			bodies: []op.Body{&op.CardsRecalled{Why: recallStart, Text: "text", Cards: []op.CardRef{{ID: "a"}}}},
		},
	} {
		m := withCards(t, tt.cards, tt.bodies...)
		rec := m.Met(t.Context(), command, tt.res, !tt.silent)
		if tt.nothing {
			if rec != nil {
				t.Errorf("%s: %+v", name, rec)
			}
			continue
		}
		if rec == nil {
			t.Errorf("%s: no record", name)
			continue
		}
		var shown []string
		for _, c := range rec.Cards {
			shown = append(shown, c.ID)
		}
		slices.Sort(rec.Met)
		if fmt.Sprint(rec.Met) != tt.met || fmt.Sprint(shown) != tt.shown || (rec.Text != "") != (len(shown) > 0) ||
			rec.Why != recallFailure {
			t.Errorf("%s: %+v", name, rec)
		}
	}
}

// TestCardOfLayers: of a card in both folders the reviewed one counts, otherwise the project's.
func TestCardOfLayers(t *testing.T) {
	own := lessonCard(nil)
	for name, tt := range map[string]struct {
		user, project card.State
		want          string
	}{
		"both drafts": {card.Draft, card.Draft, "project"}, "both reviewed": {card.Reviewed, card.Reviewed, "project"},
		"the user's": {card.Reviewed, card.Draft, "user"}, "the project's": {card.Draft, card.Reviewed, "project"},
	} {
		m := memoryOf(t)
		project, err := knowledgebase.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		m.layers = knowledgebase.Layers{project, m.cards}
		for topic, state := range map[string]card.State{"user": tt.user, "project": tt.project} {
			s := m.cards
			if topic == "project" {
				s = project
			}
			c := lessonCard(func(c *card.Card) { c.Topic, c.State = topic, state })
			if _, err := s.Apply(t.Context(), knowledgebase.Change{By: knowledgebase.Person, Cards: []*card.Card{c}}); err != nil {
				t.Fatal(err)
			}
		}
		if c := m.card(own.ID); c == nil || c.Topic != tt.want {
			t.Errorf("%s: %+v", name, c)
		}
		list := []*card.Card{own, about("none", "one", nil)}
		if got := m.hashes(list, map[string]bool{own.ID: true}); len(got) != 1 || got[0] != m.card(own.ID).Hash() {
			t.Errorf("%s: hashes of one %q", name, got)
		}
		if got := m.hashes(list, nil); len(got) != 2 || got[1] != list[1].Hash() {
			t.Errorf("%s: hashes of all %q", name, got)
		}
	}
	if c := memoryOf(t).card("none"); c != nil {
		t.Errorf("a card that is not there: %+v", c)
	}
}

// TestNamesWritten: a command names a file that the task wrote if the file was written between its steps.
func TestNamesWritten(t *testing.T) {
	m := memoryOf(t)
	begun, err := m.StepEndedAt(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Record(t.Context(), &op.WorldSaved{}); err != nil {
		t.Fatal(err)
	}
	ended, err := m.StepEndedAt(m.State().Current)
	if err != nil || !ended.After(begun) {
		t.Fatalf("from %v to %v, %v", begun, ended, err)
	}
	between := begun.Add(ended.Sub(begun) / 2)
	file := filepath.Join(m.dir, "f")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(m.dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		command string
		at      int // before, between or after the steps
		want    bool
	}{{"sh f", 0, true}, {"sh g", 0, false}, {"ls d", 0, false}, {"sh f", -1, false}, {"sh f", 1, false}} {
		at := between
		if tt.at < 0 {
			at = begun
		} else if tt.at > 0 {
			at = ended
		}
		for _, name := range []string{"f", "d"} {
			if err := os.Chtimes(filepath.Join(m.dir, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
		if got := m.namesWritten(tt.command); got != tt.want {
			t.Errorf("%s, written at %d: %v", tt.command, tt.at, got)
		}
	}
}

// TestAboutProject: the cards of a task's repository are searched more freely, apart from its own.
func TestAboutProject(t *testing.T) {
	m := withCards(t, []*card.Card{
		about("here", "one", nil), about("there", "two", func(c *card.Card) { c.Scope.Repo = "other" }),
		about("own", "three", func(c *card.Card) { c.SourceTask = "t" }),
		about("both", "four", func(c *card.Card) { c.Scope.Repo, c.SourceTask = "other", "t" }),
	})
	if got := fmt.Sprint(m.aboutProject()); got != "map[here:true]" {
		t.Errorf("about the project: %s", got)
	}
	m.State().Opened.Repo = ""
	if got := m.aboutProject(); len(got) != 0 {
		t.Errorf("about no project: %v", got)
	}
}

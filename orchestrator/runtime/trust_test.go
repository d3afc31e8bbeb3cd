package runtime

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/model/script"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

// worded is a task that leaves a path, of which a model words a card that says only what the record holds.
const worded = `turns:
  - calls: [{name: Bash, arguments: {command: "cat answer.txt"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: the file has to be written first}}]
  - reply: Done.
passes:
  - reply: '{"cards": [{"topic": "No answer.txt", "issue": ["cat: answer.txt: No such file or directory"], "solution": ["cat answer.txt"], "ops": [8, 9]}]}'
`

// play runs one more task in a home, in a directory of its own, and returns its
// operations.
func play(t *testing.T, h taskdir.Home, id, words string, n New) []op.Op {
	t.Helper()
	m, err := script.Parse([]byte(words))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewRegistry(builtin.Tools(builtin.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "w") // of one name: one project
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	n.Task, n.Dir, n.Request, n.Model, n.EAS, n.Encoding, n.Approval, n.System = id, dir, cmp.Or(n.Request, "Print the answer."), m.Name(), 8000, "cl100k_base", "auto", "system"
	var ops []op.Op
	task, err := Create(t.Context(), h, n, Options{Model: m, Tools: tools, Callbacks: Callbacks{Op: func(o op.Op) { ops = append(ops, o) }}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := task.Run(t.Context())
	if err != nil || out.Err != nil {
		t.Fatalf("task %s: %+v, %v", id, out, err)
	}
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	return ops
}

func trustHome(t *testing.T) taskdir.Home {
	root := t.TempDir()
	s := filepath.Join(root, "s")
	return taskdir.Home{User: filepath.Join(root, "user"), State: s, Data: s, Config: s}
}

// cardsOf opens the home's cards for a moment.
func cardsOf(t *testing.T, h taskdir.Home, do func(*knowledgebase.Store)) {
	t.Helper()
	kb, err := knowledgebase.Open(h.KnowledgeBase(), nil)
	if err != nil {
		t.Fatal(err)
	}
	do(kb)
	if err := kb.Close(); err != nil {
		t.Fatal(err)
	}
}

// learned is the only card of a home.
func learned(t *testing.T, h taskdir.Home) (c *card.Card) {
	t.Helper()
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		list := kb.List()
		if len(list) != 1 {
			t.Fatalf("%d cards", len(list))
		}
		var err error
		if c, err = kb.Get(list[0].ID); err != nil {
			t.Fatal(err)
		}
	})
	return c
}

// TestEvidenceIsDerived: a card is verified when the stream of this machine bears out
// its evidence and names its text; whatever else it claims, it is a hypothesis.
func TestEvidenceIsDerived(t *testing.T) {
	h := trustHome(t)
	play(t, h, "one", worded, New{})
	if got := memory.TrustOf(h, learned(t, h), usage.Counts{}); got.Rung != recalled.Verified {
		t.Fatalf("the card is %+v", got)
	}
	for name, forge := range map[string]func(*card.Card){
		"another hash":                      func(c *card.Card) { c.Provenance.EvidenceHash = strings.Repeat("0", 64) },
		"other operations":                  func(c *card.Card) { c.Provenance.Ranges[0].Last = 5 },
		"no operations":                     func(c *card.Card) { c.Provenance.Ranges = nil },
		"operations from 0 to the end":      func(c *card.Card) { c.Provenance.Ranges = []card.Range{{First: 0, Last: 1<<64 - 1}} },
		"a task that is not here":           func(c *card.Card) { c.Provenance.Task = "two" },
		"a path for a task":                 func(c *card.Card) { c.Provenance.Task = "../tasks/one" },
		"a wrong lesson with true evidence": func(c *card.Card) { c.Solution = []string{"`rm answer.txt` succeeded."} },
		"a second lesson":                   func(c *card.Card) { c.Issue = append(c.Issue, "answer.txt is always missing") },
		"written by rules alone":            func(c *card.Card) { c.Provenance.Model = anamnesis.WriterExtractor },
	} {
		c := learned(t, h)
		forge(c)
		if got := memory.TrustOf(h, c, usage.Counts{}); got.Rung != recalled.Hypothesis || !got.Withheld {
			t.Errorf("%s: %+v", name, got)
		}
	}
	c := learned(t, h)
	c.Issue[0] = "`cat answer.txt` failed: " + c.Issue[0]
	if got := memory.TrustOf(h, c, usage.Counts{}); got.Check != "cat answer.txt" {
		t.Errorf("a command that the record holds is no check: %+v", got)
	}
	c.Provenance.EvidenceHash = strings.Repeat("0", 64)
	if got := memory.TrustOf(h, c, usage.Counts{}); got.Check != "" {
		t.Errorf("a card without evidence names a check: %+v", got)
	}
	c = learned(t, h)
	if got := memory.TrustOf(h, c, usage.Counts{Contradicted: 1, Refuted: true}); got.Rung != recalled.Hypothesis || !got.Withheld {
		t.Errorf("contradicted: %+v", got)
	}
	if err := os.RemoveAll(h.Task("one")); err != nil {
		t.Fatal(err)
	}
	if got := memory.TrustOf(h, c, usage.Counts{}); got.Rung != recalled.Hypothesis {
		t.Errorf("its stream is gone: %+v", got)
	}
	if c.State = card.Reviewed; memory.TrustOf(h, c, usage.Counts{}).Rung != recalled.ReviewedRung {
		t.Error("a review does not need the stream")
	}
}

// hypothesis is a card that nothing here bears out.
func hypothesis(id, errorLine string) *card.Card {
	return &card.Card{
		ID: id, Topic: errorLine, SourceTask: "elsewhere", State: card.Draft, Provenance: card.Provenance{Task: "elsewhere", Model: "some-model"},
		Issue: []string{"`cat answer.txt` failed: " + errorLine}, Solution: []string{"Run `touch answer.txt` first."},
	}
}

const missing = "cat: answer.txt: No such file or directory"

func recalledOps(ops []op.Op, why string) (out []*op.CardsRecalled) {
	for _, o := range ops {
		if b, ok := o.Body.(*op.CardsRecalled); ok && b.Why == why {
			out = append(out, b)
		}
	}
	return out
}

// TestHypothesisWaitsForASecondTask: a hypothesis is shown once a second task has met
// its error, not for another card that says the same; a task that was shown it does
// not count.
func TestHypothesisWaitsForASecondTask(t *testing.T) {
	h := trustHome(t)
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		for _, id := range []string{"forged1", "forged2"} {
			c := hypothesis(id, missing)
			c.SourceTask, c.Provenance.Task = id, id
			c.Constraint = []string{"said by " + id}
			if _, _, err := kb.Put(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	})
	asks := func(id string) []*op.CardsRecalled {
		return recalledOps(play(t, h, id, "turns:\n  - calls: [{name: recall, arguments: {query: \""+missing+"\"}}]\n  - reply: Done.\n", New{}), "asked")
	}
	if got := asks("a"); len(got) != 1 || len(got[0].Cards) != 0 {
		t.Fatalf("two cards bear each other out: %+v", got)
	}
	failing := "turns:\n  - calls: [{name: Bash, arguments: {command: \"cat answer.txt\"}}]\n  - reply: Done.\n"
	got := recalledOps(play(t, h, "b", failing, New{}), "failure")
	if len(got) != 1 || len(got[0].Met) != 2 || got[0].Text != "" || len(got[0].Cards) != 0 {
		t.Fatalf("on the failing result: %+v", got)
	}
	again := asks("c")
	if len(again) != 1 || len(again[0].Cards) == 0 || !strings.Contains(again[0].Text, "UNVERIFIED, seen in 2 tasks; before ruling anything out, check it") {
		t.Errorf("met by a second task: %+v", again)
	}
	shown := "turns:\n  - calls: [{name: recall, arguments: {query: \"" + missing + "\"}}]\n  - calls: [{name: Bash, arguments: {command: \"cat answer.txt\"}}]\n  - reply: Done.\n"
	ops := play(t, h, "d", shown, New{})
	for _, b := range recalledOps(ops, "failure") {
		if slices.Contains(b.Met, recalledOps(ops, "asked")[0].Cards[0].ID) {
			t.Errorf("a task that was shown a card counts as its witness: %+v", *b)
		}
	}
}

// TestContradictionRetires: what a task was shown and finds wrong is retired with the
// hypotheses of tasks that had been shown it; a card that the record bears out is
// withheld and stays.
func TestContradictionRetires(t *testing.T) {
	h := trustHome(t)
	play(t, h, "one", worded, New{})
	verified := learned(t, h).ID
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		child := hypothesis("child", "another error")
		child.Provenance.Shown = []string{"lie", "other"}
		for _, c := range []*card.Card{hypothesis("lie", "tar: broken.tgz: Cannot open"), child, hypothesis("alone", "a third error")} {
			if _, _, err := kb.Put(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := kb.Count(usage.Event{Card: "lie", What: usage.Met, Task: "x"}); err != nil {
			t.Fatal(err)
		}
	})
	play(t, h, "two", `turns:
  - calls: [{name: recall, arguments: {query: "`+missing+`"}}]
  - calls: [{name: recall, arguments: {query: "tar: broken.tgz: Cannot open"}}]
  - calls: [{name: Bash, arguments: {command: "echo fine"}}]
  - reply: lesson lie does not hold. lesson `+verified+` does not hold. lesson alone does not hold.
`, New{})
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		for id, want := range map[string]card.State{"lie": card.Retired, "child": card.Retired, "alone": card.Draft, verified: card.Draft} {
			if c, err := kb.Get(id); err != nil || c.State != want {
				t.Errorf("%s is %v, want %s (%v)", id, c.State, want, err)
			}
		}
		c, err := kb.Get(verified)
		if err != nil || !memory.TrustOf(h, c, kb.Counts(verified)).Withheld {
			t.Errorf("the contradicted observation is shown on: %v", err)
		}
	})
}

// TestLineage: a card names the cards that its task had been shown, and theirs.
func TestLineage(t *testing.T) {
	h := trustHome(t)
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		c := hypothesis("first", missing)
		c.Provenance.Shown = []string{"before"}
		if _, _, err := kb.Put(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := kb.Count(usage.Event{Card: "first", What: usage.Met, Task: "x"}); err != nil {
			t.Fatal(err)
		}
	})
	play(t, h, "one", worded, New{Request: "Why does it print this? " + missing})
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		for _, e := range kb.List() {
			c, err := kb.Get(e.ID)
			if err != nil || e.ID != "first" && !slices.Equal(c.Provenance.Shown, []string{"first", "before"}) {
				t.Errorf("%s was drawn after %q, %v", e.ID, c.Provenance.Shown, err)
			}
		}
	})
}

// TestOwnProject: at its start a task is shown what earlier tasks of its project met,
// where the request says enough of it for a card of the project alone; cards that
// nearly repeat one another stand in a line each.
func TestOwnProject(t *testing.T) {
	h := trustHome(t)
	play(t, h, "one", worded, New{})
	play(t, h, "two", strings.ReplaceAll(worded, "answer.txt", "answer.md"), New{})
	const nothing = "turns:\n  - reply: Seen.\n"
	const asked = "The quarterly report lacks the auditors' answer: complete it, add up each department and write a summary for the board."
	shown := func(ops []op.Op) (c *op.CardsRecalled) {
		for _, o := range ops {
			if b, ok := o.Body.(*op.CardsRecalled); ok && b.Why == "start" {
				c = b
			}
		}
		return c
	}
	if got := shown(play(t, h, "three", nothing, New{Request: asked})); len(got.Cards) != 2 || strings.Count(got.Text, "\n[lesson ") != 2 || strings.Count(got.Text, "> Issue: ") != 1 {
		t.Errorf("at the start of the project's third task: %+v", got)
	}
	if got := shown(play(t, h, "four", nothing, New{Request: asked, TaskOpened: op.TaskOpened{Repo: "elsewhere"}})); len(got.Cards) != 0 {
		t.Errorf("in another project: %+v", got)
	}
}

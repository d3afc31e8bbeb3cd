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
	"anamnesis/knowledge_base/review"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/model/script"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

// worded is a task whose command failed and later succeeded, of which a model words a lesson.
const worded = `turns:
  - calls: [{name: Bash, arguments: {command: "tar cf a.tar answer.txt"}}]
  - calls: [{name: Bash, arguments: {command: "touch answer.txt"}}]
  - calls: [{name: Bash, arguments: {command: "tar cf a.tar answer.txt"}}]
  - reply: Done.
passes:
  - reply: '{"cards": [{"topic": "The answer comes first", "issue": ["the answer is not written yet"], "solution": ["write it before packing"], "wrong_if": "tar cannot stat it even so", "ops": [7, 9, 19, 21]}]}'
`

// silent is the same task without a model's words.
var silent, _, _ = strings.Cut(worded, "passes:")

// failing is a task that meets the same error.
const failing = "turns:\n  - calls: [{name: Bash, arguments: {command: \"tar cf b.tar answer.txt\"}}]\n  - reply: Done.\n"

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
	n.Task, n.Dir, n.Request, n.Model, n.EAS, n.Encoding, n.Approval, n.System = id, dir, cmp.Or(n.Request,
		"Print the answer."), m.Name(), 8000, "cl100k_base", "auto", "system"
	var ops []op.Op
	task, err := Create(t.Context(), h, n,
		Options{Model: m, Tools: tools, Callbacks: Callbacks{Op: func(o op.Op) { ops = append(ops, o) }}})
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

// TestVerified: a lesson is verified when it held in a second task that was not shown it: the same error, the same
// change, and the success. It stays so without the tasks' folders, and only for the text that held.
func TestVerified(t *testing.T) {
	h := trustHome(t)
	trust := func() (tr recalled.Trust) {
		c := learned(t, h)
		cardsOf(t, h, func(kb *knowledgebase.Store) { tr = memory.TrustOf(h, c, kb.Counts(c.ID)) })
		return tr
	}
	play(t, h, "one", worded, New{})
	if tr := trust(); tr.Rung != recalled.Hypothesis || !tr.Withheld {
		t.Fatalf("after its own task: %+v", tr)
	}
	play(t, h, "other", strings.Replace(silent, "touch answer.txt", "echo a > answer.txt", 1),
		New{TaskOpened: op.TaskOpened{Repo: "elsewhere"}})
	if tr := trust(); tr.Rung != recalled.Hypothesis {
		t.Errorf("after another change: %+v", tr)
	}
	// another repository: it is not shown there
	play(t, h, "two", silent, New{TaskOpened: op.TaskOpened{Repo: "elsewhere"}})
	if tr := trust(); tr.Rung != recalled.Verified || tr.Withheld {
		t.Fatalf("after a second task: %+v", tr)
	}
	for _, id := range []string{"one", "two"} {
		if err := os.RemoveAll(h.Task(id)); err != nil {
			t.Fatal(err)
		}
	}
	if tr := trust(); tr.Rung != recalled.Verified {
		t.Errorf("without the tasks' folders: %+v", tr)
	}
	c := learned(t, h)
	n := usage.Counts{Verified: 1, VerifiedText: c.Hash()}
	for name, forge := range map[string]func(*card.Card){
		"another solution":       func(c *card.Card) { c.Solution = []string{"run `rm answer.txt`"} },
		"a second lesson":        func(c *card.Card) { c.Issue = append(c.Issue, "answer.txt is always missing") },
		"written by rules alone": func(c *card.Card) { c.Provenance.Model = anamnesis.WriterExtractor },
	} {
		c := learned(t, h)
		forge(c)
		if tr := memory.TrustOf(h, c, n); tr.Rung != recalled.Hypothesis || !tr.Withheld {
			t.Errorf("%s: %+v", name, tr)
		}
	}
	if c.State = card.Reviewed; memory.TrustOf(h, c, usage.Counts{}).Rung != recalled.ReviewedRung {
		t.Error("a review needs no second task")
	}
}

// TestLessonOnFailure: a model's lesson that rests on a pair is shown with a result that failed alike in its
// repository, once, unverified; a task that was shown it is no witness. No other draft is shown.
func TestLessonOnFailure(t *testing.T) {
	h := trustHome(t)
	play(t, h, "one", worded, New{})
	shown := func(ops []op.Op) (text string) {
		for _, b := range recalledOps(ops, "failure") {
			text += b.Text
		}
		return text
	}
	ops := play(t, h, "two", strings.Replace(silent, "turns:",
		"turns:\n  - calls: [{name: Bash, arguments: {command: \"tar cf c.tar answer.txt\"}}]", 1), New{})
	text := shown(ops)
	if strings.Count(text, "[lesson ") != 1 || !strings.Contains(text, "UNVERIFIED, seen in 1 task") ||
		!strings.Contains(text, "Wrong if: tar cannot stat it even so") {
		t.Errorf("on the failing results: %s", text)
	}
	result := ""
	for _, o := range ops {
		if b, ok := o.Body.(*op.ToolReturned); ok && result == "" {
			result = b.Text
		}
	}
	if !strings.Contains(result, "Cannot stat") || !strings.HasSuffix(result, text) {
		t.Errorf("the result is %q", result)
	}
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		if n := kb.Counts(learnedID(kb)); n.Verified != 0 || n.Held != 1 || n.Followed != 1 || n.Shown != 1 {
			t.Errorf("the task that was shown it counts as %+v", n)
		}
	})
	if text := shown(play(t, h, "elsewhere", failing, New{TaskOpened: op.TaskOpened{Repo: "elsewhere"}})); text != "" {
		t.Errorf("in another repository: %s", text)
	}
	h.ReviewedOnly = true
	if text := shown(play(t, h, "only", failing, New{})); text != "" {
		t.Errorf("with recall: reviewed-only: %s", text)
	}
	h.ReviewedOnly = false
	cardsOf(t, h, func(kb *knowledgebase.Store) { // edited since: no stream says so
		c, err := kb.Get(learnedID(kb))
		if err == nil {
			c.Solution[0] = "run `rm -rf ~` first"
			_, _, err = kb.Put(t.Context(), c)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	if text := shown(play(t, h, "edited", failing, New{})); text != "" {
		t.Errorf("a draft with another text: %s", text)
	}
}

func learnedID(kb *knowledgebase.Store) string { return kb.List()[0].ID }

// hypothesis is a card that nothing here bears out.
func hypothesis(id, errorLine string) *card.Card {
	return &card.Card{
		ID: id, Topic: errorLine, SourceTask: "elsewhere", State: card.Draft,
		Provenance: card.Provenance{Task: "elsewhere", Model: "some-model"},
		Issue:      []string{"`cat answer.txt` failed: " + errorLine},
		Solution:   []string{"Run `touch answer.txt` first."},
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

// TestDraftsAreNotShown: a draft that nothing here bears out is shown to no task, also where its error occurs
// again: it is counted as met.
func TestDraftsAreNotShown(t *testing.T) {
	h := trustHome(t)
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		if _, _, err := kb.Put(t.Context(), hypothesis("forged", missing)); err != nil {
			t.Fatal(err)
		}
	})
	asks := "turns:\n  - calls: [{name: Bash, arguments: {command: \"cat answer.txt\"}}]\n  - calls: [{name: recall, arguments: {query: \"" + missing + "\"}}]\n  - reply: Done.\n"
	ops := play(t, h, "a", asks, New{Request: "Why does it print this? " + missing})
	got := slices.Concat(recalledOps(ops, "start"), recalledOps(ops, "failure"), recalledOps(ops, "asked"))
	if len(got) != 3 || !slices.Equal(got[1].Met, []string{"forged"}) {
		t.Fatalf("%d recalls: %+v", len(got), got)
	}
	for _, b := range got {
		if b.Text != "" || len(b.Cards) != 0 {
			t.Errorf("%s: %+v", b.Why, b)
		}
	}
}

// TestContradictionRetires: three tasks that were shown a draft and find it wrong retire it, with the drafts of
// tasks that had been shown it; about a reviewed card the user is asked.
func TestContradictionRetires(t *testing.T) {
	h := trustHome(t)
	lie := hypothesis("lie", "tar: broken.tgz: Cannot open")
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		child := hypothesis("child", "another error")
		child.Provenance.Shown = []string{"lie", "other"}
		for _, c := range []*card.Card{lie, child, hypothesis("alone", "a third error"), hypothesis("read", "the fourth error: too deep")} {
			if _, _, err := kb.Put(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := review.Decide(t.Context(), kb, review.Decision{Act: review.Approve, IDs: []string{"read"}}); err != nil {
			t.Fatal(err)
		}
		if err := kb.Count(usage.Event{Card: "lie", What: usage.Verified, Task: "x", Text: lie.Hash()}); err != nil {
			t.Fatal(err)
		}
	})
	for i, id := range []string{"two", "three", "four"} {
		play(t, h, id, `turns:
  - calls: [{name: recall, arguments: {query: "tar: broken.tgz: Cannot open"}}]
  - calls: [{name: recall, arguments: {query: "the fourth error: too deep"}}]
  - calls: [{name: Bash, arguments: {command: "echo fine"}}]
  - reply: lesson lie does not hold. lesson read does not hold. lesson alone does not hold.
`, New{})
		cardsOf(t, h, func(kb *knowledgebase.Store) {
			gone := card.Draft
			if i == 2 {
				gone = card.Retired
			}
			for id, want := range map[string]card.State{"lie": gone, "child": gone, "alone": card.Draft, "read": card.Reviewed} {
				if c, err := kb.Get(id); err != nil || c.State != want {
					t.Errorf("after %d contradictions %s is %v, want %s (%v)", i+1, id, c.State, want, err)
				}
			}
			asked := slices.ContainsFunc(review.Waiting(kb), func(e knowledgebase.Entry) bool { return e.ID == "read" })
			if asked != (i == 2) {
				t.Errorf("after %d contradictions the user is asked about the reviewed card: %v", i+1, asked)
			}
		})
	}
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		if _, err := review.Decide(t.Context(), kb, review.Decision{Act: review.Approve, IDs: []string{"read"}}); err != nil {
			t.Fatal(err)
		}
		if list := review.Waiting(kb); len(list) != 1 || list[0].ID != "alone" {
			t.Errorf("after another approval these wait: %+v", list)
		}
	})
}

// TestLineage: a card names the cards that its task had been shown, and theirs.
func TestLineage(t *testing.T) {
	h := trustHome(t)
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		c := hypothesis("first", missing)
		c.Provenance.Shown = []string{"before"}
		held := usage.Event{Card: "first", What: usage.Verified, Task: "x", Text: c.Hash()}
		if _, _, err := kb.Put(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := kb.Count(held); err != nil {
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

// TestOwnProject: at its start a task is shown two cards of its project at most, where the request says enough
// of it for a card of the project alone.
func TestOwnProject(t *testing.T) {
	h := trustHome(t)
	play(t, h, "one", "turns:\n  - reply: Seen.\n", New{})
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		for id, topic := range map[string]string{"first": "the quarterly report wants rounded totals", "second": "auditors answer on Fridays only", "third": "a summary for the board needs a chart"} {
			c := hypothesis(id, topic)
			c.Scope.Repo, c.Issue, c.Solution, c.State = "w", []string{topic},
				[]string{"see the handbook, page " + id}, card.Reviewed
			if _, err := kb.Apply(t.Context(), knowledgebase.Change{By: knowledgebase.Person, Cards: []*card.Card{c}}); err != nil {
				t.Fatal(err)
			}
		}
	})
	const nothing = "turns:\n  - reply: Seen.\n"
	const asked = "The quarterly report lacks the auditors' answer: complete it, add up each department and write a summary for the board."
	if got := recalledOps(play(t, h, "three", nothing, New{Request: asked}), "start"); len(got[0].Cards) != 2 ||
		strings.Count(got[0].Text, "\n[lesson ") != 2 {
		t.Errorf("at a start: %+v", got[0])
	}
}

//go:build unix

package show

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"anamnesis/cmd/internal/cardfile"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/blame"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/search"
	"anamnesis/worldstate"
)

// TestLineDiff: only the lines between what both texts begin and end with are shown; no text has no line.
func TestLineDiff(t *testing.T) {
	for _, row := range [][3]string{
		{"a\nb\nc\n", "a\nB\nc\n", "- b|+ B|"}, {"a\n", "a\n", ""}, {"", "a\nb\n", "+ a|+ b|"}, {"a\n", "", "- a|"},
		{"a\nb\n", "a\n", "- b|"}, {"b\n", "a\nb\n", "+ a|"}, {"a\na\n", "a\n", "- a|"}, {"a\nb\nb\nc", "a\nb\nc", "- b|"}, {"a\n\nb", "a\nb", "- |"},
	} {
		if got := LineDiff("f", row[0], row[1]); got != "f\n"+strings.ReplaceAll(row[2], "|", "\n") {
			t.Errorf("from %q to %q: %q", row[0], row[1], got)
		}
	}
}

// printed returns what a function prints on a terminal of 80 columns, and what it writes to standard error.
func printed(f func(o *Printer)) (out, warned string) {
	var b, e bytes.Buffer
	f(&Printer{Out: &b, Err: &e, Width: 80})
	return b.String(), e.String()
}

// says checks that a text has some lines and lacks others, which begin with !.
func says(t *testing.T, name, text string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if l, not := strings.CutPrefix(l, "!"); strings.Contains(text, l) == not {
			t.Errorf("%s: %q is in it: %v:\n%s", name, l, !not, text)
		}
	}
}

// TestJumpPlan: a plan says when the jump would happen, what it would leave and compact, and what becomes of the files.
func TestJumpPlan(t *testing.T) {
	for name, row := range map[string]struct {
		plan inspect.JumpPlan
		want []string
	}{
		"nothing to move": {inspect.JumpPlan{From: 3, To: 1},
			[]string{
				"t would jump now: step 3 to step 1\n", "no file would be moved\n", "!under way", "!leave", "!pass",
				"!git", "!missing",
			}},
		"running": {inspect.JumpPlan{From: 3, To: 1, Running: true, UnderWay: 4},
			[]string{
				"t is running and would jump when its present step is complete: step 3",
				"step 4 is under way and would end first; what its calls changed since step 3 ended",
			}},
		"what it leaves": {inspect.JumpPlan{From: 3, To: 1, Discarded: []op.Range{{First: 5, Last: 9}}, Raw: 10, EAS: 20},
			[]string{"leave   ops 5", "no pass: 10 tokens discarded in all <= EAS 20\n"}},
		"repositories": {inspect.JumpPlan{Git: []op.GitMove{}}, []string{"git     nothing would be moved\n"}},
		"no directory": {inspect.JumpPlan{DirGone: true}, []string{"the directory is missing; the jump recreates it", "!no file would be moved"}},
		"files": {inspect.JumpPlan{World: worldstate.Plan{Write: []string{"a"}, Delete: []string{"b"}, Keep: []worldstate.Skip{{Path: "c", Reason: "why"}}, Conflicts: []string{"d"}}},
			[]string{"write   \"a\"\ndelete  \"b\"\nkeep    \"c\": why\nconflict \"d\": changed again since"}},
	} {
		out, warned := printed(func(o *Printer) { o.JumpPlan("t", row.plan) })
		says(t, name, out, row.want...)
		if warned != "" {
			t.Errorf("%s: warned %s", name, warned)
		}
	}
	_, warned := printed(func(o *Printer) { o.JumpPlan("t", inspect.JumpPlan{Damaged: "op 3 is damaged"}) })
	says(t, "a damaged line", warned, "op 3 is damaged; the step's snapshot in the store was used instead")
}

// TestJumped: at most twenty paths are named, and how to have everything as before.
func TestJumped(t *testing.T) {
	many := make([]string, maxToldPaths+1)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	for name, row := range map[string]struct {
		done op.JumpDone
		want []string
	}{
		"none":   {op.JumpDone{To: 1}, []string{"t is at step 1: 0 files changed; go on\n", "!as it was", "!and ", "!--overwrite"}},
		"twenty": {op.JumpDone{Reverted: many[:20], NReverted: 20, Saved: "0123456789abcdef"}, []string{many[19], "!and ", "as it was before: anamnesis world restore --task t 0123456789ab [PATH…]\n"}},
		"more":   {op.JumpDone{Reverted: many, NReverted: 40}, []string{many[19], "and 20 more\n", "!" + many[20]}},
		"edits":  {op.JumpDone{Kept: []op.Skipped{{Path: "a", Reason: "edited since the last snapshot"}}}, []string{"--overwrite takes back what you changed, too\n"}},
		"kept":   {op.JumpDone{Kept: []op.Skipped{{Path: "a", Reason: "odd"}}}, []string{"!--overwrite"}},
	} {
		out, _ := printed(func(o *Printer) { o.Jumped("t", "go on", &row.done) })
		says(t, name, out, row.want...)
	}
}

// TestSearch: a place names the commands that open it and, where the task can jump, lead back to it.
func TestSearch(t *testing.T) {
	hit := search.Hit{Task: "t", Dir: "/w", Step: 3, Op: 7, Kind: "reply", Text: "found", CanJump: true}
	for name, row := range map[string]struct {
		change func(h *search.Hit)
		task   string
		want   []string
	}{
		"a task":       {func(*search.Hit) {}, "", []string{"t  step 3 · reply · 0001-01-01 · /w\n  found\n  anamnesis show t 7 · anamnesis jump t 3\n"}},
		"no jump":      {func(h *search.Hit) { h.CanJump = false }, "", []string{"anamnesis show t 7\n"}},
		"its own":      {func(*search.Hit) {}, "t", []string{"  /jump 3\n", "!anamnesis show"}},
		"more places":  {func(h *search.Hit) { h.More, h.Also = 2, 1 }, "", []string{" · 2 more here · the same in 1 other task · /w"}},
		"of an agent":  {func(h *search.Hit) { h.Agent = "codex" }, "", []string{" · codex · /w"}},
		"another task": {func(*search.Hit) {}, "u", []string{"anamnesis show t 7"}},
	} {
		h := hit
		row.change(&h)
		says(t, name, Search(&search.Found{Hits: []search.Hit{h}}, 80, row.task), append(row.want, "!nothing found")...)
	}
	says(t, "nothing", Search(&search.Found{}, 80, ""), "nothing found; sessions of other agents")
}

// TestHits: a card's line says how far it is believed where that is not its state, and what speaks against it.
func TestHits(t *testing.T) {
	c := &card.Card{ID: "k1", Topic: "topic", State: card.Draft}
	for name, row := range map[string]struct {
		hit  recalled.Hit
		want []string
	}{
		"a draft":      {recalled.Hit{Trust: recalled.Trust{Rung: recalled.Rung(card.Draft)}}, []string{"0.50  k1  topic (draft)\n", "!nearly", "!contradict"}},
		"another rung": {recalled.Hit{Trust: recalled.Trust{Rung: "verified", Contradicted: true}, Expired: true}, []string{"(draft, verified, contradicted since, expired)\n"}},
		"others":       {recalled.Hit{Also: []string{"k2"}, Contradicts: []string{"k3", "k4"}}, []string{"nearly the same: k2\n", "contradicts k3 k4; decide which holds"}},
	} {
		row.hit.Card, row.hit.Score = c, 0.5
		out, _ := printed(func(o *Printer) { o.Hits([]recalled.Hit{row.hit}) })
		says(t, name, out, append(row.want, "!no card")...)
	}
	for name, row := range map[string]struct {
		found Found
		only  bool
		want  []string
	}{
		"nothing":       {Found{}, false, []string{"no card says enough about this\n", "!weak", "!embedder", "!withheld"}},
		"weak":          {Found{Weak: []recalled.Hit{{Card: c}}}, false, []string{"no card says enough about this\nweak matches, which no task is shown:\n0.00  k1"}},
		"an embedder":   {Found{Configure: "/h/embedder.yaml"}, false, []string{"into /h/embedder.yaml\n"}},
		"withheld":      {Found{Query: "a b", Withheld: 2}, false, []string{"2 drafts withheld until reviewed; 'again --withheld -- 'a b'' shows them\n"}},
		"only withheld": {Found{Withheld: 2}, true, []string{"!until reviewed"}},
	} {
		out, _ := printed(func(o *Printer) { o.Found(row.found, row.only, "again") })
		says(t, name, out, row.want...)
	}
}

// TestCards: a card's brackets, what became of a file, and repairs in a line each.
func TestCards(t *testing.T) {
	store, err := knowledgebase.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for want, e := range map[string]knowledgebase.Entry{
		"draft": {State: card.Draft}, "draft, tainted": {State: card.Draft, Tainted: true}, "reviewed": {State: card.Reviewed, Tainted: true},
		"superseded": {State: card.Superseded}, "draft, expired, contradicts a b, drawn from 2": {State: card.Draft, Expired: true, Contradicts: []string{"a", "b"}, Generalizes: []string{"c", "d"}},
	} {
		if got := Marks(store, e); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for want, a := range map[string]cardfile.Added{
		"added k /f\n": {ID: "k", Path: "/f", Created: true}, "already there: k /f\n": {ID: "k", Path: "/f"}, "already said by k /f\n": {ID: "k", Path: "/f", Rediscovered: true},
	} {
		if got, _ := printed(func(o *Printer) { o.Added(a) }); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	c := &card.Card{ID: "k", Topic: "topic"}
	for want, change := range map[string]func(){
		"k  topic\n": func() {}, "k  r: fails\n": func() { c.Issue, c.Scope.Repo = []string{"fails"}, "r" }, "k  r: fails (tainted)\n": func() { c.Issue, c.Scope.Repo, c.Provenance.Tainted = []string{"fails"}, "r", true },
	} {
		c.Issue, c.Scope.Repo, c.Provenance.Tainted = nil, "", false
		change()
		if got, _ := printed(func(o *Printer) { o.Repairs([]*card.Card{c}, false) }); got != "0001-01-01  "+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	st := CountCards(store)
	out, _ := printed(func(o *Printer) { o.Stats(st) })
	says(t, "no cards", out, "0 cards: 0 draft (0 tainted)", "!contradicted since it held")
	out, _ = printed(func(o *Printer) { o.Stats(CardStats{Totals: usage.Counts{Shown: 3, Refuted: true}}) })
	says(t, "refuted", out, "shown 3,", "; contradicted since it held\n")
}

// TestRemoved: what was removed, what is left, and how the history loses it.
func TestRemoved(t *testing.T) {
	dir := t.TempDir()
	store, err := knowledgebase.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for name, row := range map[string]struct {
		found  string // as JSON
		out    string
		warned bool
	}{
		"none":                {`{}`, "no secrets found\n", false},
		"in files":            {`{"files":[{}]}`, "nothing was changed: 'anamnesis kb redact --yes' removes them", false},
		"in both":             {`{"files":[{}],"history":[{}]}`, "nothing was changed: 'anamnesis kb redact --yes' removes them", false},
		"in the history":      {`{"history":[{}]}`, "", true},
		"removed":             {`{"files":[{}],"done":true}`, "removed from 1 file; rotate each secret", false},
		"removed, but for it": {`{"files":[{}],"history":[{}],"done":true}`, "removed from 1 file; rotate each secret", true},
	} {
		var found knowledgebase.Secrets
		if err := json.Unmarshal([]byte(row.found), &found); err != nil {
			t.Fatal(err)
		}
		out, warned := printed(func(o *Printer) { o.Removed(store, &found) })
		if !strings.HasPrefix(out, row.out) || (out == "") != (row.out == "") ||
			strings.Contains(warned, "git -C "+dir+" filter-repo") != row.warned || (warned != "") != row.warned {
			t.Errorf("%s: %q, warned %q", name, out, warned)
		}
	}
}

// TestBlame: each line has its origin's label; an origin says which commands show more, and how to undo a step.
func TestBlame(t *testing.T) {
	step := blame.Origin{
		Kind: blame.Step, Task: "t", Step: 2, Parent: 1, Request: &blame.Op{Seq: 3, Text: "do it"}, Reply: "I do",
		Calls: []blame.Op{{Seq: 5}, {Seq: 6}}, Path: "old",
	}
	for name, row := range map[string]struct {
		origin blame.Origin
		head   string
		names  string // of the rows
	}{
		"a step":      {step, "step 2 of t, ", "you agent call or file more  undo"},
		"read only":   {blame.Origin{Kind: blame.Step, Task: "t", ReadOnly: true, Agent: "codex", Request: &blame.Op{}}, "step 0 of t, ", "you"},
		"a commit":    {blame.Origin{Kind: blame.Commit, Commit: "0123456789abcdef", Author: "a", Title: "x"}, "no task wrote it: commit 0123456789ab of a, ", "title more"},
		"before":      {blame.Origin{Kind: blame.Before}, "no task wrote it, and it is in no commit", ""},
		"since":       {blame.Origin{Kind: blame.Since}, "changed since the last snapshot", ""},
		"the user":    {blame.Origin{Kind: blame.User, Task: "t", Request: &blame.Op{}, Calls: step.Calls[:1]}, "changed by you", "perhaps you more"},
		"not known":   {blame.Origin{Kind: blame.Unknown, Why: "lost"}, "not known: lost", ""},
		"by user why": {blame.Origin{Kind: blame.User, Why: "between steps"}, "changed by you, between steps", ""},
	} {
		head, rows := BlameOrigin(row.origin)
		var names []string
		for _, r := range rows {
			names = append(names, r[0])
		}
		if !strings.HasPrefix(head, row.head) || strings.Join(names, " ") != row.names ||
			strings.Contains(head, "a session of codex") != (row.origin.Agent != "") {
			t.Errorf("%s: %q, rows %q", name, head, names)
		}
	}
	a := &blame.Answer{File: "f",
		Lines:   []blame.Line{{Number: 9, Origin: 0, Text: "x\r"}, {Number: 10, Origin: 1, Text: "y"}},
		Origins: []blame.Origin{step, {Kind: blame.User}}}
	says(t, "a file", Blame(a), " 9  t@2  x\n10  you  y\n\n", "anamnesis blame f:LINE says more of a line\n",
		"you  changed by you\n", "!undo")
	a.Asked = true
	says(t, "its lines", Blame(a), "  undo     anamnesis jump t 1 --dry-run", "\n\nchanged by you\n", "!f:LINE")
}

// failing is a writer that cannot write.
type failing struct{ err error }

func (f *failing) Write([]byte) (int, error) { return 0, f.err }

// TestPrinter: the first failure to write is kept.
func TestPrinter(t *testing.T) {
	first := errors.New("first")
	w := &failing{first}
	o := Printer{Out: w}
	o.Printf("a")
	w.err = errors.New("second")
	if o.Println("b"); !errors.Is(o.Failed, first) {
		t.Error(o.Failed)
	}
}

//go:build unix

package show

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/cmd/internal/cardfile"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/review"
	"anamnesis/knowledge_base/usage"
)

func (o *Printer) Hits(hits []recalled.Hit) {
	if len(hits) == 0 {
		o.Println("no card says enough about this")
	}
	for _, h := range hits {
		mark := ""
		if string(h.Trust.Rung) != string(h.Card.State) {
			mark = ", " + string(h.Trust.Rung)
		}
		if h.Trust.Contradicted {
			mark += ", contradicted since"
		}
		if h.Expired {
			mark += ", expired"
		}
		o.Printf("%.2f  %s  %s (%s%s)\n      %s\n", h.Score, h.Card.ID, view.Clean(h.Card.Topic), h.Card.State, mark,
			cardfile.PathText(h.Path))
		if len(h.Also) > 0 {
			o.Printf("      nearly the same: %s\n", view.Clean(strings.Join(h.Also, " ")))
		}
		if len(h.Contradicts) > 0 {
			o.Printf("      contradicts %s; decide which holds: 'anamnesis kb retire ID' ends the other\n",
				view.Clean(strings.Join(h.Contradicts, " ")))
		}
	}
}

func (o *Printer) Stats(st CardStats) {
	total := 0
	for _, n := range st.States {
		total += n
	}
	o.Printf("%s: %d draft (%d tainted), %d reviewed, %d retired, %d superseded; %d expired, %d files not readable\n",
		quote.Number(total, "card"), st.States[card.Draft], st.Tainted, st.States[card.Reviewed],
		st.States[card.Retired], st.States[card.Superseded], st.Expired, st.Broken)
	o.Printf("all: %s\n", figures(st.Totals))
	for _, c := range st.Cards {
		o.Printf("%s  %s (%s): %s\n", c.ID, view.Clean(c.Topic), c.State, figures(c.Counts))
	}
}

func figures(c usage.Counts) string {
	text := fmt.Sprintf("shown %d, opened %d, followed %d, held %d, contradicted %d; tasks helpful %d, harmful %d; "+
		"met independently %d, verified %d, rediscovered %d",
		c.Shown, c.Used, c.Followed, c.Held, c.Contradicted, c.Helpful, c.Harmful, c.Met, c.Verified, c.Rediscovered)
	if c.Refuted {
		text += "; contradicted since it held"
	}
	return text
}

// Marks is what is in brackets behind a card: its state and what a user
// should know of it.
func Marks(store *knowledgebase.Store, e knowledgebase.Entry) string {
	out := []string{string(e.State)}
	if by := store.SupersededBy(e.ID); e.State == card.Superseded && len(by) > 0 {
		out[0] += " by " + strings.Join(by, " ")
	}
	if e.Tainted && e.State == card.Draft {
		out = append(out, "tainted")
	}
	if e.Expired {
		out = append(out, "expired")
	}
	if len(e.Contradicts) > 0 {
		out = append(out, "contradicts "+strings.Join(e.Contradicts, " "))
	}
	if len(e.Generalizes) > 0 {
		out = append(out, fmt.Sprintf("drawn from %d", len(e.Generalizes)))
	}
	return view.Clean(strings.Join(out, ", "))
}

// Repairs prints repairs, a line each or, whole, as cards.
func (o *Printer) Repairs(repairs []*card.Card, whole bool) {
	if len(repairs) == 0 {
		o.Notef("no repairs to list; tasks record commands that failed and later succeeded")
	}
	for _, c := range repairs {
		if whole {
			o.Printf("%s\n", view.Clean(string(c.Markdown())))
			continue
		}
		what := c.Topic
		if len(c.Issue) > 0 { // with the command: many failures have one topic
			what = strings.TrimPrefix(c.Scope.Repo+": ", ": ") + c.Issue[0]
		}
		line := c.Created.Format(time.DateOnly) + "  " + c.ID + "  " + view.Clean(what)
		if c.Provenance.Tainted {
			line += " (tainted)"
		}
		o.Printf("%s\n", view.Fit(o.Out, line))
	}
}

func (o *Printer) Secrets(found *knowledgebase.Secrets) {
	for _, p := range found.Files {
		o.Printf("file     %s: %s\n", cardfile.PathText(p.Path), strings.Join(p.Kinds, ", "))
	}
	for _, p := range found.History {
		o.Printf("history  %s: %s\n", cardfile.PathText(p.Path), strings.Join(p.Kinds, ", "))
	}
	for _, p := range found.Unread {
		o.Notef("%s is too long or no text, and stays as it is", cardfile.PathText(p))
	}
}

// Removed says what was done, and what is left to do.
func (o *Printer) Removed(store *knowledgebase.Store, found *knowledgebase.Secrets) {
	switch {
	case found.Done:
		o.Printf("removed from %s; rotate each secret: it was stored in the clear\n",
			quote.Number(len(found.Files), "file"))
	case len(found.Files) > 0:
		o.Println("nothing was changed: 'anamnesis kb redact --yes' removes them from the files")
	case len(found.History) == 0:
		o.Println("no secrets found")
	}
	switch {
	case found.Done && store.InProject():
		o.Notef("the project's own git history was not looked at: rotate the secret, and rewrite that history with " +
			"'git filter-repo'")
	case len(found.History) > 0 && (found.Done || len(found.Files) == 0):
		dir := store.Dir()
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		o.Notef("the git history still holds secrets: write each on a line of a file F and run 'git -C %s "+
			"filter-repo --force --replace-text F --replace-message F', then replace each remote's history with 'git "+
			"push --force'",
			shell.QuoteIfNeeded(dir))
	}
}

type CardStats struct {
	States  map[card.State]int `json:"states"`
	Tainted int                `json:"tainted_drafts"`
	Expired int                `json:"expired"`
	Broken  int                `json:"broken"`
	Totals  usage.Counts       `json:"totals"`
	Cards   []CountedCard      `json:"cards"` // those with any count, most shown first
}

type CountedCard struct {
	ID    string     `json:"id"`
	Topic string     `json:"topic"`
	State card.State `json:"state"`
	usage.Counts
}

func CountCards(store *knowledgebase.Store) CardStats {
	st := CardStats{States: make(map[card.State]int), Broken: len(store.Broken()), Cards: []CountedCard{}}
	for _, e := range store.List() {
		st.States[e.State]++
		if e.Tainted && e.State == card.Draft {
			st.Tainted++
		}
		if e.Expired {
			st.Expired++
		}
		c := e.Counts
		if c == (usage.Counts{}) {
			continue
		}
		st.Totals.Add(c)
		st.Cards = append(st.Cards, CountedCard{e.ID, e.Topic, e.State, c})
	}
	slices.SortFunc(st.Cards, func(a, b CountedCard) int {
		return cmp.Or(cmp.Compare(b.Shown, a.Shown),
			cmp.Compare(b.Rediscovered, a.Rediscovered), cmp.Compare(a.ID, b.ID))
	})
	return st
}

// Synced says what a sync did.
func (o *Printer) Synced(got *knowledgebase.Synced) {
	for _, id := range got.Conflicts {
		o.Notef("%s was changed on both sides: the other version waits in 'kb review'", cardfile.PathText(id))
	}
	for _, r := range got.Renamed {
		o.Notef("the remote's card %s says something else than the card of that id here, which stays; the remote's "+
			"is the draft %s", cardfile.PathText(r.From), r.To)
	}
	for _, id := range got.Drafts {
		o.Notef("%s was reviewed here and has another state there: it counts as the other version says only once "+
			"you review it", cardfile.PathText(id))
	}
	pushed := "nothing to push"
	if got.Pushed {
		pushed = "pushed"
	}
	o.Printf("%d files taken in, %d conflicts, %s\n", len(got.Paths), len(got.Conflicts)+len(got.Renamed), pushed)
}

// Waiting prints a card that waits for a review: its id and state, what a reader should know, its text.
func (o *Printer) Waiting(it review.Item) {
	o.Printf("=== %s (%s)\n", it.ID, it.State)
	for _, note := range it.Notes {
		o.Printf("%%%% %s\n", view.Line(note, 1000))
	}
	o.Printf("%s\n", view.Clean(strings.TrimSpace(string(it.Text))))
}

// Added says what became of a card's file.
func (o *Printer) Added(added cardfile.Added) {
	what := "added"
	switch {
	case added.Rediscovered:
		what = "already said by"
	case !added.Created:
		what = "already there:"
	}
	o.Printf("%s %s %s\n", what, added.ID, cardfile.PathText(added.Path))
}

func (o *Printer) History(revs []history.Revision, brief bool) {
	for _, r := range revs {
		o.Printf("%s  %s  %s: %s\n", r.At.Format("2006-01-02 15:04"), r.ID[:10],
			view.Clean(r.Author.Name), view.Clean(r.Message))
		if brief {
			continue
		}
		o.Printf("%s\n", view.Clean(r.Diff))
	}
}

// Found is the answer to a search of cards.
type Found struct {
	Query string         `json:"query"`
	Hits  []recalled.Hit `json:"hits"`
	// Weak are cards that share words with the query and say too little of it for a task.
	Weak     []recalled.Hit `json:"weak,omitempty"`
	Withheld int            `json:"withheld"`
	// Configure is the file that may name an embedder, where only that would find more.
	Configure string `json:"-"`
}

// Found prints what a search found. again is the command that searches once more; withheldOnly, that it searched
// only what is withheld.
func (o *Printer) Found(f Found, withheldOnly bool, again string) {
	o.Hits(f.Hits)
	if len(f.Weak) > 0 {
		o.Println("weak matches, which no task is shown:")
		o.Hits(f.Weak)
	}
	if f.Configure != "" {
		o.Printf("no card shares a word with it; an embedder finds paraphrases: write 'kind: ollama' and 'model: "+
			"nomic-embed-text' into %s\n", f.Configure)
	}
	if !withheldOnly && f.Withheld > 0 {
		o.Printf("%s withheld until reviewed; '%s --withheld -- %s' shows them\n", quote.Number(f.Withheld, "draft"),
			again, shell.QuoteIfNeeded(card.OneLine(f.Query)))
	}
}

package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/experience"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/pair"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// The levels of trust: what a card claims is derived again from the streams of this machine.
// See docs/guides/trust.md.

// evidence is what the stream of a card's task confirms of the card.
type evidence struct {
	Derived bool   `json:"derived"` // the evidence hash matches the operations that the card names
	Paired  bool   `json:"paired"`  // the pass that wrote the card's text names it as resting on a pair
	Ran     bool   `json:"ran"`     // the card's failed command is among them
	World   string `json:"world"`   // the tree it ran in
}

// errDerived ends a walk over a stream once the rest is irrelevant to the card.
var errDerived = errors.New("derived")

// evidenceOf derives a card's evidence from its task's stream.
func evidenceOf(h taskdir.Home, c *card.Card) (e evidence) {
	p := &c.Provenance
	if p.EvidenceHash == "" || len(p.Ranges) == 0 {
		return e
	}
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, r := range p.Ranges {
		first, last = min(first, r.First), max(last, r.Last)
	}
	lesson, check := c.Hash(), recalled.CheckOf(c)
	var ops []op.Op
	err := taskdir.EachOpSince(h, p.Task, max(first, 1)-1, func(o op.Op) error {
		if slices.ContainsFunc(p.Ranges, func(r card.Range) bool { return r.First <= o.Seq && o.Seq <= r.Last }) {
			ops = append(ops, o)
		}
		if b, ok := o.Body.(*op.PassDone); ok {
			e.Paired = e.Paired || slices.Contains(b.Paired, lesson)
		}
		// The pass that wrote the card comes after the steps that it read: the walk continues until it is found.
		if e.Paired && o.Seq > last {
			return errDerived
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDerived) {
		return evidence{} // a stream that is missing or cannot be read confirms nothing
	}
	e.Derived = len(ops) > 0 && anamnesis.EvidenceHash(ops) == p.EvidenceHash
	for _, o := range ops {
		b, ok := o.Body.(*op.ToolCalled)
		if ok && check != "" && pair.SameCommand(check, shell.Command(b.Args)) {
			e.Ran, e.World = true, b.World
		}
	}
	return e
}

// TrustOf returns how far a card may be trusted on this machine. n are its counters.
func TrustOf(h taskdir.Home, c *card.Card, n usage.Counts) recalled.Trust {
	e := evidenceOf(h, c)
	return e.trust(c, n)
}

func (e *evidence) trust(c *card.Card, n usage.Counts) recalled.Trust {
	tr := recalled.Trust{Rung: recalled.Hypothesis, Met: n.Met, Contradicted: n.Refuted}
	if e.Derived && e.Ran {
		tr.Check = recalled.CheckOf(c)
	}
	switch {
	case c.State == card.Reviewed:
		tr.Rung = recalled.ReviewedRung
	case c.Provenance.Model == anamnesis.WriterExtractor: // earlier versions wrote drafts by rules alone
		tr.Withheld = true
	case n.Verified > 0 && n.VerifiedText == c.Hash():
		tr.Rung = recalled.Verified
	default:
		tr.Withheld = true
	}
	return tr
}

// evidence is evidenceOf, cached by the text of the card.
func (m *Memory) evidence(c *card.Card) evidence {
	if c.Provenance.Task == m.ID && !m.own(c) {
		return evidence{} // it claims to be this task's, or has yet to be recorded
	}
	key := sha256.Sum256(c.Markdown())
	if e, ok := m.trusted.Load(key); ok {
		return e.(evidence)
	}
	e := cmp.Or(evidenceOf(m.Home, c), m.elsewhere[c.Hash()])
	m.trusted.Store(key, e)
	return e
}

// trust returns how far this task may trust a card. A task sees its own cards whatever their
// evidence.
func (m *Memory) trust(c *card.Card) recalled.Trust {
	e := m.evidence(c)
	tr := e.trust(c, m.cards.Counts(c.ID))
	tr.Withheld = (tr.Withheld || m.Home.ReviewedOnly && tr.Rung != recalled.ReviewedRung) && !m.own(c)
	return tr
}

// wrote returns the lessons that this task wrote, as its own stream names them. What a card says of
// its task proves nothing: cards arrive by clone, sync and import.
func (m *Memory) wrote() []string {
	e, err := m.experienced()
	if err != nil {
		return nil // the damage is reported when it matters
	}
	return e.Wrote
}

func (m *Memory) own(c *card.Card) bool { return slices.Contains(m.wrote(), c.Hash()) }

// claims reports whether a card is, or says that it is, of this task. Such a card is no second witness.
func (m *Memory) claims(c *card.Card) bool {
	return c.SourceTask == m.ID || c.Provenance.Task == m.ID || m.own(c)
}

// cardRef returns a reference to a card that is shown, with its claims that the task can
// confirm.
func (m *Memory) cardRef(h recalled.Hit) op.CardRef {
	c := h.Card
	ref := op.CardRef{
		ID: c.ID, Topic: c.Topic, State: string(c.State), Score: h.Score, Rung: string(h.Trust.Rung),
		Check: recalled.CheckOf(c),
	}
	if len(c.Issue) > 0 {
		ref.Error = errorOf(c.Issue[0])
	}
	if e := m.evidence(c); e.Derived {
		ref.World = e.World
	}
	for _, s := range c.Solution {
		ref.Tries = append(ref.Tries, namedIn(s)...)
	}
	return ref
}

// namedIn returns what a bullet of a solution names to be run or changed. The lines of a change and an
// agent's reason name nothing.
func namedIn(solution string) (out []string) {
	if strings.HasPrefix(solution, "Reason, in the agent's words: ") {
		return nil
	}
	head, _, _ := strings.Cut(solution, "\n")
	for _, m := range named().FindAllStringSubmatch(head, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

var named = shell.Pattern("`([^`]+)`|^Changed in ([^:]+):")

// errorOf returns the normal form of the error that an issue quotes, or of the issue if it quotes none.
func errorOf(issue string) string {
	if _, line, ok := strings.Cut(issue, " failed: "); ok {
		issue = line
	}
	return failure.Normal(issue)
}

// lineage returns the cards that the task has been shown, and those that their tasks had been
// shown.
func (m *Memory) lineage() []string {
	e, err := m.experienced()
	if err != nil {
		return nil // the damage is reported when it matters
	}
	var out []string
	add := func(id string) {
		if !slices.Contains(out, id) && len(out) < card.MaxListItems {
			out = append(out, id)
		}
	}
	for _, s := range e.Shown {
		add(s.Card)
	}
	for _, s := range e.Shown {
		if c := m.card(s.Card); c != nil {
			for _, id := range c.Provenance.Shown {
				add(id)
			}
		}
	}
	return out
}

// card returns a card of any layer, nil if it was removed; of several the reviewed one, else the nearest.
func (m *Memory) card(id string) *card.Card {
	var found *card.Card
	for _, s := range m.layers {
		if c, err := s.Get(id); err == nil &&
			(found == nil || c.State == card.Reviewed && found.State != card.Reviewed) {
			found = c
		}
	}
	return found
}

// hashes returns the hashes of the stored cards of which is true, or of all if which is nil.
func (m *Memory) hashes(cards []*card.Card, which map[string]bool) (out []string) {
	for _, c := range cards {
		if which != nil && !which[c.ID] {
			continue
		}
		if stored := m.card(c.ID); stored != nil { // secrets are redacted on the way in
			c = stored
		}
		out = append(out, c.Hash())
	}
	return out
}

// retireContradicted retires the drafts that this task contradicted as the last of several, and
// the drafts of tasks that had been shown them. About a reviewed card the user is asked.
func (m *Memory) retireContradicted(e *experience.Log) error {
	gone := make(map[string]bool)
	for _, b := range e.Findings {
		n := m.cards.Counts(b.Card)
		if b.What == usage.Contradicted && n.Refutes() && m.draft(b.Card) != nil {
			gone[b.Card] = true
		}
	}
	if len(gone) == 0 {
		return nil
	}
	var ch knowledgebase.Change
	for _, entry := range m.cards.List() {
		c := m.draft(entry.ID)
		if c == nil ||
			!gone[c.ID] && !slices.ContainsFunc(c.Provenance.Shown, func(id string) bool { return gone[id] }) {
			continue
		}
		c.State = card.Retired
		ch.Cards = append(ch.Cards, c)
	}
	if len(ch.Cards) == 0 {
		return nil
	}
	ch.Message = fmt.Sprintf("Retire %s that task %s contradicted", quote.Number(len(ch.Cards), "card"), m.ID)
	if _, err := m.cards.Apply(context.Background(), ch); err != nil {
		return fmt.Errorf("retire contradicted cards: %w", err)
	}
	return nil
}

// draft returns a draft of the user's folder, or nil.
func (m *Memory) draft(id string) *card.Card {
	c, err := m.cards.Get(id)
	if err != nil || c.State != card.Draft {
		return nil
	}
	return c
}

package dream

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/quote"
	"anamnesis/knowledge_base/card"
)

//go:embed prompt/system.md
var systemPrompt string

//go:embed prompt/group.md
var groupPrompt string

//go:embed prompt/schema.json
var schemaText string

// Limits of what a model is shown and may answer.
const (
	maxShownRunes = 4_000     // of one card
	maxReplyBytes = 256 << 10 // of one answer
	maxBullets    = 8         // of one kind, in one answer
)

// Writer lets a model word proposals.
type Writer struct {
	Model consult.Model
	Name  string // of the model, for the card's provenance
}

// Proposal is a general card for a group, to be stored as a draft.
type Proposal struct {
	Card      *card.Card   `json:"card"`
	Instances []*card.Card `json:"instances"`
	Likeness  float64      `json:"likeness"`
	// Notes say what of the model's answer was dropped.
	Notes []string `json:"notes,omitempty"`
}

// Declined is returned for a group of which the model says that it is not one
// lesson.
type Declined struct {
	IDs []string
	Why string // the model's words, on one line; may be empty
}

func (d *Declined) Error() string {
	why := d.Why
	if why == "" {
		why = "it gives no reason"
	}
	return fmt.Sprintf("the model does not see one lesson in %s: %s", strings.Join(d.IDs, " "), why)
}

// answer is the form the schema asks for.
type answer struct {
	Same       *bool       `json:"same"`
	Why        string      `json:"why"`
	Instances  []string    `json:"instances"`
	Topic      string      `json:"topic"`
	Issue      []statement `json:"issue"`
	Solution   []statement `json:"solution"`
	Constraint []statement `json:"constraint"`
}

type statement struct {
	Text string   `json:"text"`
	From []string `json:"from"`
}

// Write proposes a card for a group. The model may leave cards out, or decline (a *[Declined]). A
// statement is accepted only if it names the cards that it is taken from, and if its quotes and numbers
// occur in them.
func (w Writer) Write(ctx context.Context, g Group, now time.Time) (*Proposal, error) {
	p, err := w.ask(ctx, g, now)
	if err != nil && !errors.As(err, new(*Declined)) {
		return nil, fmt.Errorf("write a general card for %s: %w", strings.Join(g.IDs(), " "), err)
	}
	return p, err
}

func (w Writer) ask(ctx context.Context, g Group, now time.Time) (*Proposal, error) {
	system := consult.Fill(systemPrompt, "schema", strings.TrimSpace(schemaText))
	reply, err := w.Model.Complete(ctx, system, promptText(g))
	if err != nil {
		return nil, fmt.Errorf("the request failed: %w", err)
	}
	var a answer
	if err := consult.Object(reply.Text, maxReplyBytes, &a); err != nil {
		return nil, err
	}
	switch {
	case a.Same == nil:
		return nil, errors.New("the reply does not say whether it is one lesson")
	case !*a.Same:
		return nil, &Declined{g.IDs(), quote.ClipMarked(quote.Squash(a.Why), maxBulletRunes)}
	}
	cards := slices.DeleteFunc(slices.Clone(g.Cards), func(c *card.Card) bool { return !slices.Contains(a.Instances, c.ID) })
	if len(cards) < 2 {
		return nil, fmt.Errorf("the reply names %d of the cards as instances, at least two are needed", len(cards))
	}
	if oneTask(cards) {
		return nil, &Declined{g.IDs(), "what it would keep was learned in one task"}
	}
	p := &Proposal{Card: draft(cards, w.Name, now), Instances: cards, Likeness: g.Likeness}
	return p, p.fill(a)
}

// promptText is what the model is asked about a group.
func promptText(g Group) string {
	var b strings.Builder
	for _, c := range g.Cards {
		fmt.Fprintf(&b, "card %s\n| topic: %s\n| learned in: %s\n", c.ID, quote.Squash(c.Topic), quote.Squash(c.SourceTask))
		left := maxShownRunes
		for label, text := range c.Bullets() {
			line := quote.ClipMarked(label+": "+quote.Squash(text), max(left, 1))
			left -= len([]rune(line))
			fmt.Fprintf(&b, "| %s\n", line)
			if left <= 0 {
				b.WriteString("(the rest of this card is left out)\n")
				break
			}
		}
		b.WriteString("\n")
	}
	return consult.Fill(groupPrompt, "cards", strings.TrimSpace(b.String()))
}

// fill fills the card with what of the answer its instances support.
func (p *Proposal) fill(a answer) error {
	dropped := 0
	keep := func(list []statement) (out []string) {
		for _, s := range list {
			text := quote.Squash(s.Text)
			if len(out) == maxBullets || text == "" || len([]rune(text)) > maxBulletRunes || !p.grounded(text, s.From) {
				dropped++
				continue
			}
			out = append(out, text)
		}
		return out
	}
	c := p.Card
	c.Issue, c.Solution, c.Constraint = keep(a.Issue), keep(a.Solution), keep(a.Constraint)
	if len(c.Issue) == 0 || len(c.Solution) == 0 {
		return fmt.Errorf("nothing usable is left of the reply: the cards do not support %d of its statements", dropped)
	}
	c.Topic = quote.ClipMarked(quote.Squash(a.Topic), maxTopicRunes)
	if c.Topic == "" || !p.grounded(c.Topic, c.Generalizes) {
		c.Topic = quote.ClipMarked(c.Issue[0], maxTopicRunes)
		dropped++
	}
	if dropped > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d statements of the model were dropped: the cards do not support them", dropped))
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("the reply makes no card: %w", err)
	}
	return nil
}

var numberPattern = regexp.MustCompile(`\d[\d.,]*\d|\d`)

// grounded reports whether a text names instances, and whether what it quotes
// and its numbers occur in them.
func (p *Proposal) grounded(text string, from []string) bool {
	var b strings.Builder
	for _, c := range p.Instances {
		if !slices.Contains(from, c.ID) {
			continue
		}
		b.WriteString(quote.Squash(c.Topic) + "\n")
		for _, bullet := range c.Bullets() {
			b.WriteString(quote.Squash(bullet) + "\n")
		}
	}
	said := b.String()
	if said == "" || slices.ContainsFunc(from, func(id string) bool { return !slices.Contains(p.Card.Generalizes, id) }) {
		return false
	}
	if slices.ContainsFunc(quote.Quoted(text), func(q string) bool { return !strings.Contains(said, q) }) {
		return false
	}
	has := numberPattern.FindAllString(said, -1)
	return !slices.ContainsFunc(numberPattern.FindAllString(text, -1), func(n string) bool { return !slices.Contains(has, n) })
}

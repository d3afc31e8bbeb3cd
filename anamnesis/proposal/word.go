package proposal

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/quote"
)

//go:embed prompt/system.md
var systemPrompt string

//go:embed prompt/proposals.md
var proposalsPrompt string

const (
	maxWorded         = 40  // proposals shown to a model at once, the first ones
	maxRationaleRunes = 400 // longest rationale
	maxReplyBytes     = 256 << 10
)

// promptText is what a model is asked.
func promptText(ps []Proposal) string {
	var b strings.Builder
	for _, p := range ps {
		fmt.Fprintf(&b, "id %s: %s, now %d tokens, proposed %d\n", p.ID, p.Row.Pattern, p.Was.EAS, p.Row.EAS)
		for _, e := range p.Evidence {
			fmt.Fprintf(&b, "| %s\n", quote.Squash(e))
		}
		b.WriteString("\n")
	}
	return consult.Fill(proposalsPrompt, "proposals", strings.TrimSpace(b.String()))
}

// Word has a model put proposals into words and into an order. What it says is
// taken only where it names a proposal once and uses no number that its
// evidence does not have; the notes say what was not taken. Proposals it does
// not name keep their order behind the others. On an error the proposals are
// as they were.
func Word(ctx context.Context, m consult.Model, ps []Proposal) (worded []Proposal, notes []string, err error) {
	shown := ps[:min(len(ps), maxWorded)]
	if len(shown) < len(ps) {
		notes = append(notes, fmt.Sprintf("%d of %d proposals were not shown to the model", len(ps)-len(shown), len(ps)))
	}
	c, err := m.Complete(ctx, strings.TrimSpace(systemPrompt), promptText(shown))
	if err != nil {
		return ps, notes, fmt.Errorf("word the proposals: %w", err)
	}
	var reply struct {
		Proposals []struct{ ID, Rationale string }
	}
	if err := consult.Object(c.Text, maxReplyBytes, &reply); err != nil {
		return ps, notes, fmt.Errorf("word the proposals: %w", err)
	}
	rest := slices.Clone(ps)
	for _, r := range reply.Proposals {
		i := slices.IndexFunc(rest, func(p Proposal) bool { return p.ID == r.ID })
		if i < 0 {
			notes = append(notes, fmt.Sprintf("the model named %.20q, which is no proposal, or twice", r.ID))
			continue
		}
		p := rest[i]
		rest = slices.Delete(rest, i, i+1)
		if n := ungrounded(p, r.Rationale); n != "" {
			notes = append(notes, fmt.Sprintf("%s: the model's words were dropped: %s is not in the evidence", p.ID, n))
		} else if words := []rune(quote.Squash(r.Rationale)); len(words) > maxRationaleRunes {
			notes = append(notes, fmt.Sprintf("%s: the model's words were dropped: more than %d characters", p.ID, maxRationaleRunes))
		} else {
			p.Rationale = string(words)
		}
		worded = append(worded, p)
	}
	return append(worded, rest...), notes, nil
}

var number = regexp.MustCompile(`\d[\d.,]*`)

// ungrounded returns a number of a text that does not occur in the proposal, or "".
func ungrounded(p Proposal, text string) string {
	has := strings.Join(p.Evidence, "\n") + fmt.Sprintf("\n%d\n%d\n%s", p.Was.EAS, p.Row.EAS, p.Row.Pattern)
	known := make(map[string]bool)
	for _, n := range number.FindAllString(has, -1) {
		known[strings.TrimRight(n, ".,")] = true
	}
	for _, n := range number.FindAllString(text, -1) {
		if n = strings.TrimRight(n, ".,"); !known[n] && !known[strings.ReplaceAll(n, ",", "")] {
			return n
		}
	}
	return ""
}

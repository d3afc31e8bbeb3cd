package proposal

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/quote"
)

//go:embed prompt/figures_system.md
var figuresSystem string

//go:embed prompt/figures.md
var figuresPrompt string

// The limits of what is read about a model.
const (
	MaxPages      = 8     // pages shown to a model
	maxPageRunes  = 4_000 // of one
	maxQuoteRunes = 300
	maxFigures    = 5 // kept of a model, the first ones
	maxReplyBytes = 256 << 10
)

// Page is something a search found, as a text.
type Page struct{ Title, URL, Text string }

// Figure is a length of context over which a page says that a model keeps its
// quality.
type Figure struct {
	Model     string `json:"model"`
	Tokens    int    `json:"tokens"`
	Benchmark string `json:"benchmark"`
	Quote     string `json:"quote"` // occurs in the page, names the model and the length
	URL       string `json:"url"`
}

// ReadFigures asks a model for figures about another model in pages. A figure counts
// only if its quote occurs in the page and names the model and the length. The notes
// say which figures were rejected and why.
func ReadFigures(ctx context.Context, m consult.Model, name string, pages []Page) (
	found []Figure, notes []string, err error,
) {
	shown := make([]Page, 0, MaxPages)
	for _, p := range pages[:min(len(pages), MaxPages)] {
		text := []rune(quote.Squash(p.Title + ": " + p.Text))
		shown = append(shown, Page{URL: quote.Squash(p.URL), Text: string(text[:min(len(text), maxPageRunes)])})
	}
	c, err := m.Complete(ctx, strings.TrimSpace(figuresSystem), figuresText(name, shown))
	if err != nil {
		return nil, nil, fmt.Errorf("read what was found about %s: %w", name, err)
	}
	var reply struct {
		Figures []struct {
			Text, Tokens     int
			Quote, Benchmark string
		}
	}
	if err := consult.Object(c.Text, maxReplyBytes, &reply); err != nil {
		return nil, nil, fmt.Errorf("read what was found about %s: %w", name, err)
	}
	for _, r := range reply.Figures {
		f := Figure{Model: name, Tokens: r.Tokens, Benchmark: quote.Squash(r.Benchmark), Quote: quote.Squash(r.Quote)}
		why := "there is no such text" // the model names a text by its number: it could invent a URL
		if r.Text >= 1 && r.Text <= len(shown) {
			f.URL = shown[r.Text-1].URL
			why = f.fault(shown[r.Text-1].Text)
		}
		if why == "" && len(found) == maxFigures {
			why = fmt.Sprintf("%d are kept", maxFigures)
		}
		switch {
		case why != "":
			notes = append(notes, fmt.Sprintf("%s: a figure of %d tokens was dropped: %s", name, r.Tokens, why))
		case !slices.ContainsFunc(found, func(o Figure) bool { return o.URL == f.URL && o.Tokens == f.Tokens }):
			found = append(found, f)
		}
	}
	return found, notes, nil
}

// figuresText is what a model is asked.
func figuresText(name string, pages []Page) string {
	var b strings.Builder
	for i, p := range pages {
		fmt.Fprintf(&b, "Text %d, %s\n| %s\n\n", i+1, p.URL, p.Text)
	}
	return consult.Fill(figuresPrompt, "model", quote.Squash(name), "texts", strings.TrimSpace(b.String()))
}

// fault says why a figure does not rest on a text, or "".
func (f Figure) fault(text string) string {
	switch {
	case f.Quote == "" || !strings.Contains(text, f.Quote):
		return "its quote does not occur in the text"
	case utf8.RuneCountInString(f.Quote) > maxQuoteRunes:
		return fmt.Sprintf("its quote has more than %d characters", maxQuoteRunes)
	case !names(f.Quote, f.Model):
		return "its quote does not name the model"
	case !holdsLength(f.Quote, f.Tokens):
		return "its quote does not hold that length"
	}
	return ""
}

var (
	nameParts = regexp.MustCompile(`[a-z]+|[0-9]+`)
	// sibling is what makes a model's name that of another one.
	sibling = regexp.MustCompile(`^(?:[.]?[0-9]|[a-z]|[-_ ]?(?:mini|nano|lite|small|air|turbo|codex|chat|coder|` +
		`distill|vl|fast|pro|max|flash|thinking|haiku)\b)`)
	length = regexp.MustCompile(`([0-9][0-9,]*(?:\.[0-9]+)?) ?([km])?\b`)
)

// names reports whether a text names a model, whatever is between the parts
// of its name, and not only one whose name begins alike.
func names(text, model string) bool {
	parts := nameParts.FindAllString(strings.ToLower(model[strings.LastIndexByte(model, '/')+1:]), -1)
	if len(parts) == 0 {
		return false
	}
	text = strings.ToLower(text)
	found := regexp.MustCompile(`\b`+strings.Join(parts, `[-_. ]?`)).FindAllStringIndex(text, -1)
	return slices.ContainsFunc(found, func(at []int) bool { return !sibling.MatchString(text[at[1]:]) })
}

// holdsLength reports whether a text holds a length in tokens: 32000, 32,000,
// 32K, or 32K for 32768.
func holdsLength(text string, tokens int) bool {
	for _, m := range length.FindAllStringSubmatch(strings.ToLower(text), -1) {
		n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
		if err != nil {
			continue
		}
		thousand, binary := 1.0, 1.0
		switch {
		case m[2] == "k":
			thousand, binary = 1_000, 1<<10
		case m[2] == "m":
			thousand, binary = 1_000_000, 1<<20
		case n < 1_000:
			continue // a score, a version
		}
		if want := float64(tokens); want > 0 && (n*thousand == want || n*binary == want) {
			return true
		}
	}
	return false
}

// FromPublished proposes what others published, each figure for itself. What
// cannot be a model's span is left out, and the notes say so.
func FromPublished(figures []Figure, t *attention.Table) (out []Proposal, notes []string) {
	for _, f := range figures {
		s := t.Lookup(f.Model)
		switch {
		case s.Known && s.EAS == f.Tokens:
			continue
		case s.Advertised == 0:
			notes = append(notes, fmt.Sprintf("%s: %d tokens are published, but the table does not know its window: "+
				"add a row to eas.yaml", f.Model, f.Tokens))
			continue
		case f.Tokens >= s.Advertised:
			notes = append(notes, fmt.Sprintf("%s: %d tokens were left out: its window has %d",
				f.Model, f.Tokens, s.Advertised))
			continue
		}
		source := fmt.Sprintf("search: %s %q, %s", f.Benchmark, f.Quote, f.URL)
		out = append(out, newProposal(KindSearch, source, attention.Row{
			Pattern: f.Model, EAS: f.Tokens, Window: s.Advertised, Encoding: s.Encoding,
			Confidence: attention.ConfidenceLow, Source: source,
		}, s, source, "measurements differ in what they ask and in their rule for the length; the page may be wrong"))
	}
	return out, notes
}

// LinesAbout returns the lines of a text that name a model, with the lines next to
// them and, for a line of a table, the table's head.
func LinesAbout(text, model string) string {
	lines := strings.Split(text, "\n")
	keep := make(map[int]bool)
	for i, l := range lines {
		if !names(l, model) {
			continue
		}
		keep[max(i-1, 0)], keep[i], keep[min(i+1, len(lines)-1)] = true, true, true
		row := func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "|") }
		head := i
		for head > 0 && row(lines[head-1]) && row(l) {
			head--
		}
		keep[head] = true
	}
	var out []string
	for i, l := range lines {
		if keep[i] {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

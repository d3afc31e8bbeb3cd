// Package handout writes the reviewed cards of a project for agents that run no hook, as a marked
// section of AGENTS.md. Equal cards produce equal bytes. Marked text is left out again by Strip, so
// that nothing is learned or shown twice.
package handout

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"anamnesis/knowledge_base/card"
)

// Limits of the section, marks included.
const (
	MaxSectionLines = 10
	MaxSectionBytes = 1536
	maxLineBytes    = 300
)

const (
	heading = "## Lessons of this project\n"
	endMark = "<!-- anamnesis:end -->\n"
)

var (
	beginMark = regexp.MustCompile(`<!-- anamnesis:begin ([0-9a-f]{12}) [^\n]*-->\n`)
	marked    = regexp.MustCompile(`(?s)<!-- anamnesis:begin [^\n]*-->\n.*?<!-- anamnesis:end -->\n?`)
)

// ErrEdited is returned where a text that this package wrote was changed by hand.
var ErrEdited = errors.New("changed by hand since it was written")

// Select returns the cards that are handed out: reviewed, untainted, of the project
// and not expired. The ones verified last come first. tainted are the ids of those that only
// their taint keeps out; drafts counts the project's drafts.
func Select(cards []*card.Card, repo string, now time.Time) (out []*card.Card, tainted []string, drafts int) {
	for _, c := range cards {
		switch {
		case c.Scope.Repo != repo || c.Expired(now):
		case c.State == card.Draft:
			drafts++
		case c.State != card.Reviewed:
		case c.Provenance.Tainted:
			tainted = append(tainted, c.ID)
		default:
			out = append(out, c)
		}
	}
	slices.Sort(tainted)
	at := func(c *card.Card) time.Time {
		if c.VerifiedAt != nil {
			return *c.VerifiedAt
		}
		return c.Created
	}
	slices.SortFunc(out, func(a, b *card.Card) int { return cmp.Or(at(b).Compare(at(a)), strings.Compare(a.ID, b.ID)) })
	return out, tainted, drafts
}

// mark wraps a text in marks that name its hash.
func mark(text string) string {
	const form = "<!-- anamnesis:begin %s written by anamnesis; edit the cards instead -->\n%s%s"
	return fmt.Sprintf(form, hash(text), text, endMark)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// unchanged reports whether a marked text is as it was written.
func unchanged(text string) bool {
	m := beginMark.FindStringSubmatch(text)
	if m == nil || !strings.HasSuffix(text, endMark) {
		return false
	}
	_, body, _ := strings.Cut(text, "-->\n")
	return hash(strings.TrimSuffix(body, endMark)) == m[1]
}

// Section returns the marked section of AGENTS.md, and how many of the cards it
// holds; without facts and cards it is empty. The facts stand first, beside the limits.
func Section(facts []string, cards []*card.Card) (text string, held int) {
	body := heading
	for _, f := range facts {
		body += "- " + clip(plain(f)) + "\n"
	}
	maxLines, maxBytes := MaxSectionLines+len(facts), MaxSectionBytes+len(body)-len(heading)
	for _, c := range cards {
		with := body + "- " + clip(lesson(c)) + " (" + c.ID + ")\n"
		if whole := mark(with); len(whole) > maxBytes || strings.Count(whole, "\n") > maxLines {
			break
		}
		body, held = with, held+1
	}
	if held == 0 && len(facts) == 0 {
		return "", 0
	}
	return mark(body), held
}

func lesson(c *card.Card) string {
	issue, solution := c.Topic, ""
	if len(c.Issue) > 0 {
		issue = c.Issue[0]
	}
	if len(c.Solution) > 0 {
		solution = " → " + strings.Join(slices.DeleteFunc(slices.Clone(c.Solution), card.IsRest), "; ")
	}
	text := diff.ReplaceAllStringFunc(issue+solution, func(block string) string {
		return change(diff.FindStringSubmatch(block)[1])
	})
	return plain(fence.ReplaceAllString(text, ""))
}

var (
	diff  = regexp.MustCompile("(?ms)^```diff\n(.*?)^```$")
	fence = regexp.MustCompile("(?m)^```.*$")
)

// change is the changed lines of a diff on one line.
func change(diff string) string {
	var out []string
	for l := range strings.SplitSeq(diff, "\n") {
		if code := plain(l); len(code) > 1 && strings.ContainsRune("-+", rune(code[0])) {
			out = append(out, code[:1]+" "+strings.TrimSpace(code[1:]))
		}
	}
	return strings.Join(out, "; ")
}

// plain is a text on one line that cannot end a mark.
func plain(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "-->", "-- >")
}

// clip shortens a text to maxLineBytes. A character that the cut splits is removed.
func clip(text string) string {
	if len(text) <= maxLineBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxLineBytes-len("…")], "") + "…"
}

// Splice returns the file with the section in the place of the one that it holds, or
// at its end. An empty section removes it. The text outside is unchanged. A section
// that was changed by hand is ErrEdited.
func Splice(file []byte, section string) ([]byte, error) {
	at := marked.FindAllIndex(file, 2)
	switch {
	case len(at) > 1:
		return nil, fmt.Errorf("doubled: %w", ErrEdited)
	case len(at) == 1:
		if !unchanged(string(file[at[0][0]:at[0][1]])) {
			return nil, ErrEdited
		}
		return slices.Concat(file[:at[0][0]], []byte(section), file[at[0][1]:]), nil
	case bytes.Contains(file, []byte("anamnesis:begin")):
		return nil, fmt.Errorf("left without an end: %w", ErrEdited)
	case section == "":
		return file, nil
	}
	if len(file) > 0 && !bytes.HasSuffix(file, []byte("\n")) {
		section = "\n" + section
	}
	return append(slices.Clone(file), section...), nil
}

// Strip returns a text without its marked parts.
func Strip(text string) string {
	if !strings.Contains(text, "anamnesis:begin") {
		return text
	}
	return marked.ReplaceAllString(text, "")
}

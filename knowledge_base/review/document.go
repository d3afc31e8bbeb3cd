// Package review turns the cards that wait for a user into one text and
// back. The text holds each card unchanged; the user edits it, and the edited text
// is what the cards become.
//
//	=== [7f3a90] card 4yq2m5pkd3c7xw6a 9f0c12ab34cd56ef
//	%% what a reader should know of it, not part of the card
//	---
//	type: knowledge_card
//	…
//
// A heading names the card and the fingerprint of the file the text was made
// from. The word in brackets is of this text alone, so that no card can hold a
// line that is taken for a heading.
package review

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// MaxCards is how many cards one text may hold.
const MaxCards = 1000

// Item is a card that waits for a decision.
type Item struct {
	ID          string   `json:"id"`
	Fingerprint string   `json:"fingerprint"`
	Text        []byte   `json:"-"`
	Notes       []string `json:"notes"` // one line each
}

// Wish is what a user made of an item's text.
type Wish struct {
	ID          string
	Fingerprint string
	Text        []byte
	Line        int // of the text's first line in the document
}

// SyntaxError says what is wrong with an edited text, where, and what to do.
type SyntaxError struct {
	Line int
	What string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

const noteMark = "%% "

const instructions = `%% Review: the text below is what you want the cards to be. Change it, save, and leave the editor.
%%
%%   approve   write  state: reviewed
%%   reject    write  state: retired
%%   change    edit the text
%%   merge     bring the text together in one card and give it the line  supersedes: [ID of the other]
%%   leave     touch nothing, or delete the card from here
%%
%% Lines that begin with %% under a heading (===) are notes and not part of the card.
`

// Compose writes the text for the items, in their order.
func Compose(items []Item) []byte {
	h := sha256.New()
	for _, it := range items {
		h.Write(it.Text)
	}
	token := hex.EncodeToString(h.Sum(nil)[:3])
	var b bytes.Buffer
	b.WriteString(instructions)
	for _, it := range items {
		fmt.Fprintf(&b, "\n=== [%s] card %s %s\n", token, it.ID, it.Fingerprint)
		for _, n := range it.Notes {
			b.WriteString(noteMark + strings.Join(strings.Fields(n), " ") + "\n")
		}
		b.Write(normal(it.Text))
	}
	return b.Bytes()
}

// normal returns a card's text for the document, ending with one line break.
func normal(text []byte) []byte {
	return append(bytes.TrimRight(bytes.Clone(text), " \t\r\n"), '\n')
}

var headingPattern = regexp.MustCompile(`^=== \[([0-9a-f]{6})\] card (\S+) ([0-9a-f]{16})\s*$`)

// Parse reads what a user made of a composed text. Every error is a
// *[SyntaxError].
func Parse(doc []byte) ([]Wish, error) {
	var out []Wish
	var token string
	seen := make(map[string]int)
	open := false // notes may follow
	for i, l := range bytes.SplitAfter(doc, []byte("\n")) {
		line := i + 1
		m := headingPattern.FindSubmatch(l)
		switch {
		case m != nil && (token == "" || string(m[1]) == token):
			token = string(m[1])
			id := string(m[2])
			if first := seen[id]; first > 0 {
				return nil, &SyntaxError{line, fmt.Sprintf("card %s has two headings, the first on line %d; remove one", id, first)}
			}
			if len(out) == MaxCards {
				return nil, &SyntaxError{line, fmt.Sprintf("more than %d cards; review them in parts", MaxCards)}
			}
			seen[id], open = line, true
			out = append(out, Wish{ID: id, Fingerprint: string(m[3]), Line: line + 1})
		case len(out) == 0:
			if t := bytes.TrimSpace(l); len(t) > 0 && !bytes.HasPrefix(t, []byte("%%")) {
				return nil, &SyntaxError{line, "text before the first heading; keep the lines that begin with === as they are"}
			}
		case open && bytes.HasPrefix(l, []byte("%%")):
			out[len(out)-1].Line = line + 1
		default:
			w := &out[len(out)-1]
			open = false
			w.Text = append(w.Text, l...)
		}
	}
	for i := range out {
		out[i].Text = normal(out[i].Text)
	}
	return out, nil
}

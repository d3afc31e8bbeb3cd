package handout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"anamnesis/knowledge_base/card"
)

func example(id string, at int) *card.Card {
	when := time.Unix(int64(at), 0)
	return &card.Card{
		ID: id, Topic: "want 2", State: card.Reviewed, VerifiedAt: &when, Scope: card.Scope{Repo: "r"},
		Issue:    []string{"`go test ./...` failed: want 2"},
		Solution: []string{"Changed in a.go: return 2 --> done", card.RestOf + "b.go: not handed out"},
	}
}

func TestSelect(t *testing.T) {
	past := time.Unix(1, 0)
	cards := []*card.Card{example("old", 1), example("new", 2)}
	for _, spoil := range []func(*card.Card){
		func(c *card.Card) { c.State = card.Draft },
		func(c *card.Card) { c.State = card.Retired },
		func(c *card.Card) { c.Provenance.Tainted = true },
		func(c *card.Card) { c.Scope.Repo = "other" },
		func(c *card.Card) { c.Expires = &past },
	} {
		c := example("no", 3)
		spoil(c)
		cards = append(cards, c)
	}
	got, tainted, drafts := Select(cards, "r", time.Unix(9, 0))
	if len(got) != 2 || got[0].ID != "new" || got[1].ID != "old" || len(tainted) != 1 || drafts != 1 {
		t.Errorf("selected %v, left out as tainted %v, and %d drafts", got, tainted, drafts)
	}
}

// TestLines: a change is on one line in the section.
func TestLines(t *testing.T) {
	c := example("id", 1)
	for diff, want := range map[string]string{
		"-x--\n-y\n+z":              "- x--; - y; + z",
		"-x\n common\n+z":           "- x; + z",
		"-    x\n+\tx":              "- x; + x",
		"+<!-- a -->\n+":            "+ <!-- a -- >",
		"+a `quoted` word\n-\n+--b": "+ a `quoted` word; + --b",
	} {
		c.Solution = []string{"Changed in a.go:\n```diff\n" + diff + "\n```"}
		if section, _ := Section(nil, []*card.Card{c}); !strings.Contains(section, "want 2 → Changed in a.go: "+want+" (id)\n") {
			t.Errorf("%q, want %q", section, want)
		}
	}
}

// TestSection: the section fits its limits, replaces itself, leaves the rest of the
// file as it is, and vanishes with its cards.
func TestSection(t *testing.T) {
	var cards []*card.Card
	for i := range 30 {
		c := example(fmt.Sprintf("id%02d", i), i)
		c.Solution = []string{strings.Repeat("long ", i*10)}
		cards = append(cards, c)
	}
	section, held := Section(nil, cards)
	if len(section) > MaxSectionBytes || strings.Count(section, "\n") > MaxSectionLines || held == 0 || held > 7 {
		t.Errorf("%d cards in %d bytes:\n%s", held, len(section), section)
	}
	for _, file := range []string{"", "# Notes\r\n\r\n- one\r\n", "no newline"} {
		with, err := Splice([]byte(file), section)
		if err != nil || !strings.HasPrefix(string(with), file) {
			t.Errorf("%q: %v\n%s", file, err, with)
		}
		more := string(with) + "after\n"
		other, _ := Section(nil, cards[:1])
		again, err := Splice([]byte(more), other)
		if err != nil || !strings.HasPrefix(string(again), file) || !strings.HasSuffix(string(again), other+"after\n") {
			t.Errorf("replaced: %v\n%s", err, again)
		}
		if got := Strip(more); strings.Contains(got, "id00") || !strings.HasSuffix(got, "after\n") {
			t.Errorf("stripped: %q", got)
		}
		for _, edit := range [][2]string{{"id00", "id0x"}, {"<!-- anamnesis:end -->", ""}} {
			if _, err := Splice([]byte(strings.Replace(more, edit[0], edit[1], 1)), other); !errors.Is(err, ErrEdited) {
				t.Errorf("%q edited: %v", edit, err)
			}
		}
	}
	with, _ := Splice(nil, section)
	if without, err := Splice(with, ""); err != nil || len(without) != 0 {
		t.Errorf("removed: %v %q", err, without)
	}
	if text, _ := Section(nil, []*card.Card{example("a", 1)}); strings.Contains(text, "not handed out") ||
		strings.Contains(Strip(text), "want 2") {
		t.Errorf("the rest of a change is in it, or it is not stripped:\n%s", text)
	}
	if text, held := Section(nil, nil); text != "" || held != 0 {
		t.Errorf("no cards: %q", text)
	}
}

package review_test

import (
	"fmt"
	"strings"
	"testing"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/review"
)

func groupCard(id, task string, state card.State, issue string) *card.Card {
	return &card.Card{
		ID: id, Topic: "topic " + id, SourceTask: task, State: state, Issue: []string{issue},
		Solution: []string{issue},
	}
}

func TestGroups(t *testing.T) {
	missing := "`pytest` failed: No module named pytest; sympy has a runner of its own"
	cards := []*card.Card{
		groupCard("a", "t1", card.Draft, missing+" bin/test"),
		groupCard("b", "t2", card.Draft, "the migration of the users' table needs a default"),
		groupCard("c", "t3", card.Draft, "colours of the legend are reversed in dark mode"),
		groupCard("d", "t2", card.Draft, "a lock file remains when the server was killed"),
		groupCard("e", "t4", card.Draft, missing+" bin/test"),
		groupCard("f", "t2", card.Reviewed, "the port is taken by another process"),
	}
	for _, tt := range []struct {
		by   review.By
		want string
	}{
		{review.ByLikeness, "alike : a e | t2: b d | : c | : f"},
		{review.ByTask, "t2: b d | : a c e | : f"},
		{review.ByNothing, ": a b c d e | : f"},
	} {
		groups := review.Groups(cards, tt.by)
		var got []string
		for _, g := range groups {
			text := g.Task + ":"
			if g.Alike {
				text = "alike " + text
			}
			for _, c := range g.Cards {
				text += " " + c.ID
			}
			got = append(got, text)
		}
		if strings.Join(got, " | ") != tt.want {
			t.Errorf("by %s: %q, want %q", tt.by, strings.Join(got, " | "), tt.want)
		}
	}
	if groups := review.Groups(nil, review.ByLikeness); len(groups) != 0 {
		t.Errorf("of nothing: %v", groups)
	}
}

func TestFilter(t *testing.T) {
	store, err := knowledgebase.Open(t.TempDir(), &knowledgebase.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var ch knowledgebase.Change
	for i, c := range []*card.Card{groupCard("own", "t", card.Draft, "the Port is taken"), groupCard("outside", "t", card.Draft, "a lock file remains")} {
		c.Scope.Repo = fmt.Sprintf("repo%d", i)
		ch.Cards = append(ch.Cards, c)
	}
	ch.Message = "Add two"
	if _, err := store.Apply(t.Context(), ch); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		filter review.Filter
		want   string
	}{
		{review.Filter{}, "outside own"},
		{review.Filter{Words: "port TAKEN"}, "own"},
		{review.Filter{Words: "port lock"}, ""},
		{review.Filter{Repo: "repo1"}, "outside"},
	} {
		var got []string
		for _, c := range store.Cards(review.Waiting(store)) {
			if tt.filter.Matches(c) {
				got = append(got, c.ID)
			}
		}
		if len(got) == 2 && got[0] > got[1] {
			got[0], got[1] = got[1], got[0]
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %v, want %q", tt.filter, got, tt.want)
		}
	}
}

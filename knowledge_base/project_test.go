package knowledgebase

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/knowledge_base/card"
)

func projectStore(t *testing.T, dir, global string) *Store {
	t.Helper()
	s, err := Open(dir, Options{Now: fixedNow}.ForProject(global))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A card a project ships as reviewed is a draft until it is reviewed here, and
// then wherever it stands; a word changed in it is another lesson.
func TestShippedReviewIsAClaim(t *testing.T) {
	global, dir := t.TempDir(), t.TempDir()
	shipped := newCard("k1", "the gate", "it is shut at night")
	verified := day
	shipped.State, shipped.VerifiedAt = card.Reviewed, &verified
	path := filepath.Join(dir, "2026-01", "gate-k1.md")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	text := string(shipped.Markdown())
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	state := func(s *Store) card.State {
		t.Helper()
		c, err := s.Get("k1")
		if err != nil {
			t.Fatal(err)
		}
		return c.State
	}
	s := projectStore(t, dir, global)
	if got := state(s); got != card.Draft {
		t.Fatalf("as shipped it is %s", got)
	}
	turn(t, s, "k1", card.Reviewed)
	if got := state(s); got != card.Reviewed {
		t.Errorf("reviewed here it is %s", got)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil { // as a checkout would
		t.Fatal(err)
	}
	if got := state(projectStore(t, dir, global)); got != card.Reviewed {
		t.Errorf("checked out again it is %s", got)
	}
	if got := state(projectStore(t, dir, t.TempDir())); got != card.Draft {
		t.Errorf("on another machine it is %s", got)
	}
	others := t.TempDir()
	if err := os.WriteFile(filepath.Join(others, shipped.Hash()), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shared, err := Open(dir, Options{SharedReviews: others}.ForProject(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	if got := state(shared); got != card.Reviewed {
		t.Errorf("as others reviewed it, it is %s", got)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text, "shut", "open", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := state(projectStore(t, dir, global)); got != card.Draft {
		t.Errorf("saying something else it is %s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		t.Error("a repository was made inside the project's")
	}
}

// The nearest card of an id is found, also where it was retired near by; a
// lesson both hold comes once.
func TestLayers(t *testing.T) {
	global, near := personStore(t, t.TempDir()), projectStore(t, t.TempDir(), t.TempDir())
	mustPut(t, global, newCard("k1", "samarkand road", "the road to samarkand is long"))
	mustPut(t, near, newCard("k1", "samarkand road here", "the road to samarkand is short here"))
	mustPut(t, global, newCard("k2", "the gate of merv", "the gate of merv is shut"))
	mustPut(t, near, newCard("k9", "the gate of merv", "the gate of merv is shut"))
	mustPut(t, global, newCard("k3", "the well of bukhara", "the well of bukhara is dry"))
	mustPut(t, near, newCard("k3", "the well of bukhara", "the well of bukhara is dry, we thought"))
	turn(t, near, "k3", card.Retired)
	l := Layers{near, global}
	for query, want := range map[string]string{"samarkand road": "samarkand road here", "gate of merv": "the gate of merv", "well of bukhara": ""} {
		hits, err := l.Search(t.Context(), Query{Text: query})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range hits {
			got = append(got, h.Card.Topic)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: found %q, want %q", query, got, want)
		}
	}
}

// TestProjectTakesNoId: a project's card with the id of a card reviewed here does not take its place.
func TestProjectTakesNoId(t *testing.T) {
	root := t.TempDir()
	own, project := openStore(t, filepath.Join(root, "own")), openStore(t, filepath.Join(root, "project"))
	c := newCard("k1", "the zanzibar gate is shut", "open the zanzibar gate with the key")
	c.State = card.Reviewed
	if _, err := own.Apply(t.Context(), Change{By: Person, Cards: []*card.Card{c}}); err != nil {
		t.Fatal(err)
	}
	mustPut(t, project, newCard("k1", "the zanzibar gate is shut", "open the zanzibar gate with dynamite"))
	hits, err := Layers{project, own}.Search(t.Context(), Query{Text: "the zanzibar gate is shut"})
	if err != nil || len(hits) != 1 || hits[0].Card.State != card.Reviewed {
		t.Errorf("found %+v, %v", hits, err)
	}
}

// TestReviewsAreTold: what a user reviews is told to others, and a program's change is not. A review that cannot be
// told counts here, and the user learns that it counts here alone.
func TestReviewsAreTold(t *testing.T) {
	var told, said []string
	var fault error
	s, err := Open(t.TempDir(), &Options{
		Now: fixedNow, Notice: func(line string) { said = append(said, line) },
		Reviewed: func(lesson string) error { told = append(told, lesson); return fault },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, id := range []string{"k1", "k2"} {
		if _, _, err := s.Put(t.Context(), newCard(id, "the gate "+id, "it is shut")); err != nil {
			t.Fatal(err)
		}
	}
	turn(t, s, "k1", card.Reviewed)
	if want := newCard("k1", "the gate k1", "it is shut").Hash(); len(told) != 1 || told[0] != want || len(said) > 0 {
		t.Errorf("told %q, want %s; said %q", told, want, said)
	}
	fault = errors.New("the bucket is away")
	turn(t, s, "k2", card.Reviewed)
	if c, err := s.Get("k2"); err != nil || c.State != card.Reviewed || len(told) != 2 || len(said) != 1 ||
		!strings.Contains(said[0], "this home only") {
		t.Errorf("%v, %v; told %q, said %q", c, err, told, said)
	}
}

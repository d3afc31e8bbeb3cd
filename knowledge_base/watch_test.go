package knowledgebase

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a user does in the folder is in the next answer of a live process.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	writer := personStore(t, dir)
	path := mustPut(t, writer, newCard("k1", "the zanzibar gate", "it is shut at night"))
	s, err := Open(dir, &Options{Now: fixedNow, Watch: true})
	if err != nil {
		t.Fatal(err)
	}
	see := func(what string, seen bool) {
		t.Helper()
		if !seen {
			t.Errorf("%s was not seen", what)
		}
	}
	found := func(query string) string {
		hits, err := s.Search(t.Context(), Query{Text: query})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(ids(hits), " ")
	}
	if got := found("zanzibar gate"); got != "k1" {
		t.Fatalf("found %q", got)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "zanzibar", "timbuktu", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	see("an edit", found("timbuktu gate") == "k1" && found("zanzibar") == "")
	february := newCard("k2", "the samarkand road", "it is long")
	february.Created = day.AddDate(0, 1, 0)
	mustPut(t, writer, february)
	see("a card in a new month", found("samarkand road") == "k2")
	if err := os.WriteFile(filepath.Join(dir, "2026-01", "broken.md"), []byte("---"), 0o600); err != nil {
		t.Fatal(err)
	}
	see("a broken card", len(s.List()) == 2 && len(s.Broken()) == 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	see("a removal", found("timbuktu gate") == "" && len(s.List()) == 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

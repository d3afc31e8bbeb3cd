package memory

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/worldstate/worldtest"
)

// TestRemoved: a symbol is missing if the repository had it when the card was made, or within a week, and has it in
// no file now, tracked or not.
func TestRemoved(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "sub")
	write := func(name, text string) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made := time.Now().AddDate(0, 0, -30)
	commit := func(at time.Time) {
		worldtest.Git(t, top, "add", "-A")
		t.Setenv("GIT_COMMITTER_DATE", at.Format(time.RFC3339))
		worldtest.Git(t, top, "commit", "-q", "-m", "x")
	}
	missing := func() []string {
		c := &card.Card{
			Topic: "`oldName`, `soonName`, `keptName`, `movedName`, `lateName`, `libName`", Created: made,
			Scope: card.Scope{Repo: "r"},
		}
		hits := []recalled.Hit{{Card: c}}
		LookUp(t.Context(), hits, dir, "r")
		return hits[0].Missing
	}
	write("a.go", "oldName keptName movedName")
	if got := missing(); got != nil {
		t.Errorf("without a repository: %q", got)
	}
	worldtest.Git(t, top, "init", "-q")
	commit(made.AddDate(0, 0, -1))
	write("a.go", "oldName soonName keptName movedName")
	commit(made.AddDate(0, 0, 2))
	write("a.go", "lateName keptName oldNames")
	commit(made.AddDate(0, 0, 20))
	write("a.go", "keptName")
	write("new.go", "movedName")
	if got, want := missing(), []string{"oldName", "soonName"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	write("a.go", "nothing of it")
	write("new.go", "nothing of it")
	if got, want := missing(), []string{"oldName", "soonName", "keptName", "movedName"}; !slices.Equal(got, want) {
		t.Errorf("where none is left: %q, want %q", got, want)
	}
}

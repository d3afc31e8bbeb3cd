//go:build unix

package cardfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	knowledgebase "anamnesis/knowledge_base"
)

const plain = "---\ntype: knowledge_card\ntopic: TOPIC\n---\n- **Issue**: TOPIC fails\n"

// Files become cards in one commit; if one of them cannot be stored, each of the others in its own. The faulty file is
// named with its line.
func TestAdd(t *testing.T) {
	store, err := knowledgebase.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := file("a.md", strings.ReplaceAll(plain, "TOPIC", "a")), file("b.md", strings.ReplaceAll(plain, "TOPIC", "b"))
	d := Desk{Stdin: strings.NewReader(strings.ReplaceAll(plain, "TOPIC", "c"))}
	added, failed := d.Add(t.Context(), store, []string{a, b, "-"})
	if len(failed) != 0 || len(added) != 3 || !added[0].Created || added[2].File != "-" {
		t.Fatalf("%+v, %v", added, failed)
	}
	if c, err := store.Get(added[1].ID); err != nil || c.SourceTask != "by hand" {
		t.Errorf("%+v, %v", c, err)
	}
	revs, err := store.History(t.Context(), added[0].ID)
	more, err2 := store.History(t.Context(), added[1].ID)
	if err != nil || err2 != nil || len(revs) != 1 || len(more) != 1 || revs[0].ID != more[0].ID {
		t.Errorf("not one commit: %+v %+v", revs, more)
	}
	tagged := file("tagged.md",
		strings.Replace(strings.ReplaceAll(plain, "TOPIC", "a"), "topic:", "tags: [x]\ntopic:", 1))
	faulty := file("faulty.md", "---\ntype: knowledge_card\ntopic:\n---\n- **Issue**: i\n")
	added, failed = d.Add(t.Context(), store, []string{tagged, faulty, filepath.Join(dir, "none.md")})
	if len(added) != 1 || added[0].Created {
		t.Errorf("a known text with other tags: %+v", added)
	}
	if len(failed) != 2 || !strings.Contains(failed[0].Error(), faulty+":3: topic is empty") ||
		!strings.Contains(failed[1].Error(), "none.md does not exist") {
		t.Errorf("%v", failed)
	}
}

package folder

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/durable"
)

func TestIsCardFile(t *testing.T) {
	for path, want := range map[string]bool{
		"2026-11/a.md": true, "2026-11/a.b.md": true, "2026-11/ä.md": true, "0000-99/-.md": true,
		"": false, "/": false, "2026-11": false, "2026-11/": false, "2026-11/.md": false, "2026-11/.a.md": false, "2026-11/a.mdx": false,
		"2026-11/md": false, "2026-11/a/b.md": false, "2026-1/a.md": false, "2026-111/a.md": false, "2026/11/a.md": false, "2o26-11/a.md": false,
		"a.md": false, "/2026-11/a.md": false, "./2026-11/a.md": false, "2026-11//a.md": false,
	} {
		if got := IsCardFile(path); got != want {
			t.Errorf("IsCardFile(%q) = %t", path, got)
		}
	}
}

// A file's name is made of the topic, in small letters, as far as they fit, and of the id.
func TestFileName(t *testing.T) {
	for _, tt := range []struct{ topic, id, want string }{
		{"Go: `go test` caches / ../ results", "k1", "go-go-test-caches-results-k1.md"},
		{"缓存!", "k1", "缓存-k1.md"},
		{"../..", "k1", "card-k1.md"},
		{"", "k1", "card-k1.md"},
		{" -a- ", "k1", "a-k1.md"},
	} {
		if got := FileName(tt.topic, tt.id); got != tt.want {
			t.Errorf("FileName(%q, %q) = %q, want %q", tt.topic, tt.id, got, tt.want)
		}
	}
	long := FileName("wort "+string(make([]byte, 500))+" überlänge", "k1")
	if len(long) > slugBytes+len("-k1.md") {
		t.Errorf("%d bytes", len(long))
	}
}

// A folder lists the cards of its months and the temporary files of dead writers, and reads a file anew only if its
// bytes are others than the known ones.
func TestReadAll(t *testing.T) {
	f := &Folder{Dir: t.TempDir()}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(f.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), durable.DirMode); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), durable.FileMode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := func(id string) string {
		c := &card.Card{ID: id, Topic: "topic", SourceTask: "t", Issue: []string{"i"}}
		return string(c.Markdown())
	}
	a, b := write("2026-01/a.md", text("a")), write("2026-02/b.md", text("b"))
	broken, temp := write("2026-02/broken.md", "---"), write("2026-02/"+durable.TempPrefix+"1", "")
	write("README.md", text("c"))
	paths, bad, err := f.Paths()
	if err != nil || len(bad) != 0 || len(paths) != 3 || paths[0] != a || paths[1] != b || paths[2] != broken ||
		len(f.Temp) != 1 || f.Temp[0] != temp {
		t.Fatalf("%v %v %v %v", paths, bad, f.Temp, err)
	}
	first, err := f.ReadAll(t.Context(), paths, nil)
	if err != nil || first[0].File.ID != "a" || first[1].File.Path != b || first[2].Err == nil {
		t.Fatalf("%+v, %v", first, err)
	}
	write("2026-02/b.md", text("new"))
	again, err := f.ReadAll(t.Context(), paths, map[string]*File{a: first[0].File, b: first[1].File})
	if err != nil || again[0].File != first[0].File || again[1].File.ID != "new" {
		t.Errorf("%+v, %v", again, err)
	}
}

// What does not count here is a draft without a date, and outside text is tainted; the file's own words stay.
func TestJudged(t *testing.T) {
	at := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	st := NewFile(&card.Card{ID: "a", Topic: "t", SourceTask: "t", State: card.Reviewed, VerifiedAt: &at,
		Issue: []string{"i"}}, "p", nil)
	got := st.Judged(true, true)
	if got.State != card.Draft || got.VerifiedAt != nil || !got.Provenance.Tainted {
		t.Errorf("%+v", got.Card)
	}
	if st.State != card.Reviewed || got.Stated.VerifiedAt == nil || got.Stated.Provenance.Tainted {
		t.Errorf("the file's words changed: %+v", got.Stated)
	}
	if back := got.Judged(false, false); back.State != card.Reviewed || back.VerifiedAt == nil {
		t.Errorf("judged again: %+v", back.Card)
	}
}

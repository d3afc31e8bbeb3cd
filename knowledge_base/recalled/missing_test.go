package recalled

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/knowledge_base/card"
)

// TestMissing: files that a card names are looked up; addresses, absolute paths and words are none.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "a.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &card.Card{
		Topic: "login", Issue: []string{"`pytest tests/test_login.py` fails, see https://example.com/a/b.html and /etc/x/y.conf"},
		Solution: []string{"raise the limit in src/old/b.py line 40, not in src/a.go; either/or, ../up/x.py, v1.2/3"},
	}
	if got, want := Missing(c, dir, nil), []string{"tests/test_login.py", "src/old/b.py"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if SubjectGone(c, Missing(c, dir, nil)) {
		t.Error("src/a.go is there")
	}
	c.Solution = []string{"raise the limit in src/old/b.py"}
	if !SubjectGone(c, Missing(c, dir, nil)) {
		t.Error("what the solution names is gone")
	}
	c.Solution = []string{"raise the limit"}
	if SubjectGone(c, Missing(c, dir, nil)) {
		t.Error("the solution names no file")
	}
	if line := heading(Hit{Card: c, Missing: []string{"src/old/b.py"}}); !strings.Contains(line, "names what is not here: src/old/b.py") {
		t.Errorf("heading %q", line)
	}
}

// TestMissingPrograms: programs that a card says were run are looked up; words of the shell are none.
func TestMissingPrograms(t *testing.T) {
	c := &card.Card{Topic: "build", Issue: []string{"`no-such-check` failed: x"}, Solution: []string{
		"install it", "Run before: `no-such-program --all`", "Run before: `cd web && no-such-tool`", "Run before: `export A=1`", "Run before: `./run`", "Run before: `go build`",
	}}
	if got, want := Missing(c, t.TempDir(), nil), []string{"no-such-program", "no-such-tool"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if SubjectGone(c, Missing(c, t.TempDir(), nil)) {
		t.Error("go is there")
	}
	c.Solution = c.Solution[:3]
	if !SubjectGone(c, Missing(c, t.TempDir(), nil)) {
		t.Error("what the solution ran is not installed")
	}
}

// TestMissingVersions: a version is missing where a lock or an exact manifest has another of the same name. A range, a
// number without a name, and what the project does not have at all are no loss.
func TestMissingVersions(t *testing.T) {
	for _, tt := range []struct{ file, text, says, want string }{
		{"go.mod", "go 1.26.1\nrequire golang.org/x/sys v0.41.0 // indirect\n", "with Go 1.22, x/sys v0.41.0 and golang.org/x/net v0.1.0", "Go 1.22"},
		{"go.mod", "go 1.26.1\n", "Go 1.26 is needed; it took 1.5 s", ""},
		{"package-lock.json", "\"node_modules/express\": {\n  \"version\": \"5.0.1\",\n\"x\": {\"express\": \"^4.18.2\"}", "express@4.18.2 and express 5.0", "express 4.18.2"},
		{"package.json", "\"express\": \"^4.18.2\"\n", "express 4.19.0", ""},
		{"Cargo.lock", "name = \"serde\"\nversion = \"1.0.2\"\nname = \"serde_json\"\nversion = \"2.0.0\"\n", "serde version 0.9, serde 1.0.2", "serde 0.9"},
		{"requirements.txt", "Django==5.0\nrequests>=2.0\n", "django 4.2.7, requests 1.2, Django 5.0.3", "django 4.2.7"},
		{"poetry.lock", "name = \"pandas\"\nversion = \"2.1.0\"\n", "line 4.2, in version 1.2, pandas==1.5.3", "pandas 1.5.3"},
		{"yarn.lock", "\"react@^18.0.0\":\n  version \"18.2.0\"\n", "react 17.0.2, react 18.2.0", "react 17.0.2"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, tt.file), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Missing(&card.Card{Topic: "x", Issue: []string{tt.says}}, dir, nil), ", "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.says, got, tt.want)
		}
	}
}

// TestSymbols: names of code in backticks are looked up; programs, commands and words are not.
func TestSymbols(t *testing.T) {
	c := &card.Card{Topic: "`parse_date` fails",
		Issue:    []string{"`pytest`, `go test ./...`, `Reader`, `x.Do` and newThing fail"},
		Solution: []string{"call `pkg.Type.Reset(ctx, 3)` and `leapYear`"}}
	gone := func(names []string) []string { return names }
	if got, want := Missing(c, t.TempDir(), gone), []string{"parse_date", "pkg.Type.Reset", "leapYear"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !SubjectGone(c, []string{"pkg.Type.Reset", "leapYear"}) || SubjectGone(c, []string{"leapYear"}) {
		t.Error("the subject are the symbols of the solution")
	}
}

// TestMissingBounded: of a card that names very many files and symbols, the first ones are looked up.
func TestMissingBounded(t *testing.T) {
	c := &card.Card{Topic: "x"}
	for n := range strings.FieldsSeq("a b c d e f g h i") {
		c.Issue = append(c.Issue, "see src/"+n+".go and `set_"+n+"`")
	}
	gone := Missing(c, t.TempDir(), func(names []string) []string { return names })
	if len(gone) != 2*maxMissing || gone[maxMissing-1] != "src/h.go" || gone[2*maxMissing-1] != "set_h" {
		t.Errorf("%q", gone)
	}
}

package assets

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// foreignOptions are the files below cmd that list options of other programs, some of which are
// spelled like ours. Their texts may name flags, and no verb.
var foreignOptions = regexp.MustCompile(`^(anamnesis/(shell|failure|testrun)|knowledge_base/history|` +
	`orchestrator/(guard/(research|autorun|quarantine)|redact|tool/search))/|^orchestrator/(guard/approval/opaque|feature/worktree/worktree)\.go$`)

// TestCommandLineStaysInCmd: below cmd no text names a verb or a flag of the program, whose names
// are those of the reference. What helps against an error is a value that each front end words:
// package orchestrator/remedy.
func TestCommandLineStaysInCmd(t *testing.T) {
	reference, err := os.ReadFile("docs/reference/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	names := func(line string) string {
		seen := map[string]bool{}
		var out []string
		for _, m := range regexp.MustCompile(line).FindAllStringSubmatch(string(reference), -1) {
			if !seen[m[1]] {
				seen[m[1]] = true
				out = append(out, m[1])
			}
		}
		if len(out) < 20 {
			t.Fatalf("only %d names match %s", len(out), line)
		}
		return strings.Join(out, "|")
	}
	verb := regexp.MustCompile(`anamnesis (` + names(`(?m)^## anamnesis ([a-z]+)`) + `)\b`)
	flag := regexp.MustCompile(`(^|[^-\w])--(` + names("(?m)^\\| `(?:-., )?--([a-z-]+)") + `)($|[^-\w])`)
	for _, room := range []string{"opstream", "worldstate", "knowledge_base", "anamnesis", "orchestrator"} {
		err := filepath.WalkDir(room, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Error(err)
				}
				found := verb.FindString(text)
				if found == "" && !foreignOptions.MatchString(filepath.ToSlash(path)) &&
					!strings.Contains(text, "git ") {
					found = flag.FindString(text)
				}
				if found != "" {
					t.Errorf("%s names %q: %q", files.Position(lit.Pos()), strings.TrimSpace(found), text)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

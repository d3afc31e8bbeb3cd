package runtime

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// maxMethods is how many methods a Task may have.
const maxMethods = 60

// TestTaskHasNamedParts: what a Task can do is written in this package. It embeds nothing, so that no
// method of another type appears on it.
func TestTaskHasNamedParts(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	methods, fields := 0, 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && receiver(n.Recv.List[0].Type) == "Task" {
					methods++
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && n.Name.Name == "Task" {
					for _, field := range s.Fields.List {
						if fields++; len(field.Names) == 0 {
							t.Errorf("Task embeds %s", receiver(field.Type))
						}
					}
				}
			}
			return true
		})
	}
	if fields == 0 || methods == 0 || methods > maxMethods {
		t.Errorf("Task has %d methods, at most %d are allowed; %d fields", methods, maxMethods, fields)
	}
	t.Logf("Task has %d methods", methods)
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

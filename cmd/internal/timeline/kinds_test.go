package timeline

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// handlers are the three functions that name every kind in a case, if only to ignore it: what an
// operation means for the state, for the context and for people. All others have a default. What
// several of them need of an operation is a function of package op with a test of its own, such as
// op.OwnText.
var handlers = []struct {
	file  string
	funcs []string
}{
	{"../../../orchestrator/state/fold.go", []string{"apply"}},
	{"../../../orchestrator/state/projection/projection.go", []string{"Apply"}},
	{"line.go", []string{"LineOf", "memoryLine"}},
}

// TestEveryKindIsHandled reads the cases of the handlers, and the methods that name the kinds: a kind
// that package op gains is found here wherever it was not thought of.
func TestEveryKindIsHandled(t *testing.T) {
	kinds := make(map[string]bool) // names of types
	values := make(map[op.Kind]bool)
	for _, b := range op.Bodies() {
		kinds[reflect.TypeOf(b).Elem().Name()] = true
		if values[b.Kind()] {
			t.Errorf("two bodies are %s", b.Kind())
		}
		values[b.Kind()] = true
	}
	for _, h := range handlers {
		missing := maps.Clone(kinds)
		ast.Inspect(parse(t, h.file), func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok {
				return slices.Contains(h.funcs, f.Name.Name)
			}
			if c, ok := n.(*ast.CaseClause); ok {
				for _, x := range c.List {
					if star, ok := x.(*ast.StarExpr); ok {
						if body, ok := star.X.(*ast.SelectorExpr); ok {
							delete(missing, body.Sel.Name)
						}
					}
				}
			}
			return true
		})
		if len(missing) > 0 {
			t.Errorf("%s: %s: no case for %q", h.file, strings.Join(h.funcs, " and "),
				slices.Sorted(maps.Keys(missing)))
		}
	}
	for _, d := range parse(t, "../../../opstream/op/kinds.go").Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Kind" && f.Recv != nil {
			if body := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name; !kinds[body] {
				t.Errorf("op.Bodies lacks %s", body)
			}
		}
	}
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

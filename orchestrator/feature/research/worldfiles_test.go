package research

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/tool/shell"
)

// TestTreeNames: files of a bounded size and number are searched, in any case, apart from packages and objects of git.
func TestTreeNames(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	many := func(n int) fs.FS {
		tree := fstest.MapFS{"z": file("name")}
		for i := range n - 1 {
			tree[fmt.Sprintf("f%05d", i)] = file("")
		}
		return tree
	}
	for what, tt := range map[string]struct {
		tree fs.FS
		want bool
	}{
		"in any case":        {fstest.MapFS{"a/b": file("the NAME of it")}, true},
		"nowhere":            {fstest.MapFS{"a": file("other"), "name": file("")}, false},
		"a package":          {fstest.MapFS{"a/node_modules/b": file("name")}, false},
		"an object":          {fstest.MapFS{".git/objects/aa": file("name")}, false},
		"git's settings":     {fstest.MapFS{".git/config": file("name"), "objects/a": file("")}, true},
		"other objects":      {fstest.MapFS{"x/objects/a": file("name")}, true},
		"a link":             {fstest.MapFS{"a": {Data: []byte("name"), Mode: fs.ModeSymlink}}, false},
		"as large as may be": {fstest.MapFS{"a": file("name" + strings.Repeat(" ", maxWorldFile-4))}, true},
		"too large":          {fstest.MapFS{"a": file("name" + strings.Repeat(" ", maxWorldFile-3))}, false},
		"the last file":      {many(maxWorldFiles), true},
		"one too many":       {many(maxWorldFiles + 1), false},
	} {
		if got := treeNames(tt.tree, "Name"); got != tt.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestListsPackage: a package is listed if package.json names it, or if its program is installed.
func TestListsPackage(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if listsPackage(root, "left-pad") {
		t.Error("listed without a file")
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(dir, "package.json"): `{"dependencies":{"left-pad":"1"}}`, filepath.Join(bin, "tsc"): ""} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{"left-pad": true, "tsc": true, "left": false, "eslint": false} {
		if got := listsPackage(root, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCitable: what succeeded and only looked can be cited as evidence.
func TestCitable(t *testing.T) {
	tools := gatetest.Tools(t, shell.Bash(), Tool(nil))
	g := New(gatetest.Place(t, op.TaskOpened{}), tools, nil)
	exit := func(n int) *int { return &n }
	called := func(id, command string) op.Op {
		return op.Op{Body: &op.ToolCalled{Call: id, Name: "Bash", Args: `{"command":"` + command + `"}`}}
	}
	before := []op.Op{called("a", "npm view left-pad"), called("b", "npm install left-pad"), {Body: &op.UserSaid{}}}
	for what, tt := range map[string]struct {
		b    op.ToolReturned
		args string
		why  string
	}{
		"looked":     {op.ToolReturned{Call: "a", Name: "Bash", Exit: exit(0)}, `{"command":"npm view left-pad"}`, ""},
		"did more":   {op.ToolReturned{Call: "b", Name: "Bash", Exit: exit(0)}, "", "may have done more than look"},
		"no call":    {op.ToolReturned{Call: "c", Name: "Bash", Exit: exit(0)}, "", "may have done more than look"},
		"no tool":    {op.ToolReturned{Call: "a", Name: "None"}, "", "may have done more than look"},
		"refused":    {op.ToolReturned{Call: "a", Name: "Bash", Refused: true}, "", "was refused"},
		"unknown":    {op.ToolReturned{Call: "a", Name: "Bash", Unknown: true}, "", "has an unknown outcome"},
		"an error":   {op.ToolReturned{Call: "a", Name: "Bash", IsError: true}, "", "failed"},
		"an exit":    {op.ToolReturned{Call: "a", Name: "Bash", Exit: exit(2), IsError: true}, "", "failed (exit 2)"},
		"its record": {op.ToolReturned{Call: "a", Name: toolName}, "", "shows nothing that was there before"},
	} {
		if args, why := g.readOnlyResult(&tt.b, before); args != tt.args && why == "" || why != tt.why {
			t.Errorf("%s: %q, %q", what, args, why)
		}
	}
}

// TestKnown: what the user or the world names, or the task itself uses, needs no research.
func TestKnown(t *testing.T) {
	p := gatetest.Place(t, op.TaskOpened{Model: "own"})
	p.State().Research.Hosts = map[string]bool{"said.example": true}
	if err := os.WriteFile(filepath.Join(p.Dir, "f"), []byte("https://file.example named-model"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := New(p, gatetest.Tools(t), func(name string) bool { return name == "listed" })
	for name, want := range map[string]bool{"said.example": true, "file.example": true, "new.example": false} {
		if got := g.knowsHost(name); got != want {
			t.Errorf("host %s: %v", name, got)
		}
	}
	for name, want := range map[string]bool{"own": true, "listed": true, "named-model": true, "new": false} {
		if got := g.knowsModel(name); got != want {
			t.Errorf("model %s: %v", name, got)
		}
	}
	if New(p, gatetest.Tools(t), nil).knowsModel("listed") {
		t.Error("a model is known without a table")
	}
}

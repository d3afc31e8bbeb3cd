package assets

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms says what each room may import of ours. A room's subpackages may also
// import the room's other subpackages, and nothing else.
var rooms = map[string][]string{
	"opstream":       {"opstream"},
	"worldstate":     {"worldstate"},
	"knowledge_base": {"knowledge_base"},
	"anamnesis":      {"anamnesis", "opstream", "knowledge_base"},
	"orchestrator":   {"orchestrator", "anamnesis", "knowledge_base", "worldstate", "opstream"},
	"cmd":            {"cmd", "orchestrator", "anamnesis", "knowledge_base", "worldstate", "opstream", ""},
	"":               {},
}

// everywhere is the package that every room may import beside its own.
const everywhere = "anamnesis/opstream/durable"

// floors lists the packages below a room's internal from the bottom up. Each may import
// those before it, and the packages of the room that are named in also.
var floors = []struct {
	room, also string
	packages   []string
}{
	{"opstream", "", []string{"wire", "segments"}},
	{"knowledge_base", "knowledge_base/card knowledge_base/history knowledge_base/retrieval", []string{"folder", "reviews", "index", "intent", "secrets", "merge"}},
	{"knowledge_base/history", "", nil},
	{"knowledge_base/retrieval", "", []string{"lexical", "vectors"}},
	{"worldstate", "worldstate/ignore", []string{"fsys", "gitfmt", "objects", "refs", "history", "tree", "usergit", "scan", "restore", "plan", "gc", "diff"}},
}

// walls lists the imports that a room's own floor would allow and its meaning forbids.
var walls = []struct {
	from, to, why string
}{
	{"anamnesis/opstream", "anamnesis/opstream/op", "the log does not look into what it stores"},
	{"anamnesis/opstream/op", "anamnesis/", "the vocabulary is pure data"},
	{"anamnesis/anamnesis/failure", "anamnesis/", "the room of failures knows texts only, no operations and no cards"},
	{"anamnesis/orchestrator/redact", "anamnesis/opstream", "redaction knows texts only, no streams"},
	{"anamnesis/orchestrator/redact", "anamnesis/opstream/op", "redaction knows texts only, no operations"},
}

// pure lists the packages of decisions: they depend on their arguments alone, and their
// effects are operations. Neither they nor any of our packages that they reach import what
// impure lists, nor packages below it, but for those that impure maps to false.
var (
	pure   = []string{"orchestrator/state", "orchestrator/state/projection", "orchestrator/state/steps"}
	impure = map[string]bool{
		"os": true, "net": true, "net/netip": false, "syscall": true, "golang.org/x/sys": true, "io/fs": true,
		"anamnesis/worldstate": true, "anamnesis/opstream": true, "anamnesis/opstream/op": false, "anamnesis/knowledge_base": true, "anamnesis/orchestrator/tool": true,
	}
)

// orchestrator lists the packages of that room, all of them, from the bottom up. Each may import
// those before it: those from state/steps on know of tasks, and those before do not.
var orchestrator = strings.Fields(`
	loop remedy redact sessions
	model model/price model/openai model/script model/named model/modeltest optest
	guard/quarantine guard/autorun guard/approval guard/confine guard guard/consent guard/research
	picture tool/spelling tool mention tool/file tool/plan tool/search tool/shell tool/timeline tool/web tool/mcp
	agent
	state/steps state/projection state taskdir replica/bucket replica notice journal memory workspace toolset gate gate/gatetest leftover inspect report blame search
	feature/git feature/goal feature/hook feature/jobs feature/mail feature/neverstart feature/planmode feature/question feature/reflect feature/repeat feature/research feature/skill feature/subagent feature/todo feature/worktree tool/builtin
	runtime session eas
	beside/reader beside beside/continuation
`)

// doors lists libraries that only the places named may know: one, or one in
// each room.
var doors = map[string][]string{
	"github.com/sashabaranov/go-openai":               {"orchestrator/model/openai", "knowledge_base/retrieval/remote"},
	"github.com/go-git/go-git/v5":                     {"worldstate"},
	"github.com/philippgille/chromem-go":              {"knowledge_base/retrieval"},
	"github.com/modelcontextprotocol/go-sdk":          {"orchestrator/tool/mcp", "cmd/internal/mcpserver"},
	"github.com/coder/acp-go-sdk":                     {"cmd/internal/acp"},
	"codeberg.org/readeck/go-readability/v2":          {"orchestrator/tool/web"},
	"github.com/JohannesKaufmann/html-to-markdown/v2": {"orchestrator/tool/web"},
	"github.com/pkoukk/tiktoken-go":                   {"anamnesis/tokens"},
	"github.com/pkoukk/tiktoken-go-loader":            {"anamnesis/tokens"},
	"modernc.org/sqlite":                              {"orchestrator/search"},
	"github.com/minio/minio-go/v7":                    {"orchestrator/replica/bucket"},
	"mvdan.cc/sh/v3":                                  {"anamnesis/shell"},
	"github.com/spf13/cobra":                          {"cmd"},
	"github.com/spf13/pflag":                          {"cmd"},
	"charm.land":                                      {"cmd"},
	"github.com/jackc/pgx/v5":                         {"cmd/anamnesis-worker"},
	"github.com/riverqueue/river":                     {"cmd/anamnesis-worker"},
}

// TestLayering reads the imports of every Go file: they run downwards only.
// It parses the files itself, because a cached `go list` would let an illegal
// import pass unseen.
func TestLayering(t *testing.T) {
	seen := 0
	imports := make(map[string][]string) // of each package, without tests
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		seen++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if !strings.HasSuffix(name, "_test.go") {
			imports[dir] = slices.Clip(imports[dir]) // one without imports is a package, too
		}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			checkImport(t, path, dir, imp)
			if !strings.HasSuffix(name, "_test.go") {
				imports[dir] = append(imports[dir], imp)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Fatalf("read only %d Go files: the walk is broken", seen)
	}
	checkPure(t, imports)
	checkOrchestrator(t, imports)
}

// checkOrchestrator compares the packages of the orchestrator with their list.
func checkOrchestrator(t *testing.T, imports map[string][]string) {
	t.Helper()
	for _, name := range orchestrator {
		if _, ok := imports["orchestrator/"+name]; !ok {
			t.Errorf("orchestrator/%s does not exist: remove it from the list orchestrator of layering_test.go", name)
		}
	}
	for dir, list := range imports {
		name, ok := strings.CutPrefix(dir, "orchestrator/")
		if !ok {
			continue
		}
		floor := slices.Index(orchestrator, name)
		if floor < 0 {
			t.Errorf("%s is missing in the list orchestrator of layering_test.go: add it after what it imports", dir)
			continue
		}
		for _, imp := range list {
			if to, ours := strings.CutPrefix(imp, "anamnesis/orchestrator/"); ours &&
				!slices.Contains(orchestrator[:floor], to) {
				t.Errorf("%s imports %s, which does not stand before it in the list orchestrator of layering_test.go: "+
					"imports run downwards; pass the value in, or move what both need below them", dir, imp)
			}
		}
	}
}

// checkPure follows the imports of pure packages through ours.
func checkPure(t *testing.T, imports map[string][]string) {
	t.Helper()
	way := make(map[string]string) // how a pure package reaches each
	queue := slices.Clone(pure)
	for _, dir := range pure {
		way[dir] = dir
		if len(imports[dir]) == 0 {
			t.Errorf("%s is listed as pure and does not exist", dir)
		}
	}
	for i := 0; i < len(queue); i++ {
		var effects []string
		for _, imp := range imports[queue[i]] {
			if isImpure(imp) || imp == "context" && i < len(pure) { // model.Model takes a context
				effects = append(effects, imp)
				continue
			}
			if dir, ours := strings.CutPrefix(imp, "anamnesis/"); ours && way[dir] == "" {
				way[dir] = way[queue[i]] + " → " + dir
				queue = append(queue, dir)
			}
		}
		if slices.Sort(effects); len(effects) > 0 {
			t.Errorf(
				"%s imports %s: %s is pure, with all that it imports; let orchestrator/runtime find the value out and "+
					"record it in an operation", way[queue[i]], strings.Join(slices.Compact(effects), ", "), strings.Fields(way[queue[i]])[0])
		}
	}
}

// isImpure finds the entry of impure nearest to a package.
func isImpure(imp string) bool {
	for p := imp; p != "."; p = path.Dir(p) {
		if no, ok := impure[p]; ok {
			return no
		}
	}
	return false
}

func checkImport(t *testing.T, path, dir, imp string) {
	t.Helper()
	test := strings.HasSuffix(path, "_test.go")
	for lib, places := range doors {
		inside := slices.ContainsFunc(places, func(p string) bool { return dir == p || strings.HasPrefix(dir, p+"/") })
		if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !inside && !test {
			t.Errorf("%s imports %s: only %q may know that library", path, imp, places)
		}
	}
	if imp != "anamnesis" && !strings.HasPrefix(imp, "anamnesis/") {
		return
	}
	room, _, _ := strings.Cut(dir, "/")
	if room == "." {
		room = ""
	}
	allowed, ok := rooms[room]
	if !ok {
		t.Errorf("%s: layering_test.go does not say in rooms what %s may import", path, room)
		return
	}
	target, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(imp, "anamnesis"), "/"), "/")
	// tests may read the embedded files
	if !slices.Contains(allowed, target) && imp != everywhere && !(test && target == "") {
		t.Errorf("%s imports %s: %q may import %q only", path, imp, room, allowed)
	}
	if strings.HasPrefix(dir, "cmd/internal") && strings.HasPrefix(imp, "anamnesis/cmd/anamnesis") {
		t.Errorf("%s imports %s: front ends do not import the command", path, imp)
	}
	if test {
		return
	}
	for _, f := range floors {
		name, ok := strings.CutPrefix(dir, f.room+"/internal/")
		if !ok {
			continue
		}
		below, inside := strings.CutPrefix(imp, "anamnesis/"+f.room+"/internal/")
		floor := slices.Index(f.packages, name)
		if floor < 0 {
			t.Errorf(
				"%s: %s is missing in the list floors of layering_test.go: add it after what it imports", path, dir)
		} else if inside && !slices.Contains(f.packages[:floor], below) || !inside && imp != everywhere &&
			!slices.Contains(strings.Fields(f.also), strings.TrimPrefix(imp, "anamnesis/")) {
			t.Errorf("%s imports %s: %s may import %q only", path, imp, dir, f.packages[:floor])
		}
	}
	for _, w := range walls {
		from := "anamnesis/" + dir
		under := from == w.from || (w.from != "anamnesis/opstream" && strings.HasPrefix(from, w.from+"/"))
		hit := imp == w.to || (strings.HasSuffix(w.to, "/") && strings.HasPrefix(imp, w.to))
		if under && hit {
			t.Errorf("%s imports %s: %s", path, imp, w.why)
		}
	}
}

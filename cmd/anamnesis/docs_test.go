package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"

	"anamnesis/opstream/op"
)

// documents returns the repository's markdown files.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../*.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir("../../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// slugs returns the anchors that a page's headings have on GitHub.
func slugs(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// TestLinks checks that each link of the documents leads to a file, and to a heading
// where it names one.
func TestLinks(t *testing.T) {
	checked := 0
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			there, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); err != nil && (statErr != nil || !info.IsDir()) {
				t.Errorf("%s: link to %s: no such file", path, m[1])
			} else if anchor != "" && !slices.Contains(slugs(string(there)), anchor) {
				t.Errorf("%s: link to %s: no such heading", path, m[1])
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d links checked, want at least 50", checked)
	}
}

// TestCommandReference checks that docs/reference/commands.md says what the program's
// own help says. UPDATE_GOLDEN=1 rewrites it.
func TestCommandReference(t *testing.T) {
	const path = "../../docs/reference/commands.md"
	a := &app{
		stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
		getenv: func(string) string { return "" },
	}
	var b strings.Builder
	b.WriteString("# Commands\n\nGenerated from the program's help; `anamnesis COMMAND --help` prints the same.\n")
	describe(&b, a.rootCommand())
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s differs from the help: UPDATE_GOLDEN=1 go test ./cmd/anamnesis -run TestCommandReference rewrites it", path)
	}
}

// describe writes the commands below c, in the order of their names.
func describe(b *strings.Builder, c *cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" {
			continue
		}
		if !sub.HasAvailableSubCommands() || sub.Runnable() {
			fmt.Fprintf(b, "\n## %s\n\n    %s\n\n%s\n", sub.CommandPath(), sub.UseLine(),
				strings.TrimSpace(cmp.Or(sub.Long, sub.Short)))
			describeFlags(b, sub)
		}
		describe(b, sub)
	}
}

// describeFlags writes a table of c's own flags, if it has any.
func describeFlags(b *strings.Builder, c *cobra.Command) {
	head := "\n| flag | |\n|---|---|\n"
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, "%s| `%s` | %s |\n", head, name, strings.ReplaceAll(usage, "|", "\\|"))
		head = ""
	})
}

var fenced = regexp.MustCompile("(?s)```(sh|yaml)\n(.*?)```")

// TestDocumentedCommands checks that each command in a shell block of the documents is a verb of the
// program, with flags that it has.
func TestDocumentedCommands(t *testing.T) {
	parser := syntax.NewParser()
	checked := 0
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "sh" {
				continue
			}
			file, err := parser.Parse(strings.NewReader(m[2]), path)
			if err != nil {
				t.Errorf("%s: a block is no shell text: %v", path, err)
				continue
			}
			syntax.Walk(file, func(n syntax.Node) bool {
				call, ok := n.(*syntax.CallExpr)
				if !ok || len(call.Args) == 0 || call.Args[0].Lit() != "anamnesis" {
					return true
				}
				var args []string
				for _, word := range call.Args[1:] {
					args = append(args, cmp.Or(word.Lit(), "0")) // a quoted word stands for any value
				}
				if err := parseCommand(args); err != nil {
					t.Errorf("%s: anamnesis %s: %v", path, strings.Join(args, " "), err)
				}
				checked++
				return true
			})
		}
	}
	if checked < 50 {
		t.Errorf("%d commands checked, want at least 50", checked)
	}
}

// parseCommand finds the command of the arguments and parses its flags.
func parseCommand(args []string) error {
	a := &app{
		stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard,
		getenv: func(string) string { return "" },
	}
	command, rest, err := a.rootCommand().Find(args)
	if err != nil {
		return err
	}
	if command.HasSubCommands() && !command.Runnable() {
		return errors.New("names no verb")
	}
	var unknown *pflag.NotExistError
	if err := command.ParseFlags(rest); errors.As(err, &unknown) {
		return err
	}
	return nil
}

// examples are the pages whose commands run without a server. The YAML blocks of a page become the
// files, in their order, before the first command that is run.
var examples = []struct {
	page   string
	files  []string
	blocks int    // of shell that are run; 0: all
	but    string // a line with this text is not run
}{
	{page: "guides/eas.md", blocks: 1, but: "probe"},
	{page: "reference/script-model.md", files: []string{"greeting.yaml"}, blocks: 1},
	{page: "guides/tutorial.md", files: []string{"model.yaml", "next.yaml"}},
}

func TestExamples(t *testing.T) {
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range examples {
		t.Run(e.page, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../docs", e.page))
			if err != nil {
				t.Fatal(err)
			}
			dir, home := t.TempDir(), t.TempDir()
			var commands strings.Builder
			blocks := 0
			for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
				switch {
				case m[1] == "sh" && (e.blocks == 0 || blocks < e.blocks):
					commands.WriteString(m[2])
					blocks++
				case m[1] == "yaml" && len(e.files) > 0:
					if err := os.WriteFile(filepath.Join(dir, e.files[0]), []byte(m[2]), 0o600); err != nil {
						t.Fatal(err)
					}
					e.files = e.files[1:]
				}
			}
			if blocks == 0 || len(e.files) > 0 {
				t.Fatalf("%d blocks of commands; no block for %v", blocks, e.files)
			}
			lines := strings.Split(commands.String(), "\n")
			if e.but != "" {
				lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, e.but) })
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-ec",
				`anamnesis() { "$BIN" "$@"; }`+"\n"+strings.Join(lines, "\n"))
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "BIN="+bin, "HOME="+home,
				"ANAMNESIS_HOME="+filepath.Join(home, "a"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestOperationsPage checks that docs/reference/stream-json.md names each kind of operation, and only
// fields that its body has.
func TestOperationsPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/stream-json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## Kinds of operations")
	if !ok {
		t.Fatal("no such section")
	}
	named := map[op.Kind]bool{}
	quoted := regexp.MustCompile("`([a-z_.]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], ".") {
			continue
		}
		fields := map[string]bool{}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			kind := op.Kind(m[1])
			named[kind] = true
			body, err := op.Decode(kind, []byte("{}"))
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				continue
			}
			for _, field := range reflect.VisibleFields(reflect.TypeOf(body).Elem()) {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				fields[name] = true
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[3], -1) {
			if !fields[m[1]] {
				t.Errorf("%s: no field %s", strings.TrimSpace(cells[1]), m[1])
			}
		}
	}
	for _, body := range op.Bodies() {
		if !named[body.Kind()] {
			t.Errorf("the page lacks %s", body.Kind())
		}
	}
}

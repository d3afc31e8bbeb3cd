package main

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }}
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
			fmt.Fprintf(b, "\n## %s\n\n    %s\n\n%s\n", sub.CommandPath(), sub.UseLine(), strings.TrimSpace(cmp.Or(sub.Long, sub.Short)))
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

// TestExamples runs the commands of pages whose first example needs no server, without a terminal.
func TestExamples(t *testing.T) {
	for page, files := range map[string][]string{"../../docs/guides/eas.md": nil, "../../docs/reference/script-model.md": {"greeting.yaml"}} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var commands string
		dir, home := t.TempDir(), t.TempDir()
		for _, m := range fenced.FindAllStringSubmatch(string(text), -1) {
			switch {
			case m[1] == "sh" && commands == "":
				commands = m[2]
			case m[1] == "yaml" && len(files) > 0:
				if err := os.WriteFile(filepath.Join(dir, files[0]), []byte(m[2]), 0o600); err != nil {
					t.Fatal(err)
				}
				files = files[1:]
			}
		}
		ran := 0
		for line := range strings.Lines(commands) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "   #")
			if strings.Contains(line, "probe") {
				continue
			}
			bin, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", `anamnesis() { "$BIN" "$@"; }; `+line)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "BIN="+bin, "HOME="+home, "ANAMNESIS_HOME="+filepath.Join(home, "a"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", page, line, err, out)
			}
			ran++
		}
		if ran == 0 {
			t.Errorf("%s has no command", page)
		}
	}
}

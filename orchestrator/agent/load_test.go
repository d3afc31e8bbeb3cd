package agent

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// known are names of tools for the tests.
var known = []string{
	"Bash", "ReadFile", "WriteFile", "Glob", "Grep", "FetchURL", "SendDMail", "jump_to_step", "AskUser", "TaskList",
	"TaskOutput", "TaskStop",
}

// write lays a txtar out: project/ is the project, user/ the user's folder.
func write(t *testing.T, text string) (root string, l *Loader) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"project", "user"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range txtar.Parse([]byte(text)).Files {
		path := filepath.Join(root, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, NewLoader(
		&Options{Project: filepath.Join(root, "project"), User: filepath.Join(root, "user"), Tools: known})
}

// TestEmbedded: the default agent and its three subagents come with the program;
// the subagents cannot jump, and those that look cannot change anything.
func TestEmbedded(t *testing.T) {
	l := NewLoader(&Options{Tools: known})
	a, err := l.Load(Default)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, sub := range a.Spec.Subagents {
		names = append(names, sub.Name)
		if sub.Description == "" || len(sub.Subagents) > 0 || len(sub.Hash) != 64 || sub.Prompt == "" {
			t.Errorf("%+v", sub)
		}
		if Offers(&sub, "jump_to_step", false) || !Offers(&sub, "ReadFile", true) {
			t.Errorf("%s jumps, or cannot read", sub.Name)
		}
		if got, want := Offers(&sub, "WriteFile", false), sub.Name == "coder"; got != want {
			t.Errorf("%s writes files: %v", sub.Name, got)
		}
	}
	if !slices.Equal(names, []string{"coder", "explore", "plan"}) {
		t.Errorf("subagents %q", names)
	}
	if !Offers(&a.Spec, "jump_to_step", false) || !Offers(&a.Spec, "mcp__x__y", false) || a.Scope != ScopeEmbedded ||
		a.Spec.From != "embedded:default.yaml" {
		t.Errorf("%+v", a)
	}
}

// TestExtends: what a file does not say it has from the one below it; lists are
// replaced, arguments and rules joined. A file may extend the one whose name it
// has taken.
func TestExtends(t *testing.T) {
	root, l := write(t, `
-- user/house.yaml --
description: The house's.
system_prompt: house.md
system_prompt_args: {TONE: dry, LANGUAGE: English}
model: big
tools: [ReadFile, "mcp__*"]
exclude_tools: [Bash]
subagents: {explore: explore}
guarded: ['Bash:terraform apply*']
rules: {allow: ['Bash(go test *)'], deny: [FetchURL]}
approval: edits
sandbox: read-only
-- user/house.md --
${TONE} ${LANGUAGE} ${DATE} $${NONE} $HOME
-- project/.anamnesis/agents/house.yaml --
extends: house
system_prompt_args: {LANGUAGE: German}
tools: [WriteFile]
rules: {ask: [Glob], deny: [WriteFile]}
read_only: true
`)
	a, err := l.Load("house")
	if err != nil {
		t.Fatal(err)
	}
	s := a.Spec
	if len(s.Subagents) != 1 || s.Subagents[0].Name != "explore" {
		t.Errorf("subagents %+v", s.Subagents)
	}
	s.Subagents = nil
	want := Spec{
		Name: "house", Description: "The house's.",
		From: filepath.Join(root, "project", ProjectDir, "house.yaml"), Hash: s.Hash,
		Prompt: "${TONE} ${LANGUAGE} ${DATE} $${NONE} $HOME\n",
		Args:   map[string]string{"TONE": "dry", "LANGUAGE": "German"},
		Model:  "big", Tools: []string{"WriteFile"}, ExcludeTools: []string{"Bash"}, ReadOnly: true, Approval: "edits",
		Sandbox: "read-only",
		Guarded: s.Guarded, Allow: []string{"Bash(go test *)"}, Ask: []string{"Glob"},
		Deny: []string{"FetchURL", "WriteFile"},
	}
	if !reflect.DeepEqual(s, want) || len(s.Guarded) != 1 || s.Guarded[0].Command != "terraform apply*" {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	if got := Render(&s, Vars{Now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}); got != "dry German 2026-03-01 ${NONE} $HOME" {
		t.Errorf("rendered %q", got)
	}
	if a.Scope != ScopeProject || !strings.Contains(a.Text(), "LANGUAGE: German") ||
		strings.Contains(a.Text(), "terraform") {
		t.Errorf("%s brings %s", a.Scope, a.Text())
	}
}

// TestHash: the hash changes with anything an agent may do, its subagents'
// prompts included, and with nothing else.
func TestHash(t *testing.T) {
	load := func(text string) string {
		_, l := write(t, text)
		a, err := l.Load("a")
		if err != nil {
			t.Fatal(err)
		}
		return a.Spec.Hash
	}
	const spec = "-- user/a.yaml --\nextends: default\nsubagents: {s: s}\n-- user/s.yaml --\ndescription: D.\nsystem_prompt: s.md\n-- user/s.md --\n"
	first := load(spec + "one\n")
	if again := load(spec + "one\n"); again != first {
		t.Error("the same files have another hash in another folder")
	}
	if other := load(spec + "two\n"); other == first {
		t.Error("a subagent's prompt is not in the hash")
	}
	if other := load(strings.Replace(spec, "subagents", "model: m\nsubagents", 1) + "one\n"); other == first {
		t.Error("the model is not in the hash")
	}
}

// TestFaults: each is one line with the file and the line.
func TestFaults(t *testing.T) {
	const ok = "system_prompt: p.md\n"
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "name: a\nextend: default\n", `user/a.yaml:2: unknown key "extend"; there are name, description, extends`},
		{"twice", "model: a\n\nmodel: b\n", `user/a.yaml:3: key "model" is given twice`},
		{"not YAML", "name: [a\n", "user/a.yaml:"},
		{"two documents", ok + "---\n" + ok, "user/a.yaml:1: expected single document, found multiple"},
		{"a list", "- a\n", "user/a.yaml:1: a list where a group of keys with values is wanted"},
		{"unknown tool", ok + "tools:\n  - ReadFile\n  - ReedFile\n", `user/a.yaml:4: tools: unknown tool "ReedFile"; there are Bash, ReadFile`},
		{"unknown excluded tool", ok + "exclude_tools: [Teleport]\n", `user/a.yaml:2: exclude_tools: unknown tool "Teleport"`},
		{"pattern of none", ok + "tools: ['Reed*']\n", `user/a.yaml:2: tools: unknown tool "Reed*"`},
		{"no pattern", ok + "tools: ['[']\n", `user/a.yaml:2: tools: "[" is not a valid pattern`},
		{"no tools", ok + "tools: []\n", "user/a.yaml: tools: empty: name at least one"},
		{"circle", "extends: b\n", "user/b.yaml:1: extends: a circle: a → b → a"},
		{"circle by path", "extends: ./a.yaml\n", "user/a.yaml:1: extends: a circle: a → a"},
		{"unknown base", "\nextends: nobody\n", `user/a.yaml:2: extends: no such agent: "nobody"`},
		{"missing base file", "extends: ./none.yaml\n", "user/a.yaml:1: extends: ./none.yaml: there is no such file"},
		{"no prompt", "model: m\n", "user/a.yaml: no system_prompt: name a file, or extend"},
		{"missing prompt", "model: m\nsystem_prompt: none.md\n", "user/a.yaml:2: system_prompt: none.md: there is no such file"},
		{"prompt is a folder", "system_prompt: folder\n", "user/a.yaml:1: system_prompt: folder: not a regular file"},
		{"empty prompt", "system_prompt: empty.md\n", "user/a.yaml:1: system_prompt: empty.md is empty"},
		{"missing argument", "system_prompt: args.md\n", "user/args.md:3: no argument ${TONE}"},
		{"taken argument", ok + "system_prompt_args:\n  DATE: x\n", "user/a.yaml:3: system_prompt_args: DATE is filled in by the program"},
		{"small argument", ok + "system_prompt_args: {tone: x}\n", `user/a.yaml:2: system_prompt_args: "tone": want capital letters`},
		{"bad rule", ok + "rules: {allow: ['Bash()']}\n", "user/a.yaml:2: rules: rule"},
		{"bad rule key", ok + "rules: {forbid: [Bash]}\n", `user/a.yaml:2: unknown key "forbid"; there are name,`},
		{"bad guarded", ok + "guarded: ['ReadFile:x']\n", "user/a.yaml:2: guarded:"},
		{"bad mode", ok + "approval: yolo\n", `user/a.yaml:2: approval: approval mode "yolo"`},
		{"bad sandbox", ok + "sandbox: none\n", `user/a.yaml:2: sandbox: sandbox "none"`},
		{"bad switch", ok + "read_only: maybe\n", `user/a.yaml:2: "maybe" where true or false is wanted`},
		{"bad name", "name: a b\n", `user/a.yaml:1: name: "a b": want 1 to 40`},
		{"subagent without a description", ok + "subagents:\n  s: plain\n", "user/a.yaml:3: subagents: s has no description"},
		{"subagent without a path", ok + "subagents: {s: {description: d}}\n", "user/a.yaml:2: subagents: one has no path"},
		{"unknown subagent", ok + "subagents: {s: nobody}\n", `user/a.yaml:2: subagents: s: no such agent: "nobody"`},
		{"fault in a subagent", ok + "subagents: {s: {path: bad, description: d}}\n", `user/bad.yaml:1: unknown key "x"`},
		{"missing file of a subagent", ok + "subagents: {s: {path: ./none.yaml, description: d}}\n", "user/a.yaml:2: subagents: s: user/none.yaml: there is no such file"},
		{"an empty text", "extends: ''\n", "user/a.yaml:1: want one text"},
		{"too long", ok + "description: " + strings.Repeat("x", 1_001) + "\n", "user/a.yaml:2: description: 1001 bytes"},
		{"too large", ok + "#" + strings.Repeat("x", maxSpecBytes), "user/a.yaml: more than 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, l := write(t, "-- user/a.yaml --\n"+c.text+`
-- user/b.yaml --
extends: a
-- user/bad.yaml --
x: y
-- user/plain.yaml --
system_prompt: p.md
-- user/p.md --
Hello.
-- user/args.md --
Hello.

${DATE} ${TONE}
-- user/empty.md --

-- user/folder/x --
`)
			_, err := l.Load("a")
			var fault *Error
			if !errors.As(err, &fault) {
				t.Fatalf("error %v (%T)", err, err)
			}
			text := strings.ReplaceAll(err.Error(), root+"/", "")
			if !strings.HasPrefix(text, c.want) || strings.Contains(text, "\n") {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

// TestEmbeddedByName: a file can name the program's own specs and prompts, also
// of names that others have taken.
func TestEmbeddedByName(t *testing.T) {
	_, l := write(t, `
-- project/.anamnesis/agents/explore.yaml --
extends: embedded:explore
description: The project's.
-- user/default.yaml --
extends: embedded:default.yaml
model: m
system_prompt: embedded:coder.md
subagents:
  look: embedded:explore
  plan: {path: embedded:plan.yaml, description: Plans.}
-- user/wrong.yaml --
extends: embedded:nothing
-- user/out.yaml --
system_prompt: embedded:../load.go
`)
	own, err := NewLoader(nil).Load("embedded:coder")
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.Load(Default)
	if err != nil || a.Spec.Model != "m" || a.Spec.Prompt != own.Spec.Prompt || len(a.Spec.Subagents) != 2 ||
		!a.Spec.Subagents[0].ReadOnly {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err = l.Load("explore"); err != nil || a.Spec.Description != "The project's." || !a.Spec.ReadOnly {
		t.Errorf("%+v, %v", a, err)
	}
	for name, want := range map[string]string{
		"wrong":            "wrong.yaml:1: extends: embedded:nothing: there is no such file",
		"out":              "out.yaml:1: system_prompt: embedded:../load.go: there is no such file",
		"embedded:nothing": "embedded:nothing.yaml: there is no such file",
	} {
		if _, err := l.Load(name); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

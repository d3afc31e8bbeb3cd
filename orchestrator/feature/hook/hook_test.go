package hook

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func parse(t *testing.T, text string) ([]Hook, error) {
	t.Helper()
	var doc map[string]yaml.Node
	if err := yaml.Load([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	node := doc[Key]
	return Parse(&node)
}

// A matcher is compared with the whole of Claude Code's name of a tool, and of ours.
func TestMatch(t *testing.T) {
	for _, c := range []struct{ matcher, tool, args, want string }{
		{"Edit|Write", "StrReplaceFile", `{"path":"a","edit":{"old":"x","new":"y"}}`, "file_path new_string old_string path edit"},
		{"StrReplaceFile", "StrReplaceFile", `{"path":"a","edit":[{"old":"x","new":"y"}]}`, "file_path new_string old_string path edit"},
		{"Edit", "StrReplaceFile", `{"path":"a","edit":[]}`, "file_path path edit"},
		{"Edit", "StrReplaceFile", `{"path":"a","edit":"x"}`, "file_path path edit"},
		{"Read", "ReadFile", `{"path":7}`, "path"},
		{"Read", "ReadFile", `{"path":"b","file_path":"/w/a"}`, "file_path path"},
		{"Read", "ReadFile", `{"path":"/w/a"}`, "file_path path"},
		{"Write", "WriteFile", `{"path":"a","content":"b"}`, "content file_path path"},
		{"Read", "ReadFile", `{"path":"a"}`, "file_path path"},
		{"Bash", "Bash", `{"command":"ls"}`, "command"},
		{"mcp__memory__.*", "mcp__memory__store", `{}`, ""},
		{"*", "Glob", `{"pattern":"*"}`, "pattern"},
		{"", "Glob", `{"pattern":"*"}`, "pattern"},
		{"Ed", "StrReplaceFile", `{}`, "none"},
		{"mcp__memory", "mcp__memory__store", `{}`, "none"},
	} {
		hooks, err := parse(t,
			`hooks: {PreToolUse: [{matcher: "`+c.matcher+`", hooks: [{type: command, command: x}]}]}`)
		if err != nil {
			t.Fatal(err)
		}
		name, input := foreign(c.tool, c.args, "/w")
		got := strings.Join(slices.Sorted(maps.Keys(input)), " ")
		if len(matching(hooks, preToolUse, name, c.tool)) == 0 {
			got = "none"
		}
		want := strings.Fields(c.want)
		slices.Sort(want)
		if got != strings.Join(want, " ") {
			t.Errorf("%s of %s(%s): %s, want %s", c.matcher, c.tool, c.args, got, c.want)
		}
		if path, ok := input["file_path"]; ok && path != filepath.Join("/w", "a") {
			t.Errorf("%s: file_path %v", c.tool, path)
		}
	}
}

func TestParseFaults(t *testing.T) {
	for text, want := range map[string]string{
		`hooks: {PreCompact: [{hooks: [{type: command, command: x}]}]}`:          "PreCompact is no event",
		`hooks: {SessionStart: [{hooks: [{type: command, command: x}]}]}`:        "SessionStart is no event",
		`hooks: {Stop: [{hooks: [{type: http, command: x}]}]}`:                   `type "http"`,
		`hooks: {Stop: [{hooks: [{type: command}]}]}`:                            "no command",
		`hooks: {Stop: [{hooks: [{type: command, command: x, timeout: 7200}]}]}`: "timeout 7200",
		`hooks: {Stop: [{matcher: "(", hooks: [{type: command, command: x}]}]}`:  "no regular expression",
		`hooks: {Stop: [{hooks: [{type: command, command: x, once: true}]}]}`:    `unknown key "once"`,
		`hooks: [1]`: "want EVENT",
	} {
		if _, err := parse(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"anamnesis/cmd/internal/exit"
)

// TestUserFiles: what is wrong with a file that a user writes is one line with the
// file, the line, the cause and a remedy, in a user's words.
func TestUserFiles(t *testing.T) {
	const notYAML, notJSON = "a: [1,\nb: }\n", "{\n \"a\": ]\n}\n"
	// A verb that reads the file, and for each text the line in which the fault is and
	// what is said of it; no line: the text is no fault.
	type fault struct {
		text string
		line string
		want string
	}
	run := []string{"run", "--dir", "w", "--model", "script:words.yaml", "Go."}
	for _, tt := range []struct {
		file   string
		args   []string
		faults []fault
	}{
		{"home/rules.yaml", []string{"rules"}, []fault{
			{"deny: []\nallows: [Bash]\n", "2", `unknown key "allows"`}, {"allow: Bash\n", "1", `"Bash" where a list is wanted`},
			{"allow:\n - {a: b}\n", "2", "keys with values where a text is wanted"}, {"- Bash\n", "1", "a list where a group of keys with values is wanted"},
			{notYAML, "2", "not YAML"}, {"", "", ""}, {"# none\n", "", ""}}},
		{"w/.anamnesis/rules.yaml", []string{"rules", "--dir", "w"}, []fault{{"allow: 1\n", "1", `"1" where a list is wanted`}}},
		{"home/web.yaml", run, []fault{
			{"\nallowed: []\n", "2", `unknown key "allowed"`}, {"search: searx\n", "1", `"searx" where a group of keys with values is wanted`}, {notYAML, "2", "not YAML"}}},
		{"home/eas.yaml", []string{"eas", "list"}, []fault{
			{"version: 1\nrow: []\n", "1", `unknown field "row"`}, {"version: 1\nrows: many\n", "2", "where a list is wanted"}, {notYAML, "2", "not YAML"}, {"", "", ""}}},
		{".anamnesis/eas.yaml", []string{"eas", "show", "m"}, []fault{{"- x\n", "1", "a list where a group of keys"}}},
		{"home/prices.yaml", run, []fault{
			{"version: 1\nrow: []\n", "2", `unknown key "row"`}, {"version: one\n", "1", `"one" where a whole number is wanted`},
			{"version: 1\nrows:\n - pattern: x\n   price: 1\n", "4", `unknown key "price"`}, {"version: 1\nrows:\n - pattern: x\n   input: dear\n", "4", `"dear" where a number is wanted`},
			{notYAML, "2", "not YAML"}}},
		{"home/embedder.yaml", []string{"kb", "list"}, []fault{
			{"kind: ollama\nadress: x\n", "2", `unknown key "adress"`}, {"dimensions: many\n", "1", `"many" where a whole number is wanted`}, {notYAML, "2", "not YAML"}}},
		{"home/agents/helper.yaml", []string{"agent", "show", "helper"}, []fault{
			{"description: d\ntool: [Bash]\n", "2", `unknown key "tool"`}, {"description: d\ntools: Bash\n", "2", "where a list is wanted"}, {notYAML, "2", "not YAML"}, {"", "whole", "no system_prompt"}}},
		{"words.yaml", run, []fault{
			{"turn: []\n", "1", `unknown key "turn"`}, {"turns: Done.\n", "1", `"Done." where a list is wanted`}, {notYAML, "2", "not YAML"}, {"", "1", "empty"}}},
		{"home/mcp.json", []string{"mcp", "test"}, []fault{
			{"{\n \"mcpServers\": []\n}", "2", "mcpServers: array where a group of keys with values is wanted"}, {notJSON, "2", "not JSON"},
			{"{\n \"mcpServers\": {\n  \"s\": {\n   \"command\": 1}}}", "4", "command: number where a text is wanted"}, {"[]", "1", "array where"}}},
		{"home/mcp.json", []string{"mcp", "add", "s", "--", "true"}, []fault{{notJSON, "2", "not JSON"}, {"{\n \"mcpServers\": []}", "2", "array where"}}},
		{"home/approvals.json", []string{"rules", "approve", "--dir", "w2", "--yes"}, []fault{
			{notJSON, "2", "not JSON"}, {"[\n {\"name\": 1}]", "2", "name: number where a text is wanted"}}},
	} {
		for _, f := range tt.faults {
			dir := t.TempDir()
			t.Chdir(dir)
			for name, text := range map[string]string{
				"w/README": "", "w2/.anamnesis/rules.yaml": "allow: [Bash]\n", "words.yaml": "turns:\n  - reply: Done.\n", tt.file: f.text,
			} {
				path := filepath.Join(dir, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			var out, told bytes.Buffer
			a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &told, getenv: func(name string) string {
				return map[string]string{"ANAMNESIS_HOME": filepath.Join(dir, "home"), "HOME": dir}[name]
			}}
			code := a.main(tt.args)
			said := told.String()
			if f.line == "" {
				if code != exit.Done {
					t.Errorf("%s %q: exit %d, %s", tt.file, f.text, code, said)
				}
				continue
			}
			said = said[strings.LastIndex(strings.TrimSuffix(said, "\n"), "\n")+1:] // notices come first
			place := regexp.QuoteMeta(filepath.Base(tt.file)) + ".*:? ?\\b" + regexp.QuoteMeta(f.line) + ": "
			if f.line == "whole" { // no line is to blame
				place = regexp.QuoteMeta(filepath.Base(tt.file)) + ": "
			}
			if code != exit.Usage || !regexp.MustCompile(place).MatchString(said) || !strings.Contains(said, f.want) {
				t.Errorf("%s %q: exit %d, want line %s and %q; it said\n%s", tt.file, f.text, code,
					f.line, f.want, said)
			}
			if goWords.MatchString(said) {
				t.Errorf("%s %q: words of the program's code:\n%s", tt.file, f.text, said)
			}
		}
	}
}

// goWords are types of Go, and what libraries call themselves.
var goWords = regexp.MustCompile(`struct\b|\[\]\w|map\[|Go value|: json:|go-yaml|: yaml: |!!|\*?\b(remote|mcp|price|command)\.[A-Z]|into |construct|unmarshal`)

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const params = "parameters: {type: object, properties: {x: {type: string}}}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"least":           {"description: d\ncommand: [true]", ""},
		"with all":        {"name: tool\ndescription: d\n" + params + "command: [run, 'a{{ x }}b']\ntimeout: 5\nread_only: true", ""},
		"no YAML":         {"\tx", "cannot be read"},
		"unknown key":     {"description: d\ncommand: [true]\ncolour: red", "colour"},
		"twice":           {"description: d\ndescription: e\ncommand: [true]", "cannot be read"},
		"another name":    {"name: other\ndescription: d\ncommand: [true]", "the file is called tool.yaml"},
		"no description":  {"command: [true]", "description"},
		"no command":      {"description: d", "command"},
		"no parameter":    {"description: d\n" + params + "command: [run, '{{y}}']", "{{y}} is no parameter; there are x"},
		"program chosen":  {"description: d\n" + params + "command: ['{{x}}']", "the file's choice"},
		"long timeout":    {"description: d\ncommand: [true]\ntimeout: 3601", "timeout 3601"},
		"outside unasked": {"description: d\ncommand: [true]\nread_only: true\nsandbox: off", "need an approval"},
		"schema of text":  {"description: d\nparameters: {type: string}\ncommand: [true]", "type object"},
		"broken schema":   {"description: d\nparameters: {type: object, $ref: '#/nowhere'}\ncommand: [true]", "schema"},
		"schema no sense": {"description: d\nparameters: {type: object, minProperties: many}\ncommand: [true]", "parameters"},
	} {
		_, err := parse("tool", []byte(tc.text))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, err := parse("mcp__github__push", []byte("description: d\ncommand: [true]")); err == nil || !strings.Contains(err.Error(), "MCP servers") {
		t.Errorf("a name of an MCP server's tool: %v", err)
	}
	if _, err := parse("no name", []byte("description: d\ncommand: [true]")); err == nil {
		t.Error("a name with a space is none")
	}
}

func TestFill(t *testing.T) {
	words := []string{"run", "{{s}}", "-n={{n}}", "{{list}}", "{{missing}}", "--x={{missing}}", "{{ b }}{{s}}", "{{object}}"}
	got := fill(words, map[string]any{"s": "; rm -rf $(x) {{n}}", "n": 3.0, "list": []any{"a b", 2.0}, "b": true, "object": map[string]any{"k": nil}})
	want := []string{"run", "; rm -rf $(x) {{n}}", "-n=3", "a b", "2", "true; rm -rf $(x) {{n}}", `{"k":null}`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("description: d\ncommand: [run, '{{x}}']\nparameters: {type: object, properties: {x: {}}}")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := parse("tool", []byte(text)); err == nil && (len(r.Command) == 0 || r.timeout <= 0) {
			t.Errorf("%q gives %+v", text, r)
		}
	})
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if files, err := (Folder{Path: filepath.Join(dir, "none")}).Read(); files != nil || err != nil {
		t.Errorf("no folder: %v, %v", files, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range maxFiles {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("t%03d.yaml", i)), []byte("description: d\ncommand: [true]"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := (Folder{Path: dir}).Read()
	if len(files) != maxFiles || err == nil || files[0].Err == nil {
		t.Errorf("%d files, %v, the first: %v", len(files), err, files[0].Err)
	}
	s := &Source{Folders: []Folder{{Path: dir}}}
	first := s.Tools(t.Context())
	second := s.Tools(t.Context())
	if first.Version != second.Version || len(second.News) != 0 || len(first.News) != 2 || len(first.Tools) != maxFiles-1 {
		t.Errorf("versions %d and %d, %d tools, news %q, then %q", first.Version, second.Version, len(first.Tools), first.News, second.News)
	}
}

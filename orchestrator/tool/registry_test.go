package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

func registry(t testing.TB) *tool.Registry {
	t.Helper()
	r, err := tool.NewRegistry(builtin.Tools(builtin.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestValidateAccepts(t *testing.T) {
	r := registry(t)
	tests := []struct{ name, tool, args, want string }{
		{"plain", "Bash", `{"command":"ls"}`, `{"command":"ls"}`},
		{"whole float", "Bash", `{"command":"ls","timeout":60.0}`, `{"command":"ls","timeout":60}`},
		{"exponent", "Bash", `{"command":"ls","timeout":1e2}`, `{"command":"ls","timeout":100}`},
		{"last duplicate wins", "Bash", `{"command":"rm","command":"ls"}`, `{"command":"ls"}`},
		{"no HTML escapes", "Bash", `{"command":"a && b > c"}`, `{"command":"a && b > c"}`},
		{"white space", "Think", " {\n\"thought\" : \"x\" } ", `{"thought":"x"}`},
		{"list", "StrReplaceFile", `{"path":"a","edits":[{"old":"x","new":""}]}`, `{"edits":[{"new":"","old":"x"}],"path":"a"}`},
		{"one or a list", "StrReplaceFile", `{"path":"a","edit":{"old":"x","new":""}}`, `{"edit":{"new":"","old":"x"},"path":"a"}`},
		{"a list or one", "StrReplaceFile", `{"path":"a","edit":[{"old":"x","new":""}]}`, `{"edit":[{"new":"","old":"x"}],"path":"a"}`},
		{"nothing at all", "recall", ``, `{}`},
		{"negative", "ReadFile", `{"path":"a","line_offset":-5}`, `{"line_offset":-5,"path":"a"}`},
	}
	for _, tt := range tests {
		got, args, err := r.Validate(op.Call{ID: "1", Name: tt.tool, Args: tt.args})
		if err != nil || string(args) != tt.want || got.Spec().Name != tt.tool {
			t.Errorf("%s: Validate = %s, %v; want %s", tt.name, args, err, tt.want)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	r := registry(t)
	tests := []struct {
		name, tool, args string
		want             []string
	}{
		{"unknown tool", "Fly", `{}`, []string{`no tool "Fly"`, "TaskStop, ReadFile, WriteFile, StrReplaceFile, PatchFile, Glob, Grep, FetchURL, Think, SetTodoList, AskUser, jump_to_step, recall"}},
		{"near name", "read_file", `{}`, []string{"Did you mean ReadFile?"}},
		{"misspelt name", "Bahs", `{}`, []string{"Did you mean Bash?"}},
		{"empty name", "", `{}`, []string{`no tool ""`}},
		{"not JSON", "Bash", `ls -la`, []string{"not valid JSON", "at byte", `{"command": string, "timeout"?: integer, "run_in_background"?: boolean, "network"?: boolean}`}},
		{"cut JSON", "Bash", `{"command":"ls`, []string{"end in the middle"}},
		{"something after", "Bash", `{"command":"ls"} {"x":1}`, []string{"something follows"}},
		{"neither one nor a list", "StrReplaceFile", `{"path":"a","edit":"x"}`, []string{`/properties/edit/anyOf/0: type: x has type "string", want "object"`, `"edit"?: {"old": string, "new": string, "replace_all"?: boolean} or [{"old": string`}},
		{"one of a wrong kind", "StrReplaceFile", `{"path":"a","edit":{"old":"x","replacement":""}}`, []string{`additional properties ["replacement"]`}},
		{"one of a list of a wrong kind", "StrReplaceFile", `{"path":"a","edit":[{"old":1,"new":""}]}`, []string{`items/properties/old: type: 1 has type "integer", want "string"`}},
		{"list", "Bash", `["ls"]`, []string{"must be a JSON object"}},
		{"null", "Bash", `null`, []string{"must be a JSON object"}},
		{"string", "Bash", `"ls"`, []string{"must be a JSON object"}},
		{"missing", "Bash", `{}`, []string{`fit the schema: required: missing properties: ["command"]. Expected: {"command": string`}},
		{"nothing", "Bash", ``, []string{`missing properties: ["command"]`}},
		{"extra", "Bash", `{"command":"ls","cwd":"/"}`, []string{`additional properties ["cwd"]`, "Expected:"}},
		{"misspelt", "ReadFile", `{"pth":"a"}`, []string{`additional properties ["pth"]`, `{"path": string`}},
		{"wrong type", "Bash", `{"command":7}`, []string{`/properties/command: type: 7 has type "integer", want "string"`}},
		{"quoted number", "Bash", `{"command":"ls","timeout":"60"}`, []string{`/properties/timeout: type: 60 has type "string", want "integer"`}},
		{"fraction", "Bash", `{"command":"ls","timeout":1.5}`, []string{`want "integer"`}},
		{"null value", "Bash", `{"command":null}`, []string{`has type "null", want "string"`}},
		{"too small", "Bash", `{"command":"ls","timeout":0}`, []string{"/properties/timeout: minimum"}},
		{"too large", "Bash", `{"command":"ls","timeout":86401}`, []string{"/properties/timeout: maximum"}},
		{"empty command", "Bash", `{"command":""}`, []string{"/properties/command: minLength"}},
		{"enum", "WriteFile", `{"path":"a","content":"","mode":"create"}`, []string{"create does not equal any of: [overwrite append]", `"overwrite"|"append"`}},
		{"inside a list", "StrReplaceFile", `{"path":"a","edits":[{"old":"x","new":"y"},{"old":1}]}`, []string{`/properties/edits/items`}},
		{"extra inside a list", "StrReplaceFile", `{"path":"a","edits":[{"old":"x","new":"y","all":true}]}`, []string{`additional properties ["all"]`}},
		{"empty list", "StrReplaceFile", `{"path":"a","edits":[]}`, []string{"/properties/edits: minItems"}},
		{"list as text", "StrReplaceFile", `{"path":"a","edits":"[{}]"}`, []string{`has type "string", want "array"`}},
		{"negative step", "jump_to_step", `{"step_id":-1,"reason":"x"}`, []string{"/properties/step_id: minimum"}},
		{"no reason", "jump_to_step", `{"step_id":1}`, []string{`missing properties: ["reason"]`}},
		{"a long value", "Bash", `{"command":["` + strings.Repeat("x", 9000) + `"]}`, []string{"/properties/command: type: [xxx", "bytes left out", `want "string". Expected`}},
		{"too large altogether", "Think", `{"thought":"` + strings.Repeat("x", tool.MaxArgsBytes) + `"}`, []string{"at most"}},
		{"too deep", "Think", strings.Repeat(`{"a":`, 20000), []string{"not valid JSON"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := r.Validate(op.Call{ID: "1", Name: tt.tool, Args: tt.args})
			var call *tool.CallError
			if !errors.As(err, &call) {
				t.Fatalf("err = %v, want a CallError", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("err = %v\nwant it to contain %q", err, want)
				}
			}
			if len(err.Error()) > 2000 {
				t.Errorf("the text is %d bytes long", len(err.Error()))
			}
			if res, ok := tool.ErrorResult(err); !ok || !res.IsError || res.Text != err.Error() {
				t.Errorf("ErrorResult = %+v, %v", res, ok)
			}
		})
	}
}

// stub is a tool of any spec.
type stub tool.Spec

func (s stub) Spec() tool.Spec { return tool.Spec(s) }
func (s stub) Call(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) {
	return tool.Result{}, nil
}

// TestNames: a tool's name is of letters, digits, _ and -, and no longer than providers take.
func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"azAZ09_-": true, strings.Repeat("a", tool.MaxNameBytes): true, strings.Repeat("a", tool.MaxNameBytes+1): false,
		"": false, "a b": false, "é": false, "a@": false, "a[": false, "a`": false, "a{": false, "a/": false, "a:": false, "a.b": false,
	} {
		if _, err := tool.NewRegistry(stub{Name: name, Schema: tool.Params()}); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNewRegistryRefuses(t *testing.T) {
	ok := tool.Params()
	tests := []struct {
		name  string
		tools []tool.Tool
		want  string
	}{
		{"twice", []tool.Tool{stub{Name: "A", Schema: ok}, stub{Name: "A", Schema: ok}}, "taken"},
		{"no name", []tool.Tool{stub{Schema: ok}}, "name"},
		{"odd name", []tool.Tool{stub{Name: "a b", Schema: ok}}, "name"},
		{"no schema", []tool.Tool{stub{Name: "A"}}, "schema"},
		{"not an object", []tool.Tool{stub{Name: "A", Schema: tool.String("")}}, "object"},
		{"broken schema", []tool.Tool{stub{Name: "A", Schema: &jsonschema.Schema{Type: "object", Ref: "#/nowhere"}}}, "schema"},
	}
	for _, tt := range tests {
		if _, err := tool.NewRegistry(tt.tools...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: err = %v, want %q in it", tt.name, err, tt.want)
		}
	}
}

// The pattern of a text counts as well.
func TestValidatePattern(t *testing.T) {
	r, err := tool.NewRegistry(stub{
		Name:   "A",
		Schema: tool.Params(tool.Param{Name: "x", Schema: &jsonschema.Schema{Type: "string", Pattern: "^a+$"}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Validate(op.Call{Name: "A", Args: `{"x":"aaa"}`}); err != nil {
		t.Error(err)
	}
	if _, _, err := r.Validate(op.Call{Name: "A", Args: `{"x":"b"}`}); err == nil {
		t.Error("a value that does not fit the pattern was accepted")
	}
}

// Whatever a model sends: no panic, and what is accepted is one JSON object
// that is accepted again unchanged.
func FuzzValidate(f *testing.F) {
	f.Add("Bash", `{"command":"ls","timeout":6e1}`)
	f.Add("StrReplaceFile", `{"path":"a","edits":[{"old":"x","new":"y"}]}`)
	f.Add("recall", ``)
	f.Add("Grep", `{"pattern":"\ud800","-i":true}`)
	r := registry(f)
	f.Fuzz(func(t *testing.T, name, args string) {
		_, canonical, err := r.Validate(op.Call{Name: name, Args: args})
		if err != nil {
			return
		}
		_, again, err := r.Validate(op.Call{Name: name, Args: string(canonical)})
		if err != nil || string(again) != string(canonical) {
			t.Errorf("Validate(%s, %s) = %s, then %s, %v", name, args, canonical, again, err)
		}
	})
}

func BenchmarkValidate(b *testing.B) {
	r := registry(b)
	for b.Loop() {
		if _, _, err := r.Validate(op.Call{Name: "Bash", Args: `{"command":"go test ./...","timeout":60}`}); err != nil {
			b.Fatal(err)
		}
	}
}

// With adds what can be added and says why the rest cannot; the registry it was
// asked of stays as it is.
func TestWith(t *testing.T) {
	named := func(name string) tool.Tool { return stub{Name: name, Schema: tool.Params()} }
	r, err := tool.NewRegistry(named("Bash"))
	if err != nil {
		t.Fatal(err)
	}
	more, errs := r.With(named("Bash"), named("a"), named("bad name"), named("a"), named("b"))
	var names []string
	for _, s := range more.Specs() {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "Bash a b" || len(errs) != 3 {
		t.Errorf("%s, %v", got, errs)
	}
	if len(r.Specs()) != 1 {
		t.Error("the registry changed")
	}
	if none, _ := new(tool.Registry).With(named("x")); len(none.Specs()) != 1 {
		t.Error("nothing can be added to an empty registry")
	}
}

package openai

import (
	"strconv"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/modeltest"
)

func bashTool() []model.ToolSpec {
	return []model.ToolSpec{{
		Name:   "Bash",
		Schema: []byte(`{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}}}`),
	}}
}

// TestQuotedCalls: a call that a text quotes, or that words follow, does not run.
func TestQuotedCalls(t *testing.T) {
	const call = `<tool_call>{"name":"Bash","arguments":{"command":"rm -r x"}}</tool_call>`
	for name, text := range map[string]string{
		"in a code block":         "The server should send this:\n```\n" + call + "\n```",
		"in an open code block":   "The server should send this:\n```xml\n" + call,
		"in backticks":            "It sends `" + call,
		"in a sentence":           "The README says: " + call,
		"in a quotation":          "It says:\n> " + call,
		"indented as code":        "It says:\n\n    " + call,
		"in a block of tildes":    "It says:\n~~~\n" + call,
		"before words":            call + "\nThis is how it looks.",
		"with a made-up result":   call + "\n<tool_response>done</tool_response>",
		"of a tool not offered":   `<tool_call>{"name":"Shell","arguments":{"command":"rm -r x"}}</tool_call>`,
		"without a name":          `<tool_call>{"arguments":{"command":"rm -r x"}}</tool_call>`,
		"JSON before words":       `{"name":"Bash","arguments":{"command":"rm -r x"}} is the form.`,
		"other JSON":              `{"name":"anamnesis","version":"1"}`,
		"after words in one line": "Write <tool_call> to begin.",
	} {
		if r := readMarkup(text, bashTool()); len(r.calls) > 0 || r.text != text {
			t.Errorf("%s: calls %v, text %q", name, r.calls, r.text)
		}
	}
	if r := readMarkup("I use the form `<tool_call>`:\n"+call, bashTool()); len(r.calls) != 1 {
		t.Errorf("a call after a quoted marker: %+v", r)
	}
	if r := readMarkup(call, nil); len(r.calls) > 0 || r.repairs != nil {
		t.Errorf("a request without tools: calls %v, repairs %q", r.calls, r.repairs)
	}
}

// TestParameterTypes: a value in an element is text unless the tool's schema says otherwise.
func TestParameterTypes(t *testing.T) {
	r := readMarkup("<function=Bash>\n<parameter=command>\n42\n</parameter>\n<parameter=timeout>\n42\n</parameter>\n</function>", bashTool())
	if len(r.calls) != 1 || r.calls[0].Args != `{"command":"42","timeout":42}` {
		t.Errorf("calls %+v", r.calls)
	}
}

// TestSieve: the pieces that are passed on add up to the reply, however the text is cut into pieces, and
// no markup is among them.
func TestSieve(t *testing.T) {
	for _, tt := range []struct{ text, want, thinking string }{
		{"<think>\nhm < hm\n</think>\n\nA <b>bold</b> word.", "A <b>bold</b> word.", "\nhm < hm\n"},
		{"a < b, a <| b, <thi", "a < b, a <| b, <thi", ""},
		{"Words.\n<tool_call>{\"name\":\"Bash\",\"arguments\":{}}</tool_call>", "Words.", ""},
		{"hm\n</think>\nYes.", "Yes.", "hm\n"},
		{"<think>never closed", "", "never closed"},
		{" \n<thinking>x</thinking>y", "y", "x"},
	} {
		for size := 1; size <= len(tt.text); size++ {
			var text, thinking strings.Builder
			a := newAssembly(func(d model.Delta) {
				if d.Restart {
					text.Reset()
					thinking.Reset()
				}
				text.WriteString(d.Text)
				thinking.WriteString(d.Reasoning)
			})
			for rest := tt.text; rest != ""; rest = rest[min(size, len(rest)):] {
				in, about := a.sieve.add(rest[:min(size, len(rest))])
				a.pass(model.Delta{Text: in, Reasoning: about})
			}
			q := modeltest.Question()
			q.Tools = bashTool()
			reply := a.reply(q)
			if reply.Text != tt.want || reply.Reasoning != tt.thinking || text.String() != tt.want ||
				thinking.String() != tt.thinking {
				t.Errorf("%q in pieces of %d: reply %q, %q; passed on %q, %q", tt.text, size, reply.Text,
					reply.Reasoning, text.String(), thinking.String())
			}
		}
	}
}

// TestRepairArgs: what is already JSON stays as it came.
func TestRepairArgs(t *testing.T) {
	for _, tt := range []struct{ args, want, repair string }{
		{`{"a": 1}`, `{"a": 1}`, ""},
		{`"text"`, `"text"`, ""},
		{`{"a":1}{"a":2}`, `{"a":1}{"a":2}`, ""},
		{`{"a":1}{"a":1}`, `{"a":1}`, op.RepairArgsTwice},
		{"{\"a\":\"x\ny\\\"\tz\"}", `{"a":"x\ny\"\tz"}`, op.RepairArgsControls},
		{"```json\n{\"a\":1}\n```", `{"a":1}`, op.RepairArgsString},
		{`{"a":`, `{"a":`, ""},
	} {
		if got, repair := repairArgs(tt.args); got != tt.want || repair != tt.repair {
			t.Errorf("%q: %q, %q; want %q, %q", tt.args, got, repair, tt.want, tt.repair)
		}
	}
}

// TestAcceptedSchema: strict endpoints take what comes out, and a schema they take stays as it is.
func TestAcceptedSchema(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"accepted already", `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`, ""},
		{"an array without items", `{"type":"object","properties":{"a":{"type":"array"}}}`, `{"properties":{"a":{"items":{"type":"string"},"type":"array"}},"type":"object"}`},
		{"alternatives at the top", `{"anyOf":[{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]},{"properties":{"c":{"type":"integer"}},"required":["c"]}]}`,
			`{"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"integer"}},"type":"object"}`},
		{"all of them", `{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]}]}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		{"no object", `{"type":"string"}`, `{"properties":{},"type":"object"}`},
		{"null as a second type", `{"type":"object","properties":{"a":{"type":["string","null"]}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		{"a reference", `{"type":"object","$defs":{"p":{"type":"array"}},"properties":{"a":{"$ref":"#/$defs/p"}}}`, `{"properties":{"a":{"items":{"type":"string"},"type":"array"}},"type":"object"}`},
		{"a reference to a reference", `{"type":"object","$defs":{"p":{"$ref":"#/$defs/q"},"q":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/p"}}}`, `{"properties":{"a":{"type":"integer"}},"type":"object"}`},
		{"references to each other", `{"type":"object","$defs":{"p":{"$ref":"#/$defs/q"},"q":{"$ref":"#/$defs/p"}},"properties":{"a":{"$ref":"#/$defs/p"}}}`, `{"properties":{"a":{"type":"object"}},"type":"object"}`},
		{"a reference at the top", `{"$ref":"#/definitions/p","definitions":{"p":{"anyOf":[{"properties":{"a":{"type":"string"}}}]}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		{"references as alternatives", `{"type":"object","$defs":{"p":{"properties":{"a":{"type":"string"}},"required":["a"]}},"oneOf":[{"$ref":"#/$defs/p"}]}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		{"a reference to another property", `{"type":"object","properties":{"a":{"enum":["x"],"type":"string"},"b":{"$ref":"#/properties/a","description":"d"}}}`, `{"properties":{"a":{"enum":["x"],"type":"string"},"b":{"description":"d","enum":["x"],"type":"string"}},"type":"object"}`},
		{"a reference with escapes", `{"type":"object","$defs":{"a/b c":[{"type":"integer"}]},"properties":{"a":{"$ref":"#/$defs/a~1b%20c/0"}}}`, `{"properties":{"a":{"type":"integer"}},"type":"object"}`},
		{"a reference to nothing", `{"type":"object","properties":{"a":{"$ref":"#/$defs/p"},"b":{"$ref":"#/type/x"}}}`, `{"properties":{"a":{"type":"object"},"b":{"type":"object"}},"type":"object"}`},
		{"references by position and by pattern", `{"type":"object","$defs":{"p":{"type":["integer","null"]}},"properties":{"a":{"type":"array","prefixItems":[{"$ref":"#/$defs/p"}],"items":{"type":"string"}},"b":{"patternProperties":{"x":{"$ref":"#/$defs/p"}}}}}`,
			`{"properties":{"a":{"items":{"type":"string"},"prefixItems":[{"type":"integer"}],"type":"array"},"b":{"patternProperties":{"x":{"type":"integer"}}}},"type":"object"}`},
		{"required twice", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"anyOf":[{"required":["a"]}]}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		{"required without a property", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"]}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`},
		{"not an object at all", `[1]`, `{"type":"object","properties":{}}`},
	} {
		got, changed := acceptedSchema([]byte(tt.schema))
		if want := tt.want; changed != (want != "") || changed && string(got) != want ||
			!changed && string(got) != tt.schema {
			t.Errorf("%s: %s, changed %v; want %s", tt.name, got, changed, want)
		}
	}
	recursive := `{"type":"object","$defs":{"n":{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}},"properties":{"a":{"$ref":"#/$defs/n"}}}`
	if got, _ := acceptedSchema([]byte(recursive)); strings.Contains(string(got), "$ref") || len(got) > 10_000 {
		t.Errorf("a schema that refers to itself: %d bytes: %.1000s", len(got), got)
	}
	manifold := strings.Replace(recursive, `{"n":{"$ref":"#/$defs/n"}}`, "{"+strings.Repeat(`"n%":{"$ref":"#/$defs/n"},`, 99)+`"n":{"$ref":"#"}}`, 1)
	for i := range 99 {
		manifold = strings.Replace(manifold, "%", strconv.Itoa(i), 1)
	}
	first, _ := acceptedSchema([]byte(manifold))
	if strings.Contains(string(first), "$ref") || len(first) > 3*maxInlinedBytes {
		t.Errorf("a schema that refers to itself a hundred times: %d bytes: %.1000s", len(first), first)
	}
	for range 5 {
		if got, _ := acceptedSchema([]byte(manifold)); string(got) != string(first) {
			t.Fatalf("another result of the same schema: %.1000s\nand %.1000s", got, first)
		}
	}
}

// TestCacheMarks: Claude's requests mark the prefixes to keep, unless the endpoint refuses the marks.
func TestCacheMarks(t *testing.T) {
	e := serve(t, sse(content("x"), finish("stop"), doneEvent))
	q := model.Request{Messages: []model.Message{
		{Role: model.RoleSystem, Text: "s"}, {Role: model.RoleUser, Text: "a"}, {Role: model.RoleAssistant, Text: "b"}, {Role: model.RoleUser, Text: "c"},
	}}
	marked := func(model string) (at []int) {
		if _, err := ask(t, e.client(t, func(o *Options) { o.Model = model }), q); err != nil {
			t.Fatal(err)
		}
		list, _ := e.request(t)["messages"].([]any)
		for i, m := range list {
			if o, ok := m.(map[string]any); ok {
				if _, parts := o["content"].([]any); parts {
					at = append(at, i)
				}
			}
		}
		return at
	}
	if at := marked("anthropic/claude-sonnet-4"); len(at) != 3 || at[0] != 0 || at[2] != 3 {
		t.Errorf("marked messages %v; want the first and the last two", at)
	}
	if at := marked("gpt-5"); at != nil {
		t.Errorf("another model's messages %v are marked", at)
	}
}

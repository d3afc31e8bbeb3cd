package mcp

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/orchestrator/tool"
)

// What a server says of a tool is bounded, and a schema that cannot be used
// costs the parameters and not the tool.
func TestToolBounds(t *testing.T) {
	t.Parallel()
	object := func(more map[string]any) map[string]any {
		out := map[string]any{"type": "object"}
		maps.Copy(out, more)
		return out
	}
	deep := any("x")
	for range maxSchemaDepth + 1 {
		deep = []any{deep}
	}
	for name, tc := range map[string]struct {
		schema any
		want   string
	}{
		"none":              {nil, "the server sent no schema"},
		"of a list":         {map[string]any{"type": "array"}, "the schema is not of an object"},
		"too large":         {object(map[string]any{"title": strings.Repeat("x", maxDescriptionRunes), "required": many("r", 10_000)}), "at most 65536 are read"},
		"too deep":          {object(map[string]any{"default": deep}), "nested more than 64 deep"},
		"leading nowhere":   {object(map[string]any{"properties": map[string]any{"x": map[string]any{"$ref": "#/nowhere"}}}), "read the schema: "},
		"with odd keywords": {object(map[string]any{"$schema": "https://example.org/x", "x-odd": 1}), ""},
	} {
		spec := newRemote(&server{Server: Server{Name: "s"}},
			&sdk.Tool{Name: "t", Description: "d", InputSchema: tc.schema}, nil).spec
		if tc.want == "" && spec.Description != "d" || !strings.Contains(spec.Description, tc.want) {
			t.Errorf("a schema %s: description %q, want %q", name, spec.Description, tc.want)
		}
		if _, errs := new(tool.Registry).With(&remote{spec: spec}); len(errs) > 0 {
			t.Errorf("a schema %s: %v", name, errs)
		}
	}
	long := newRemote(&server{Server: Server{Name: "s"}},
		&sdk.Tool{Name: "t", Description: strings.Repeat("é", 2*maxDescriptionRunes)}, nil).spec.Description
	if n := utf8.RuneCountInString(long); n > maxDescriptionRunes+200 ||
		!strings.Contains(long, "16000 bytes of the result cut here") {
		t.Errorf("a description of %d characters", n)
	}
}

func many(word string, n int) []any {
	var out []any
	for i := range n {
		out = append(out, fmt.Sprint(word, i))
	}
	return out
}

// An approval is of all that a server says of a tool to the model.
func TestToolsHash(t *testing.T) {
	t.Parallel()
	told := func(change func(*sdk.Tool)) string {
		x := &sdk.Tool{Name: "n", Title: "t", Description: "d", InputSchema: map[string]any{"type": "object"}}
		change(x)
		return hashTools([]*sdk.Tool{x})
	}
	seen := map[string]string{told(func(*sdk.Tool) {}): "nothing"}
	for what, change := range map[string]func(*sdk.Tool){
		"name":        func(x *sdk.Tool) { x.Name = "m" },
		"title":       func(x *sdk.Tool) { x.Title = "u" },
		"description": func(x *sdk.Tool) { x.Description = "e" },
		"schema":      func(x *sdk.Tool) { x.InputSchema = map[string]any{"type": "object", "description": "e"} },
		"hints":       func(x *sdk.Tool) { x.Annotations = &sdk.ToolAnnotations{IdempotentHint: true} },
	} {
		h := told(change)
		if was, ok := seen[h]; ok {
			t.Errorf("another %s has the hash of another %s", what, was)
		}
		seen[h] = what
	}
}

package mcp

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSchemaOf: a schema that can be used is one of an object, within the bounds.
func TestSchemaOf(t *testing.T) {
	t.Parallel()
	// long makes a schema that has so many bytes. Its texts are short, for a long one would be cut.
	long := func(bytes int) map[string]any {
		of := func(values ...any) (map[string]any, int) {
			m := map[string]any{"type": "object", "enum": values}
			data, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			return m, len(data)
		}
		var values []any
		for {
			m, have := of(append(values, "")...)
			if left := bytes - have; left < 200 {
				m["enum"] = append(values, strings.Repeat("x", left))
				return m
			}
			values = append(values, strings.Repeat("x", 100))
		}
	}
	for _, tt := range []struct {
		name    string
		in      any
		refused string // a part of the error; "" if there is none
	}{
		{"none", nil, "no schema"},
		{"no object", []any{}, "no schema"},
		{"empty", map[string]any{}, ""},
		{"of an object", map[string]any{"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}, ""},
		{"of a text", map[string]any{"type": "string"}, "not of an object"},
		{"of several", map[string]any{"type": []any{"object", "null"}}, "not of an object"},
		{"of no type", map[string]any{"type": 7}, "read the schema"},
		{"the longest", long(maxSchemaBytes), ""},
		{"too long", long(maxSchemaBytes + 1), "at most"},
		{"a reference to nothing", map[string]any{"$ref": "#/$defs/none"}, "read the schema"},
	} {
		s, err := schemaOf(tt.in)
		if (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), tt.refused) ||
			err == nil && s.Type != "object" {
			t.Errorf("%s: %v, %v", tt.name, s != nil, err)
		}
	}
}

package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// Param is one parameter of a tool.
type Param struct {
	Name     string
	Required bool
	Schema   *jsonschema.Schema
}

// Required is a parameter that each call has.
func Required(name string, s *jsonschema.Schema) Param { return Param{name, true, s} }

// Optional is a parameter that a call may leave out.
func Optional(name string, s *jsonschema.Schema) Param { return Param{name, false, s} }

// Params returns the schema of a tool's arguments: an object of these parameters, in this
// order, and no others.
func Params(params ...Param) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type:       "object",
		Properties: make(map[string]*jsonschema.Schema, len(params)),
		// The schema that matches nothing.
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, p := range params {
		s.Properties[p.Name] = p.Schema
		s.PropertyOrder = append(s.PropertyOrder, p.Name)
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	return s
}

// String is a parameter of type string.
func String(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description}
}

// Text is a string of at least one character.
func Text(description string) *jsonschema.Schema {
	one := 1
	return &jsonschema.Schema{Type: "string", Description: description, MinLength: &one}
}

// OneOf is a string that is one of the values.
func OneOf(description string, values ...string) *jsonschema.Schema {
	s := String(description)
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
	return s
}

// Bool is a parameter that is true or false.
func Bool(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "boolean", Description: description}
}

// Int is a whole number from lo to hi.
func Int(description string, lo, hi int) *jsonschema.Schema {
	low, high := float64(lo), float64(hi)
	return &jsonschema.Schema{Type: "integer", Description: description, Minimum: &low, Maximum: &high}
}

// Decode decodes validated arguments into a tool's own struct, at the beginning of a call. Its error is internal:
// ctx has ended, or schema and struct disagree.
func Decode[T any](ctx context.Context, args json.RawMessage) (v T, err error) {
	if err := cmp.Or(ctx.Err(), json.Unmarshal(args, &v)); err != nil {
		return v, fmt.Errorf("read tool arguments: %w", err)
	}
	return v, nil
}

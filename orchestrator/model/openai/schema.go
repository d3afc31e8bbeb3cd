package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// acceptedSchema returns the schema of a tool's arguments in the form that strict endpoints accept: an
// object at the top without anyOf, oneOf, allOf, enum or not beside it, arrays with items, no type that is
// a list, no reference to itself. OpenAI, Gemini and Anthropic refuse a request as a whole over one schema
// that is not. What is lost is a constraint: the tool checks its arguments itself.
func acceptedSchema(schema json.RawMessage) (accepted json.RawMessage, changed bool) {
	var top map[string]any
	if json.Unmarshal(schema, &top) != nil || top == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`), len(schema) > 0
	}
	before, err := json.Marshal(top)
	if err != nil {
		return schema, false
	}
	definitions := map[string]any{}
	for _, key := range [...]string{"$defs", "definitions"} {
		if d, ok := top[key].(map[string]any); ok {
			maps.Copy(definitions, d)
		}
	}
	follow(top, definitions, 0)
	for _, key := range [...]string{"anyOf", "oneOf", "allOf"} {
		mergeAlternatives(top, key, definitions)
	}
	for _, key := range [...]string{"$schema", "$id", "$defs", "definitions", "enum", "not", "const", "if",
		"then", "else"} {
		delete(top, key)
	}
	top["type"] = "object"
	if _, ok := top["properties"].(map[string]any); !ok {
		top["properties"] = map[string]any{}
	}
	acceptNested(top, definitions, 0)
	after, err := json.Marshal(top)
	if err != nil || bytes.Equal(before, after) {
		return schema, false
	}
	return after, true
}

// mergeAlternatives makes one object of the alternatives of a schema: all their properties; required is
// what all require, or for allOf what any does.
func mergeAlternatives(top map[string]any, key string, definitions map[string]any) {
	list, ok := top[key].([]any)
	if !ok {
		return
	}
	delete(top, key)
	properties, _ := top["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	var required []any
	for i, e := range list {
		o, ok := e.(map[string]any)
		if !ok {
			continue
		}
		follow(o, definitions, 0)
		if p, ok := o["properties"].(map[string]any); ok {
			for k, v := range p {
				if _, ok := properties[k]; !ok {
					properties[k] = v
				}
			}
		}
		needs, _ := o["required"].([]any)
		switch {
		case key == "allOf":
			required = append(required, needs...)
		case i == 0:
			required = needs
		default:
			required = slices.DeleteFunc(required, func(n any) bool { return !slices.Contains(needs, n) })
		}
	}
	top["properties"] = properties
	own, _ := top["required"].([]any)
	if required = append(own, required...); len(required) > 0 {
		top["required"] = required
	}
}

// maxSchemaDepth bounds how deep references are followed: a schema may refer to itself.
const maxSchemaDepth = 8

// follow puts what a schema refers to in place of its reference, and returns the depth then. A definition may itself be
// a reference. Each step counts as a level, since two can refer to each other.
func follow(s, definitions map[string]any, depth int) int {
	for ref, ok := s["$ref"].(string); ok; ref, ok = s["$ref"].(string) {
		delete(s, "$ref")
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		if d, ok := definitions[name].(map[string]any); ok && depth < maxSchemaDepth {
			maps.Copy(s, clone(d))
			depth++
		} else if s["type"] == nil {
			s["type"] = "object"
		}
	}
	return depth
}

// acceptNested writes the schemas inside a schema in the accepted form.
func acceptNested(s, definitions map[string]any, depth int) {
	depth = follow(s, definitions, depth)
	if types, ok := s["type"].([]any); ok {
		types = slices.DeleteFunc(types, func(t any) bool { return t == "null" })
		if delete(s, "type"); len(types) > 0 {
			s["type"] = types[0]
		}
	}
	if s["type"] == "array" {
		if _, ok := s["items"].(map[string]any); !ok {
			s["items"] = map[string]any{"type": "string"}
		}
	}
	for _, key := range [...]string{"items", "additionalProperties"} {
		if inner, ok := s[key].(map[string]any); ok {
			acceptNested(inner, definitions, depth+1)
		}
	}
	for _, key := range [...]string{"anyOf", "oneOf", "allOf"} {
		list, _ := s[key].([]any)
		for _, e := range list {
			if inner, ok := e.(map[string]any); ok {
				acceptNested(inner, definitions, depth+1)
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		inner, ok := p.(map[string]any)
		if !ok { // true means anything
			inner = map[string]any{}
			properties[name] = inner
		}
		acceptNested(inner, definitions, depth+1)
	}
	if required, ok := s["required"].([]any); ok {
		names := []any{} // each once: a schema and its alternatives may both require a property
		for _, n := range required {
			if name, ok := n.(string); ok && properties[name] != nil && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		s["required"] = names
	} else if s["required"] != nil {
		delete(s, "required")
	}
}

// clone copies a schema, so that what refers to it twice is two.
func clone(s map[string]any) map[string]any {
	data, err := json.Marshal(s)
	var out map[string]any
	if err != nil || json.Unmarshal(data, &out) != nil {
		return nil // decoded JSON always encodes
	}
	return out
}

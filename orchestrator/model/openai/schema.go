package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
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
	in := inliner{top: clone(before), left: maxInlinedBytes}
	in.follow(top, 0)
	for _, key := range [...]string{"anyOf", "oneOf", "allOf"} {
		in.mergeAlternatives(top, key)
	}
	for _, key := range [...]string{"$schema", "$id", "enum", "not", "const", "if", "then", "else"} {
		delete(top, key)
	}
	top["type"] = "object"
	if _, ok := top["properties"].(map[string]any); !ok {
		top["properties"] = map[string]any{}
	}
	in.acceptNested(top, 0)
	after, err := json.Marshal(top)
	if err != nil || bytes.Equal(before, after) {
		return schema, false
	}
	return after, true
}

// inliner replaces the references of a schema by what they refer to.
type inliner struct {
	top  map[string]any // the schema as it was given
	left int            // bytes that references may still add
}

// References are followed to this depth and add at most so many bytes, since a schema may refer to itself repeatedly.
const (
	maxSchemaDepth  = 8
	maxInlinedBytes = 256 << 10
)

// mergeAlternatives makes one object of the alternatives of a schema: all their properties; required is
// what all require, or for allOf what any does.
func (in *inliner) mergeAlternatives(top map[string]any, key string) {
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
		in.follow(o, 0)
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

// follow puts what a schema refers to in place of its reference, and returns the depth then. A definition may itself be
// a reference. Each step counts as a level, since two can refer to each other.
func (in *inliner) follow(s map[string]any, depth int) int {
	for ref, ok := s["$ref"].(string); ok; ref, ok = s["$ref"].(string) {
		delete(s, "$ref")
		data, _ := json.Marshal(in.target(ref)) // decoded JSON always encodes
		in.left -= len(data)
		target := clone(data)
		if target == nil || depth >= maxSchemaDepth || in.left < 0 {
			target = map[string]any{"type": "object"}
		}
		depth++
		for key, value := range target {
			if _, own := s[key]; !own { // such as a description beside the reference
				s[key] = value
			}
		}
	}
	return depth
}

// target returns what a reference such as "#/$defs/name" names: a JSON pointer (RFC 6901) into the whole schema.
func (in *inliner) target(ref string) any {
	_, pointer, _ := strings.Cut(ref, "#")
	if unescaped, err := url.PathUnescape(pointer); err == nil {
		pointer = unescaped
	}
	var at any = in.top
	for i, key := range strings.Split(pointer, "/") {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		switch n := at.(type) {
		case map[string]any:
			if i > 0 {
				at = n[key]
			}
		case []any:
			at = nil
			if k, err := strconv.Atoi(key); err == nil && k >= 0 && k < len(n) {
				at = n[k]
			}
		default:
			return nil
		}
	}
	return at
}

// acceptNested writes the schemas inside a schema in the accepted form.
func (in *inliner) acceptNested(s map[string]any, depth int) {
	depth = in.follow(s, depth)
	for _, key := range [...]string{"$defs", "definitions"} { // nothing refers to them any more
		delete(s, key)
	}
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
	for _, key := range [...]string{"items", "additionalProperties", "contains", "not"} {
		if inner, ok := s[key].(map[string]any); ok {
			in.acceptNested(inner, depth+1)
		}
	}
	for _, key := range [...]string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, _ := s[key].([]any)
		for _, e := range list {
			if inner, ok := e.(map[string]any); ok {
				in.acceptNested(inner, depth+1)
			}
		}
	}
	for _, key := range [...]string{"properties", "patternProperties"} {
		named, _ := s[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(named)) { // so that the same ones are inlined each time
			inner, ok := named[name].(map[string]any)
			if !ok { // true means anything
				inner = map[string]any{}
				named[name] = inner
			}
			in.acceptNested(inner, depth+1)
		}
	}
	properties, _ := s["properties"].(map[string]any)
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

// clone decodes an encoded schema; nil if it is no object. What refers to it twice must be two.
func clone(data []byte) (s map[string]any) {
	_ = json.Unmarshal(data, &s)
	return s
}

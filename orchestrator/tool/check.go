package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool/spelling"
)

// maxFaults bounds the faults one refusal lists.
const maxFaults = 5

// maxExactInt is the largest integer every JSON reader agrees on.
const maxExactInt = 1 << 53

// decode reads exactly one JSON value; empty text is an empty object.
func decode(text string) (any, error) {
	if strings.TrimSpace(text) == "" {
		return map[string]any{}, nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	var v any
	if err := dec.Decode(&v); err != nil {
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("they end in the middle")
		case errors.As(err, &syntax):
			return nil, fmt.Errorf("%v, at byte %d, near %q", err, syntax.Offset, around(text, int(syntax.Offset)))
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		at := int(dec.InputOffset())
		return nil, fmt.Errorf("something follows the object at byte %d: %q", at, around(text, at))
	}
	return v, nil
}

// around returns the text near a byte offset.
func around(text string, at int) string {
	const reach = 12
	return strings.ToValidUTF8(text[max(0, min(at, len(text))-reach):min(len(text), at+reach)], "")
}

// encode encodes decoded arguments, whole numbers as integers.
func encode(v any) (json.RawMessage, error) {
	return op.PlainJSON(wholeNumbers(v))
}

func wholeNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = wholeNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = wholeNumbers(e)
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= maxExactInt {
			return json.Number(strconv.FormatInt(int64(v), 10))
		}
	}
	return v
}

// check compares a value with the parts of a schema that tools use and describes each fault in
// one sentence. The library, whose messages are meant for programmers, checks everything
// again.
func check(s *jsonschema.Schema, v any, at string) []string {
	if s == nil {
		return nil
	}
	where := "the arguments"
	if at != "" {
		where = "parameter " + at
	}
	if len(s.AnyOf) > 0 {
		s = meant(s, v)
	}
	if s.Type != "" && !fits(s.Type, v) {
		return []string{fmt.Sprintf("%s must be %s, not %s%s.", where, article(s.Type), kindOf(v), hint(s.Type, v))}
	}
	var faults []string
	switch v := v.(type) {
	case map[string]any:
		faults = checkObject(s, v, at)
	case []any:
		if s.MinItems != nil && len(v) < *s.MinItems {
			faults = append(faults, fmt.Sprintf("%s must have at least %d entries.", where, *s.MinItems))
		}
		if s.MaxItems != nil && len(v) > *s.MaxItems {
			faults = append(faults, fmt.Sprintf("%s may have at most %d entries, not %d.", where, *s.MaxItems, len(v)))
		}
		for i, e := range v {
			faults = append(faults, check(s.Items, e, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case string:
		if s.MinLength != nil && utf8.RuneCountInString(v) < *s.MinLength {
			faults = append(faults, where+" must not be empty.")
		}
	case float64:
		if s.Minimum != nil && v < *s.Minimum || s.Maximum != nil && v > *s.Maximum {
			faults = append(faults, fmt.Sprintf("%s must be %s, not %v.", where, bounds(s), v))
		}
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		faults = append(faults, fmt.Sprintf("%s must be one of %s, not %s.", where, listed(s.Enum), compact(v)))
	}
	return faults
}

// meant returns the alternative of a schema that a value was meant for: the first of its type,
// or else the first.
func meant(s *jsonschema.Schema, v any) *jsonschema.Schema {
	for _, alternative := range s.AnyOf {
		if alternative.Type != "" && fits(alternative.Type, v) {
			return alternative
		}
	}
	return s.AnyOf[0]
}

func checkObject(s *jsonschema.Schema, v map[string]any, at string) []string {
	var faults []string
	sub := func(name string) string {
		if at == "" {
			return name
		}
		return at + "." + name
	}
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			faults = append(faults, fmt.Sprintf("parameter %s is missing.", sub(name)))
		}
	}
	known := slices.Sorted(maps.Keys(s.Properties))
	for _, name := range slices.Sorted(maps.Keys(v)) {
		p, ok := s.Properties[name]
		if ok {
			faults = append(faults, check(p, v[name], sub(name))...)
			continue
		}
		if s.AdditionalProperties == nil {
			continue
		}
		text := fmt.Sprintf("there is no parameter %s", strconv.Quote(sub(name)))
		if near := spelling.Nearest(name, known); near != "" {
			text += ", did you mean " + sub(near) + "?"
		} else {
			text += "."
		}
		faults = append(faults, text)
	}
	return faults
}

func fits(typ string, v any) bool {
	if typ == "integer" {
		f, ok := v.(float64)
		return ok && f == math.Trunc(f)
	}
	return kindOf(v) == article(typ)
}

// kindOf names a decoded JSON value's type for users.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return article("boolean")
	case float64:
		return article("number")
	case string:
		return article("string")
	case []any:
		return article("array")
	}
	return article("object")
}

func article(typ string) string {
	switch typ {
	case "integer", "array", "object":
		return "an " + typ
	case "null":
		return typ
	}
	return "a " + typ
}

// hint helps with the most frequent mistake of models: a value wrapped in a string.
func hint(typ string, v any) string {
	text, ok := v.(string)
	if !ok || typ == "string" {
		return ""
	}
	if inner, err := decode(text); err == nil && strings.TrimSpace(text) != "" && fits(typ, inner) {
		return " (write it without the quotes around it)"
	}
	return ""
}

func bounds(s *jsonschema.Schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("between %s and %s", plain(*s.Minimum), plain(*s.Maximum))
	case s.Minimum != nil:
		return "at least " + plain(*s.Minimum)
	}
	return "at most " + plain(*s.Maximum)
}

// plain formats a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func listed(values []any) string {
	var out []string
	for _, v := range values {
		out = append(out, compact(v))
	}
	return strings.Join(out, ", ")
}

// compact formats a value as short JSON.
func compact(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return shorten(string(data), displayRunes)
}

// outline formats a schema in one line: {"path": string, "mode"?: "overwrite"|"append"}.
func outline(s *jsonschema.Schema) string {
	names := s.PropertyOrder
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(s.Properties))
	}
	var parts []string
	for _, name := range names {
		p := s.Properties[name]
		mark := "?"
		if slices.Contains(s.Required, name) {
			mark = ""
		}
		parts = append(parts, fmt.Sprintf("%q%s: %s", name, mark, shape(p)))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func shape(p *jsonschema.Schema) string {
	switch {
	case p == nil:
		return "any"
	case len(p.AnyOf) > 0:
		var shapes []string
		for _, alternative := range p.AnyOf {
			shapes = append(shapes, shape(alternative))
		}
		return strings.Join(shapes, " or ")
	case len(p.Enum) > 0:
		return strings.ReplaceAll(listed(p.Enum), ", ", "|")
	case p.Type == "array":
		return "[" + shape(p.Items) + ", …]"
	case p.Type == "object" && len(p.Properties) > 0:
		return outline(p)
	case p.Type == "":
		return "any"
	}
	return p.Type
}

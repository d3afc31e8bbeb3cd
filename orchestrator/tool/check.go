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

	"github.com/google/jsonschema-go/jsonschema"
)

// maxFaultBytes bounds what a refusal says of a fault, which may quote a value.
const maxFaultBytes = 800

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

func around(text string, at int) string {
	const reach = 12
	return strings.ToValidUTF8(text[max(0, min(at, len(text))-reach):min(len(text), at+reach)], "")
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
		var values []string
		for _, v := range p.Enum {
			data, _ := json.Marshal(v) // it was read as JSON
			values = append(values, shorten(string(data), displayRunes))
		}
		return strings.Join(values, "|")
	case p.Type == "array":
		return "[" + shape(p.Items) + ", …]"
	case p.Type == "object" && len(p.Properties) > 0:
		return outline(p)
	case p.Type == "":
		return "any"
	}
	return p.Type
}

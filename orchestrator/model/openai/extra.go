package openai

import (
	"bytes"
	"encoding/json"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/redact"
)

// extra is what a provider put beside the fields that this package reads: reasoning and its
// signatures, ids, caches. It goes back to that provider as it came, whatever it is. Pieces of a
// stream add up as in OpenAI's own clients: texts are joined, objects merged field by field, elements
// of lists by their index.
type extra map[string]any

// add merges the fields of a piece, but for those named.
func (x *extra) add(piece object, but ...string) {
	for key, raw := range piece {
		if slices.Contains(but, key) || string(raw) == "null" || string(raw) == "[]" || string(raw) == "{}" {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) != nil {
			continue
		}
		if *x == nil {
			*x = make(extra)
		}
		(*x)[key] = merged((*x)[key], v, key)
	}
}

func (x extra) fields() map[string]json.RawMessage {
	if len(x) == 0 {
		return nil
	}
	out := make(map[string]json.RawMessage, len(x))
	for key, v := range x {
		if data, err := op.PlainJSON(v); err == nil {
			out[key] = data
		}
	}
	return out
}

// joined is a text that arrives in pieces.
type joined struct{ text []byte }

func (j *joined) MarshalText() ([]byte, error) {
	return bytes.ToValidUTF8(j.text, []byte("\ufffd")), nil
}

// merged returns the value of a field after another piece of it.
func merged(old, piece any, key string) any {
	switch p := piece.(type) {
	case nil:
		return old
	case string:
		o, ok := old.(*joined)
		switch {
		case !ok:
			return &joined{[]byte(p)}
		case p == "" || redact.Opaque(key) && string(o.text) == p: // repeated with every piece
		// These name one thing, which a provider repeats with each piece: the last one counts.
		case slices.Contains([]string{"id", "type", "format", "index", "role", "name", "status"}, key):
			o.text = []byte(p)
		default:
			o.text = append(o.text, p...)
		}
		return o
	case map[string]any:
		o, ok := old.(map[string]any)
		if !ok {
			o = make(map[string]any, len(p))
		}
		for k, v := range p {
			o[k] = merged(o[k], v, k)
		}
		return o
	case []any:
		list, _ := old.([]any)
		before := list // the elements of one piece are not joined
		for i, e := range p {
			element, ok := e.(map[string]any)
			if !ok {
				list = append(list, e)
			} else if at := continued(before, element, i == 0); at < 0 {
				list = append(list, merged(nil, element, ""))
			} else {
				merged(list[at], element, "")
			}
		}
		return list
	}
	return piece
}

// maxContinued is how many of the newest elements of a list may still be continued.
const maxContinued = 64

// continued returns the place of the element that a further one continues, -1 if it begins a new one.
// An index names the place; without one the first of a piece continues the last element.
func continued(list []any, piece map[string]any, first bool) int {
	index, indexed := piece["index"].(json.Number)
	if !indexed && !first {
		return -1
	}
	for i := len(list) - 1; i >= max(0, len(list)-maxContinued); i-- {
		o, ok := list[i].(map[string]any)
		at, has := o["index"].(json.Number)
		switch {
		case ok && has == indexed && at == index && continues(o, piece, indexed):
			return i
		case !indexed:
			return -1
		}
	}
	return -1
}

// continues reports whether nothing that identifies two elements differs. Without an index both have
// to have the same type, and a signature ends an element.
func continues(o, piece map[string]any, indexed bool) bool {
	for key, v := range o {
		if key != "id" && key != "type" && !redact.Opaque(key) {
			continue
		}
		var have string
		if j, ok := v.(*joined); ok {
			have = string(j.text)
		}
		more, _ := piece[key].(string)
		if have != "" && more != "" && have != more || !indexed && have != "" && more == "" {
			return false
		}
	}
	return indexed || o["type"] != nil
}

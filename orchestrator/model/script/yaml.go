package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v4"
)

// SyntaxError is a fault in a script, with its line.
type SyntaxError struct {
	File string
	Line int // from 1
	What string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.What) }

// reader turns YAML nodes into values. It keeps the first error; its results after that are
// meaningless, so that callers need not check each step.
type reader struct {
	file string
	err  *SyntaxError
}

func (r *reader) fail(line int, format string, args ...any) {
	if r.err == nil {
		r.err = &SyntaxError{File: r.file, Line: max(line, 1), What: fmt.Sprintf(format, args...)}
	}
}

// document returns the root node of data.
func (r *reader) document(data []byte) *yaml.Node {
	if len(bytes.TrimSpace(data)) == 0 {
		r.fail(1, "the file is empty")
		return nil
	}
	var doc yaml.Node
	if err := yaml.Load(data, &doc, yaml.WithUniqueKeys()); err != nil {
		line, what := 1, err.Error()
		var le *yaml.LoadError
		if errors.As(err, &le) {
			line, what = le.Mark.Line, le.Message
		}
		r.fail(line, "cannot be read as YAML: %s", strings.TrimPrefix(what, "yaml: "))
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		r.fail(1, "the file has no content")
		return nil
	}
	return doc.Content[0]
}

// plain reports whether n is a supported node. Aliases are refused: they hide what a turn says
// from readers, and can make a small file huge.
func (r *reader) plain(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		r.fail(n.Line, "anchors and aliases are not supported in a script")
		return false
	}
	return r.err == nil
}

// mapping calls, for each key of n, the field of that name.
func (r *reader) mapping(n *yaml.Node, what string, fields map[string]func(*yaml.Node)) {
	if !r.plain(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fail(n.Line, "%s must be a mapping, not %s", what, describe(n))
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		set, ok := fields[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !ok:
			known := make([]string, 0, len(fields))
			for k := range fields {
				known = append(known, k)
			}
			slices.Sort(known)
			r.fail(key.Line, "unknown key %q in %s; known are %s", key.Value, what, strings.Join(known, ", "))
			return
		case seen[key.Value]:
			r.fail(key.Line, "key %q occurs twice in %s", key.Value, what)
			return
		}
		seen[key.Value] = true
		set(value)
		if r.err != nil {
			return
		}
	}
}

// list calls each for every entry of n.
func (r *reader) list(n *yaml.Node, what string, each func(*yaml.Node)) {
	if !r.plain(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		r.fail(n.Line, "%s must be a list, not %s", what, describe(n))
		return
	}
	for _, entry := range n.Content {
		if each(entry); r.err != nil {
			return
		}
	}
}

// str reads a text. It rejects numbers and the like: 1.10 would be read as another value than
// it shows.
func (r *reader) str(n *yaml.Node, what string) string {
	if !r.plain(n) {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		r.fail(n.Line, "%s must be a text, not %s; put it in quotes", what, describe(n))
		return ""
	}
	return n.Value
}

// strs reads one text or a list of texts, none of them empty.
func (r *reader) strs(n *yaml.Node, what string) []string {
	var out []string
	add := func(n *yaml.Node) {
		s := r.str(n, what)
		if s == "" {
			r.fail(n.Line, "%s must not be empty", what)
		}
		out = append(out, s)
	}
	if n.Kind != yaml.SequenceNode {
		add(n)
		return out
	}
	if len(n.Content) == 0 {
		r.fail(n.Line, "%s must not be empty", what)
	}
	r.list(n, what, add)
	return out
}

// integer reads a whole number from lowest to highest.
func (r *reader) integer(n *yaml.Node, what string, lowest, highest int) int {
	if !r.plain(n) {
		return lowest
	}
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || v < lowest || v > highest {
		r.fail(n.Line, "%s must be a whole number from %d to %d, not %s", what, lowest, highest, describe(n))
		return lowest
	}
	return v
}

// duration reads a time with its unit, as in 200ms.
func (r *reader) duration(n *yaml.Node, what string) time.Duration {
	if !r.plain(n) {
		return 0
	}
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < 0 || d > MaxDelay {
		r.fail(n.Line, "%s must be a time from 0s to %v with its unit, such as 200ms, not %s", what, MaxDelay, describe(n))
		return 0
	}
	return d
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.ShortTag() == "!!null" {
			return "nothing"
		}
		return strconv.Quote(firstChars(n.Value, 60))
	}
	return "something else"
}

// maxDepth bounds how deep arguments nest.
const maxDepth = 64

// object writes a mapping as a JSON object, keys in the file's order.
func (r *reader) object(n *yaml.Node, what string) string {
	if !r.plain(n) {
		return ""
	}
	if n.Kind != yaml.MappingNode {
		r.fail(n.Line, "%s must be a mapping, not %s", what, describe(n))
		return ""
	}
	var b bytes.Buffer
	r.json(&b, n, what, 0)
	return b.String()
}

func (r *reader) json(b *bytes.Buffer, n *yaml.Node, what string, depth int) {
	if !r.plain(n) {
		return
	}
	if depth > maxDepth {
		r.fail(n.Line, "%s nests deeper than %d", what, maxDepth)
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		seen := make(map[string]bool)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				r.fail(key.Line, "a key in %s must be a plain text", what)
				return
			}
			if seen[key.Value] {
				r.fail(key.Line, "key %q occurs twice in %s", key.Value, what)
				return
			}
			seen[key.Value] = true
			if i > 0 {
				b.WriteByte(',')
			}
			name, _ := encoded(key.Value) // a string always encodes
			b.Write(name)
			b.WriteByte(':')
			r.json(b, n.Content[i+1], what, depth+1)
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, entry := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			r.json(b, entry, what, depth+1)
		}
		b.WriteByte(']')
	case yaml.ScalarNode:
		r.scalar(b, n, what)
	default:
		r.fail(n.Line, "%s has a value that JSON cannot hold", what)
	}
}

// scalar writes a number as it is in the file, with all its digits, if JSON has that form.
func (r *reader) scalar(b *bytes.Buffer, n *yaml.Node, what string) {
	var v any = n.Value
	var err error
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			v = json.RawMessage(n.Value)
			break
		}
		err = n.Decode(&v)
	case "!!null", "!!bool":
		err = n.Decode(&v)
	default:
		err = errors.New("no value of JSON")
	}
	var data []byte
	if err == nil {
		data, err = encoded(v)
	}
	if err != nil {
		r.fail(n.Line, "%s has a value that JSON cannot hold: %s", what, describe(n))
	}
	b.Write(data)
}

// encoded returns JSON in which <, > and & are not escaped.
func encoded(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

package script

import (
	"bytes"
	"encoding/json"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"anamnesis/opstream/op"
)

// maxDepth bounds how deep arguments nest.
const maxDepth = 64

// jsonObject writes a mapping as a JSON object, keys in the file's order.
func jsonObject(n *yaml.Node) (string, error) {
	if n.Kind != yaml.MappingNode {
		return "", fail(n.Line, "`arguments` must be a mapping")
	}
	var b bytes.Buffer
	err := writeJSON(&b, n, 0)
	return b.String(), err
}

func writeJSON(b *bytes.Buffer, n *yaml.Node, depth int) error {
	switch {
	case depth > maxDepth:
		return fail(n.Line, "`arguments` nests deeper than %d", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return fail(n.Line, "anchors and aliases are not supported in `arguments`: they can make a small file huge")
	case n.Kind == yaml.ScalarNode:
		return writeScalar(b, n)
	case n.Kind == yaml.SequenceNode:
		b.WriteByte('[')
		for i, entry := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, entry, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	b.WriteByte('{')
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || seen[key.Value] {
			return fail(key.Line, "key %q occurs twice in `arguments`, or is no plain text", key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := op.PlainJSON(key.Value) // a string always encodes
		b.Write(append(name, ':'))
		if err := writeJSON(b, n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// writeScalar writes a number as it is in the file, with all its digits, if JSON has that form.
func writeScalar(b *bytes.Buffer, n *yaml.Node) error {
	var v any = n.Value
	var err error
	switch tag := n.ShortTag(); {
	case tag == "!!str", tag == "!!timestamp":
	case (tag == "!!int" || tag == "!!float") && json.Valid([]byte(n.Value)):
		v = json.RawMessage(n.Value)
	case strings.Contains("!!int !!float !!null !!bool", tag):
		err = n.Decode(&v)
	default:
		return fail(n.Line, "`arguments` has a value that JSON cannot hold: %.60q", n.Value)
	}
	data, encodeErr := op.PlainJSON(v)
	if err != nil || encodeErr != nil {
		return fail(n.Line, "`arguments` has a value that JSON cannot hold: %.60q", n.Value)
	}
	b.Write(data)
	return nil
}

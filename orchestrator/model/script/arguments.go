package script

import (
	yaml "go.yaml.in/yaml/v4"

	"anamnesis/opstream/op"
)

func jsonObject(n *yaml.Node) (string, error) {
	if n.Kind != yaml.MappingNode {
		return "", fail(n.Line, "`arguments` must be a mapping")
	}
	keepDates(n)
	var v map[string]any
	if err := n.Load(&v, yaml.WithUniqueKeys()); err != nil {
		return "", err
	}
	data, err := op.PlainJSON(v)
	if err != nil {
		return "", fail(n.Line, "`arguments` has a value that JSON cannot hold: %v", err)
	}
	return string(data), nil
}

// keepDates makes dates the texts that they are in the file.
func keepDates(n *yaml.Node) {
	if n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, c := range n.Content {
		keepDates(c)
	}
}

package card

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
)

// renderEntry returns one key of the card as whole lines; "" if its value is empty.
func renderEntry(c *Card, key string) string {
	entry := c.entry(indexOf(c.keys(), key), nil, nil)
	if entry == nil {
		return ""
	}
	return dump(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: entry})
}

// dump writes a mapping, or a document of one.
func dump(n *yaml.Node) string {
	out, err := yaml.Dump(n, yaml.WithLineWidth(-1), yaml.WithIndent(2), yaml.WithCompactSeqIndent(false))
	if err != nil {
		// Nodes made of strings, and those that were read, always encode; anything else is our mistake.
		panic(fmt.Sprintf("card: encode front matter: %v", err))
	}
	return string(out)
}

// entry returns the nodes of a key and its value; none if the value is empty. Comments, unknown children and style are
// those of the nodes that it replaces, if given.
func (c *Card) entry(at int, oldKey, oldVal *yaml.Node) []*yaml.Node {
	k := c.keys()[at]
	val := valueNode(k.field, oldVal)
	if val == nil && at < required { // without its required keys, a card could not be read back
		val = scalar("!!str", "")
	}
	if val == nil {
		return nil
	}
	key := oldKey
	if key == nil {
		key = scalar("!!str", k.key)
	}
	if oldVal != nil && val.Kind == oldVal.Kind {
		val.LineComment = oldVal.LineComment
	}
	return []*yaml.Node{key, val}
}

// valueNode returns the node of a field's value; nil if the value is empty.
func valueNode(field any, old *yaml.Node) *yaml.Node {
	var tag, text string
	switch f := field.(type) {
	case []keyed:
		return mapNode(f, old)
	case *[]string:
		return listNode(*f, old)
	case *[]Range:
		var texts []string
		for _, r := range *f {
			texts = append(texts, r.String())
		}
		return listNode(texts, nil)
	case *string:
		tag, text = "!!str", *f
	case *State:
		tag, text = "!!str", string(cmp.Or(*f, Draft))
	case *bool:
		tag, text = "!!bool", strconv.FormatBool(*f)
	case *uint64:
		if *f != 0 {
			tag, text = "!!int", strconv.FormatUint(*f, 10)
		}
	case **time.Time:
		if *f != nil {
			tag, text = "!!timestamp", (*f).UTC().Format(time.RFC3339)
		}
	case *time.Time:
		if !f.IsZero() {
			tag, text = "!!timestamp", f.UTC().Format(time.RFC3339)
		}
	}
	if text == "" {
		return nil
	}
	return scalar(tag, text)
}

func scalar(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

// listNode keeps the nodes, and so the comments, of entries that stay.
func listNode(list []string, old *yaml.Node) *yaml.Node {
	if len(list) == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	var pool []*yaml.Node
	if old != nil && old.Kind == yaml.SequenceNode {
		n.Style = old.Style
		pool = slices.Clone(old.Content)
	}
	for _, s := range list {
		item := scalar("!!str", s)
		same := func(p *yaml.Node) bool { return p.Kind == yaml.ScalarNode && p.Value == s }
		if i := slices.IndexFunc(pool, same); i >= 0 {
			item = pool[i]
			pool = slices.Delete(pool, i, i+1)
		}
		n.Content = append(n.Content, item)
	}
	return n
}

// mapNode sets the keys of a group in a copy of old, keeping its other children. A bool that is
// false is written only beside other values.
func mapNode(group []keyed, old *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if old != nil && old.Kind == yaml.MappingNode {
		n.Style = old.Style
		n.Content = slices.Clone(old.Content)
	}
	said := slices.ContainsFunc(group, func(k keyed) bool {
		b, isBool := k.field.(*bool)
		return isBool && *b || !isBool && valueNode(k.field, nil) != nil
	})
	for _, k := range group {
		val := valueNode(k.field, nil)
		if !said {
			val = nil
		}
		at := -1
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Value == k.key {
				at = i
			}
		}
		switch {
		case at < 0 && val != nil:
			n.Content = append(n.Content, scalar("!!str", k.key), val)
		case at >= 0 && val == nil:
			n.Content = slices.Delete(n.Content, at, at+2)
		case at >= 0 && !sameScalar(n.Content[at+1], val):
			val.LineComment = n.Content[at+1].LineComment
			n.Content[at+1] = val
		}
	}
	if len(n.Content) == 0 {
		return nil
	}
	return n
}

func sameScalar(a, b *yaml.Node) bool {
	return a.Kind == yaml.ScalarNode && b.Kind == yaml.ScalarNode && a.Value == b.Value
}

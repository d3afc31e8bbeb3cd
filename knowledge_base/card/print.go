package card

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
)

// renderFrontMatter writes all keys of a card that was not parsed.
func renderFrontMatter(c *Card) []byte {
	var b bytes.Buffer
	for _, key := range cardKeys() {
		b.WriteString(renderEntry(c, key, nil, nil))
	}
	return b.Bytes()
}

// renderEntry writes one key of the card as whole lines; "" when it has
// nothing to say. The nodes of the entry it replaces, when given, lend their
// comments, their unknown children and their style.
func renderEntry(c *Card, key string, oldKey, oldVal *yaml.Node) string {
	val := entryValue(c, key, oldVal)
	if val == nil {
		return ""
	}
	k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}
	if oldKey != nil {
		k.LineComment = oldKey.LineComment
	}
	if oldVal != nil && val.Kind == oldVal.Kind {
		val.LineComment = oldVal.LineComment
	}
	out, err := yaml.Dump(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{k, val}},
		yaml.WithLineWidth(-1), yaml.WithIndent(2), yaml.WithCompactSeqIndent(false))
	if err != nil {
		// Nodes made of strings always encode; anything else is our mistake.
		panic(fmt.Sprintf("card: encoding %s: %v", key, err))
	}
	return string(out)
}

func entryValue(c *Card, key string, old *yaml.Node) *yaml.Node {
	switch key {
	case "type":
		return stringNode(Type)
	case "topic":
		return stringNode(c.Topic)
	case "source_task":
		return stringNode(c.SourceTask)
	case "id":
		return optional(c.ID)
	case "state":
		if c.State == "" {
			return stringNode(string(Draft))
		}
		return stringNode(string(c.State))
	case "created":
		if c.Created.IsZero() {
			return nil
		}
		return timeNode(&c.Created)
	case "verified_at":
		return timeNode(c.VerifiedAt)
	case "expires":
		return timeNode(c.Expires)
	case "scope":
		return mapNode(old, []field{{"repo", optional(c.Scope.Repo)}, {"language", optional(c.Scope.Language)},
			{"tool", optional(c.Scope.Tool)}, {"version", optional(c.Scope.Version)}})
	case "provenance":
		return provenanceNode(&c.Provenance, old)
	case "supersedes":
		return listNode(c.Supersedes, old)
	case "contradicts":
		return listNode(c.Contradicts, old)
	case "generalizes":
		return listNode(c.Generalizes, old)
	case "tags":
		return listNode(c.Tags, old)
	}
	return nil
}

func provenanceNode(p *Provenance, old *yaml.Node) *yaml.Node {
	var rs []string
	for _, r := range p.Ranges {
		rs = append(rs, r.String())
	}
	fields := []field{{"task", optional(p.Task)}, {"jump_op", nil}, {"ranges", listNode(rs, nil)},
		{"model", optional(p.Model)}, {"evidence_hash", optional(p.EvidenceHash)}, {"tainted", nil}, {"shown", listNode(p.Shown, nil)}}
	if p.JumpOp != 0 {
		fields[1].val = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatUint(p.JumpOp, 10)}
	}
	// Said in full even when false, except where there is no provenance at all.
	empty := p.Task == "" && p.JumpOp == 0 && len(rs) == 0 && p.Model == "" && p.EvidenceHash == "" && len(p.Shown) == 0
	if p.Tainted || !empty {
		fields[5].val = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(p.Tainted)}
	}
	return mapNode(old, fields)
}

func stringNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

func optional(s string) *yaml.Node {
	if s == "" {
		return nil
	}
	return stringNode(s)
}

func timeNode(t *time.Time) *yaml.Node {
	if t == nil {
		return nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!timestamp", Value: t.UTC().Format(timeForm)}
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
		item := stringNode(s)
		if i := slices.IndexFunc(pool, func(p *yaml.Node) bool { return p.Kind == yaml.ScalarNode && p.Value == s }); i >= 0 {
			item = pool[i]
			pool = slices.Delete(pool, i, i+1)
		}
		n.Content = append(n.Content, item)
	}
	return n
}

type field struct {
	key string
	val *yaml.Node // nil: absent
}

// mapNode sets the fields in a copy of old, keeping its other children.
func mapNode(old *yaml.Node, fields []field) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if old != nil && old.Kind == yaml.MappingNode {
		n.Style = old.Style
		n.Content = slices.Clone(old.Content)
	}
	for _, f := range fields {
		at := -1
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == f.key {
				at = i
			}
		}
		switch {
		case at < 0 && f.val != nil:
			n.Content = append(n.Content, stringNode(f.key), f.val)
		case at >= 0 && f.val == nil:
			n.Content = slices.Delete(n.Content, at, at+2)
		case at >= 0 && !sameScalar(n.Content[at+1], f.val):
			f.val.LineComment = n.Content[at+1].LineComment
			n.Content[at+1] = f.val
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

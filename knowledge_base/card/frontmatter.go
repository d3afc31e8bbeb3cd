package card

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// frontMatter is the YAML part of a parsed card: its bytes, its lines and
// the tree over them.
type frontMatter struct {
	open, yaml, close []byte // "---\n", the YAML, "---\n"
	root              *yaml.Node
	bodyLine          int // the file line the body starts on
	eol               string
}

// The keys in the order in which they are written.
func cardKeys() []string {
	return []string{"type", "topic", "source_task", "id", "state", "created", "verified_at", "expires",
		"scope", "provenance", "supersedes", "contradicts", "generalizes", "tags"}
}

const frontMatterRemedy = "start the file with a line '---', then 'type: knowledge_card', 'topic: …', 'source_task: …', then a line '---'"

// splitFrontMatter finds the front matter and checks its shape.
func splitFrontMatter(src []byte) (frontMatter, []byte, error) {
	var f frontMatter
	rest := bytes.TrimPrefix(src, []byte("\ufeff"))
	first, tail := cutLine(rest)
	if strings.TrimRight(string(first), " \t\r\n") != "---" {
		return f, nil, Errorf(1, "no front matter; %s", frontMatterRemedy)
	}
	f.eol = "\n"
	if bytes.HasSuffix(first, []byte("\r\n")) {
		f.eol = "\r\n"
	}
	f.open = src[:len(src)-len(tail)]
	line, size := 2, 0
	for at := tail; ; line++ {
		if len(at) == 0 {
			return f, nil, Errorf(line, "the front matter does not end; close it with a line '---'")
		}
		l, next := cutLine(at)
		if strings.TrimRight(string(l), " \t\r\n") == "---" {
			f.yaml, f.close = tail[:size], l
			f.bodyLine = line + 1
			if err := f.load(); err != nil {
				return f, nil, err
			}
			return f, next, nil
		}
		if size += len(l); size > MaxFrontMatterBytes {
			return f, nil, Errorf(line, "the front matter has more than %d bytes; move text to the body", MaxFrontMatterBytes)
		}
		at = next
	}
}

// cutLine returns the first line with its line break, and the rest.
func cutLine(b []byte) (line, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i+1], b[i+1:]
	}
	return b, nil
}

// load parses the YAML into nodes and refuses what a card has no use for.
func (f *frontMatter) load() error {
	// Nesting is bounded before the parser recurses into it.
	if line := tooDeepFlow(f.yaml); line > 0 {
		return Errorf(line+1, "brackets nested deeper than %d; write plain keys and values", maxYAMLDepth)
	}
	var doc yaml.Node
	if err := yaml.Load(f.yaml, &doc); err != nil {
		line, what := 2, strings.TrimPrefix(err.Error(), "yaml: ")
		var le *yaml.LoadError
		if errors.As(err, &le) {
			line, what = max(2, le.Mark.Line+1), strings.TrimPrefix(le.Message, "yaml: ")
		}
		if errors.Is(err, io.EOF) || strings.Contains(what, "no documents") {
			return Errorf(2, "the front matter is empty; %s", frontMatterRemedy)
		}
		return Errorf(line, "broken YAML: %s; correct the front matter", what)
	}
	root := &doc
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	if root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 {
		return Errorf(2, "the front matter is not a list of 'key: value' lines; %s", frontMatterRemedy)
	}
	f.root = root
	return checkNode(root, 0)
}

// tooDeepFlow returns the line on which [ and { nest too deeply, or 0. Brackets
// in strings count, too, so the bound is generous.
func tooDeepFlow(src []byte) int {
	depth, line := 0, 1
	for _, b := range src {
		switch b {
		case '[', '{':
			if depth++; depth > maxYAMLDepth*4 {
				return line
			}
		case ']', '}':
			depth = max(0, depth-1)
		case '\n':
			line++
		}
	}
	return 0
}

func checkNode(n *yaml.Node, depth int) error {
	switch {
	case depth > maxYAMLDepth:
		return Errorf(n.Line+1, "nested deeper than %d; write plain keys and values", maxYAMLDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return Errorf(n.Line+1, "anchors and aliases (& and *) are not used in cards; write the value out")
	}
	if n.Kind == yaml.MappingNode {
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || hasControl(key.Value) {
				return Errorf(key.Line+1, "a key must be a plain word on one line")
			}
			if seen[key.Value] {
				return Errorf(key.Line+1, "key %q appears twice; keep one", key.Value)
			}
			seen[key.Value] = true
		}
	}
	for _, child := range n.Content {
		if err := checkNode(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// decode fills the card's fields.
func (f *frontMatter) decode(c *Card) error {
	c.State = Draft
	seen := map[string]bool{}
	for i := 0; i+1 < len(f.root.Content); i += 2 {
		key, val := f.root.Content[i], f.root.Content[i+1]
		seen[key.Value] = true
		if err := decodeKey(c, key.Value, val); err != nil {
			return err
		}
	}
	missing := slices.DeleteFunc(cardKeys()[:3], func(key string) bool { return seen[key] })
	if len(missing) > 0 {
		return Errorf(2, "missing: %s; %s", strings.Join(missing, ", "), frontMatterRemedy)
	}
	return nil
}

func decodeKey(c *Card, key string, val *yaml.Node) (err error) {
	switch key {
	case "type":
		var t string
		if t, err = text(key, val); err == nil && t != Type {
			err = Errorf(val.Line+1, "type is %q; a card has 'type: %s'", t, Type)
		}
	case "topic":
		if c.Topic, err = text(key, val); err == nil {
			err = checkTopic(c.Topic, val.Line+1)
		}
	case "source_task":
		c.SourceTask, err = text(key, val)
	case "id":
		if c.ID, err = text(key, val); err == nil && c.ID != "" && !validID(c.ID) {
			err = Errorf(val.Line+1, "id %q is not a card id; use 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit", c.ID)
		}
	case "state":
		var s string
		if s, err = text(key, val); err == nil && s != "" {
			if c.State = State(s); !c.State.Valid() {
				err = Errorf(val.Line+1, "state %q is unknown; use draft, reviewed, retired or superseded", s)
			}
		}
	case "created":
		var t *time.Time
		if t, err = date(key, val); err == nil && t != nil {
			c.Created = *t
		}
	case "verified_at":
		c.VerifiedAt, err = date(key, val)
	case "expires":
		c.Expires, err = date(key, val)
	case "scope":
		err = decodeScope(&c.Scope, val)
	case "provenance":
		err = decodeProvenance(&c.Provenance, val)
	case "supersedes":
		c.Supersedes, err = textList(key, val)
	case "contradicts":
		c.Contradicts, err = textList(key, val)
	case "generalizes":
		c.Generalizes, err = textList(key, val)
	case "tags":
		c.Tags, err = textList(key, val)
	}
	return err
}

func decodeScope(s *Scope, n *yaml.Node) error {
	return eachKey("scope", n, func(key string, val *yaml.Node) (err error) {
		switch key {
		case "repo":
			s.Repo, err = text("scope.repo", val)
		case "language":
			s.Language, err = text("scope.language", val)
		case "tool":
			s.Tool, err = text("scope.tool", val)
		case "version":
			s.Version, err = text("scope.version", val)
		}
		return err
	})
}

func decodeProvenance(p *Provenance, n *yaml.Node) error {
	return eachKey("provenance", n, func(key string, val *yaml.Node) (err error) {
		switch key {
		case "task":
			p.Task, err = text("provenance.task", val)
		case "jump_op":
			var s string
			if s, err = text("provenance.jump_op", val); err == nil && s != "" {
				var perr error
				if p.JumpOp, perr = strconv.ParseUint(s, 10, 64); perr != nil {
					err = Errorf(val.Line+1, "provenance.jump_op %q is not an operation number", s)
				}
			}
		case "ranges":
			p.Ranges, err = ranges(val)
		case "model":
			p.Model, err = text("provenance.model", val)
		case "shown":
			p.Shown, err = textList("provenance.shown", val)
		case "evidence_hash":
			p.EvidenceHash, err = text("provenance.evidence_hash", val)
		case "tainted":
			var s string
			if s, err = text("provenance.tainted", val); err == nil {
				switch s {
				case "true":
					p.Tainted = true
				case "false", "":
				default:
					// Guessing here could show a tainted card to other tasks.
					err = Errorf(val.Line+1, "provenance.tainted is %q; write true or false", s)
				}
			}
		}
		return err
	})
}

func eachKey(name string, n *yaml.Node, do func(key string, val *yaml.Node) error) error {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return Errorf(n.Line+1, "%s is not a group of 'key: value' lines", name)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if err := do(n.Content[i].Value, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func text(name string, n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", Errorf(n.Line+1, "%s is not a single value; write '%s: …' on one line", name, name)
	}
	if isNull(n) {
		return "", nil
	}
	if hasControl(n.Value) {
		return "", Errorf(n.Line+1, "%s holds a line break or control character; write it on one line", name)
	}
	return n.Value, nil
}

func textList(name string, n *yaml.Node) ([]string, error) {
	if isNull(n) {
		return nil, nil
	}
	if n.Kind == yaml.ScalarNode {
		s, err := text(name, n)
		if err != nil || s == "" {
			return nil, err
		}
		return []string{s}, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, Errorf(n.Line+1, "%s is not a list; write '%s: [a, b]'", name, name)
	}
	var list []string
	for _, item := range n.Content {
		s, err := text(name, item)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	if err := checkList(name, list, n.Line+1); err != nil {
		return nil, err
	}
	return list, nil
}

func ranges(n *yaml.Node) ([]Range, error) {
	list, err := textList("provenance.ranges", n)
	if err != nil {
		return nil, err
	}
	var out []Range
	for _, s := range list {
		a, b, two := strings.Cut(s, "-")
		if !two {
			b = a
		}
		first, err1 := strconv.ParseUint(strings.TrimSpace(a), 10, 64)
		last, err2 := strconv.ParseUint(strings.TrimSpace(b), 10, 64)
		if err1 != nil || err2 != nil || first > last {
			return nil, Errorf(n.Line+1, "provenance.ranges entry %q is not a range of operations such as 12-48", s)
		}
		out = append(out, Range{first, last})
	}
	return out, nil
}

const timeForm = "2006-01-02T15:04:05Z07:00"

func date(name string, n *yaml.Node) (*time.Time, error) {
	s, err := text(name, n)
	if err != nil || s == "" {
		return nil, err
	}
	for _, form := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(form, s); err == nil {
			t = t.UTC()
			return &t, nil
		}
	}
	return nil, Errorf(n.Line+1, "%s %q is not a date; write it as 2026-01-31 or 2026-01-31T15:04:05Z", name, s)
}

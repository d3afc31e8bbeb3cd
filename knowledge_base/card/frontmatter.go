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
	doc, root         *yaml.Node
	bodyLine          int // the file line the body starts on
	eol               string
}

// keyed is a key of the front matter with what holds its value: a pointer to a field of the card,
// or the keys of a group.
type keyed struct {
	key   string
	field any
}

// keys lists the keys in the order in which they are written, the required ones first.
func (c *Card) keys() []keyed {
	kind, s, p := Type, &c.Scope, &c.Provenance
	return []keyed{
		{"type", &kind}, {"topic", &c.Topic}, {"source_task", &c.SourceTask},
		{"id", &c.ID}, {"state", &c.State},
		{"created", &c.Created}, {"verified_at", &c.VerifiedAt}, {"expires", &c.Expires},
		{"scope", []keyed{
			{"repo", &s.Repo}, {"language", &s.Language}, {"tool", &s.Tool}, {"version", &s.Version},
		}},
		{"provenance", []keyed{
			{"task", &p.Task}, {"jump_op", &p.JumpOp}, {"ranges", &p.Ranges}, {"model", &p.Model},
			{"evidence_hash", &p.EvidenceHash}, {"tainted", &p.Tainted}, {"shown", &p.Shown},
		}},
		{"supersedes", &c.Supersedes}, {"contradicts", &c.Contradicts}, {"generalizes", &c.Generalizes},
		{"tags", &c.Tags},
	}
}

// required is how many keys every card has.
const required = 3

func indexOf(list []keyed, key string) int {
	return slices.IndexFunc(list, func(k keyed) bool { return k.key == key })
}

const frontMatterRemedy = "start the file with a line '---', then 'type: knowledge_card', 'topic: …', " +
	"'source_task: …', then a line '---'"

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
			return f, nil, Errorf(line, "the front matter has more than %d bytes; move text to the body",
				MaxFrontMatterBytes)
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
	// The library loses comments before a carriage return.
	if err := yaml.Load(bytes.ReplaceAll(f.yaml, []byte("\r\n"), []byte("\n")), &doc); err != nil {
		line, what := 2, strings.TrimPrefix(err.Error(), "yaml: ")
		if le, ok := errors.AsType[*yaml.LoadError](err); ok {
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
	f.doc, f.root = &doc, root
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
		for i := 0; i < len(n.Content); i += 2 {
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
	keys := c.keys()
	if err := decodeKeys("", keys, f.root); err != nil {
		return err
	}
	var missing []string
	for _, k := range keys[:required] {
		missing = append(missing, k.key)
	}
	for i := 0; i < len(f.root.Content); i += 2 {
		missing = slices.DeleteFunc(missing, func(key string) bool { return key == f.root.Content[i].Value })
	}
	if len(missing) > 0 {
		return Errorf(2, "missing: %s; %s", strings.Join(missing, ", "), frontMatterRemedy)
	}
	return nil
}

// decodeKeys reads the values of a group's keys. Unknown keys are left alone. prefix is put before
// a key in messages.
func decodeKeys(prefix string, keys []keyed, n *yaml.Node) error {
	for i := 0; i < len(n.Content); i += 2 {
		if at := indexOf(keys, n.Content[i].Value); at >= 0 {
			if err := decodeField(prefix+keys[at].key, keys[at].field, n.Content[i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkText refuses a value that a text of the card may not have.
func checkText(name, value string, line int) error {
	switch {
	case name == "type" && value != Type:
		return Errorf(line, "type is %q; a card has 'type: %s'", value, Type)
	case name == "topic":
		return checkTopic(value, line)
	case name == "id" && value != "" && !validID(value):
		return Errorf(line, "id %q is not a card id; %s", value, idRemedy)
	}
	return nil
}

func decodeField(name string, field any, n *yaml.Node) (err error) {
	switch f := field.(type) {
	case []keyed:
		switch {
		case isNull(n):
			return nil
		case n.Kind != yaml.MappingNode:
			return Errorf(n.Line+1, "%s is not a group of 'key: value' lines", name)
		}
		return decodeKeys(name+".", f, n)
	case *string:
		if *f, err = text(name, n); err != nil {
			return err
		}
		return checkText(name, *f, n.Line+1)
	case *[]string:
		*f, err = textList(name, n)
		return err
	case *[]Range:
		*f, err = ranges(name, n)
		return err
	case **time.Time:
		*f, err = date(name, n)
		return err
	case *time.Time:
		t, err := date(name, n)
		if t != nil {
			*f = *t
		}
		return err
	}
	s, err := text(name, n)
	if err != nil || s == "" {
		return err
	}
	switch f := field.(type) {
	case *State:
		if *f = State(s); !f.Valid() {
			return Errorf(n.Line+1, "%s %q is unknown; use draft, reviewed, retired or superseded", name, s)
		}
	case *uint64:
		if *f, err = strconv.ParseUint(s, 10, 64); err != nil {
			return Errorf(n.Line+1, "%s %q is not an operation number", name, s)
		}
	case *bool:
		if *f = s == "true"; !*f && s != "false" {
			// Guessing here could show a tainted card to other tasks.
			return Errorf(n.Line+1, "%s is %q; write true or false", name, s)
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
	return list, checkList(name, list, n.Line+1)
}

func ranges(name string, n *yaml.Node) ([]Range, error) {
	list, err := textList(name, n)
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
			return nil, Errorf(n.Line+1, "%s entry %q is not a range of operations such as 12-48", name, s)
		}
		out = append(out, Range{first, last})
	}
	return out, nil
}

func date(name string, n *yaml.Node) (*time.Time, error) {
	s, err := text(name, n)
	if err != nil || s == "" {
		return nil, err
	}
	for _, form := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(form, s); err == nil {
			return new(t.UTC()), nil
		}
	}
	return nil, Errorf(n.Line+1, "%s %q is not a date; write it as 2026-01-31 or 2026-01-31T15:04:05Z", name, s)
}

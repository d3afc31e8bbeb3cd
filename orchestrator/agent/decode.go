package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/tool"
)

// Limits of a spec.
const (
	maxSpecBytes   = 64 << 10
	maxPromptBytes = 64 << 10
	maxItems       = 200 // of one list or mapping
	maxDescription = 1_000
	maxExtends     = 16 // specs in a chain
)

// Error is a fault in a spec or in a prompt, at its place. Its text is one line.
type Error struct {
	File string
	Line int // 0: the file as a whole
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// The keys of a spec, in the order in which they are explained.
const (
	keyName        = "name"
	keyDescription = "description"
	keyExtends     = "extends"
	keyPrompt      = "system_prompt"
	keyArgs        = "system_prompt_args"
	keyModel       = "model"
	keyTools       = "tools"
	keyExclude     = "exclude_tools"
	keySubagents   = "subagents"
	keyGuarded     = "guarded"
	keyRules       = "rules"
	keyApproval    = "approval"
	keySandbox     = "sandbox"
	keyReadOnly    = "read_only"
)

func keys() []string {
	return []string{keyName, keyDescription, keyExtends, keyPrompt, keyArgs, keyModel, keyTools, keyExclude, keySubagents,
		keyGuarded, keyRules, keyApproval, keySandbox, keyReadOnly}
}

// reference is a mention of another file or spec, with its line.
type reference struct {
	text, description string
	line              int
}

// layer is one file of a chain, without what it extends.
type layer struct {
	spec      Spec
	line      map[string]int // of the keys that are in the file
	extends   reference
	prompt    reference
	subagents map[string]reference
}

func (l *layer) has(key string) bool { return l.line[key] > 0 }

// decoder reads one file. tools are the known tools; nil: names are not checked.
type decoder struct {
	file  string
	tools []string
}

func (d decoder) fail(line int, format string, args ...any) error {
	return &Error{d.file, line, fmt.Sprintf(format, args...)}
}

// decode reads a spec's text. The error is an *Error.
func (d decoder) decode(data []byte) (*layer, error) {
	root, err := d.document(data)
	if err != nil {
		return nil, err
	}
	l := &layer{line: make(map[string]int)}
	if root == nil {
		return l, nil
	}
	fields, lines, err := d.mapping(root, keys())
	if err != nil {
		return nil, err
	}
	l.line = lines
	for _, key := range keys() {
		n := fields[key]
		if n == nil {
			continue
		}
		if err := d.field(l, key, n); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// document returns the one YAML document of a file; nil where it has none.
func (d decoder) document(data []byte) (*yaml.Node, error) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		line, cause := userfile.YAML(err)
		return nil, d.fail(line, "%s; repair the YAML", cause)
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, d.fail(second.Line, "a second document, or text that is not YAML: keep one")
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Tag == "!!null" {
		return nil, nil
	}
	return doc.Content[0], nil
}

// mapping returns the values and lines of a mapping's keys. known nil: any.
func (d decoder) mapping(n *yaml.Node, known []string) (map[string]*yaml.Node, map[string]int, error) {
	if n.Kind != yaml.MappingNode {
		return nil, nil, d.fail(n.Line, "want keys with values")
	}
	if len(n.Content) > 2*maxItems {
		return nil, nil, d.fail(n.Line, "%d keys, at most %d are taken", len(n.Content)/2, maxItems)
	}
	fields, lines := make(map[string]*yaml.Node), make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || key.Value == "":
			return nil, nil, d.fail(key.Line, "a key has to be a word")
		case known != nil && !slices.Contains(known, key.Value):
			return nil, nil, d.fail(key.Line, "unknown key %q; there are %s", key.Value, strings.Join(known, ", "))
		case fields[key.Value] != nil:
			return nil, nil, d.fail(key.Line, "%s occurs twice, first in line %d", key.Value, lines[key.Value])
		}
		fields[key.Value], lines[key.Value] = n.Content[i+1], key.Line
	}
	return fields, lines, nil
}

// text reads one plain value.
func (d decoder) text(what string, n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		return "", d.fail(n.Line, "%s: want one text", what)
	}
	return strings.TrimSpace(n.Value), nil
}

// texts reads a list of plain values, each checked.
func (d decoder) texts(what string, n *yaml.Node, check func(text string) error) ([]string, error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) > maxItems {
		return nil, d.fail(n.Line, "%s: want a list of at most %d texts", what, maxItems)
	}
	var out []string
	for _, item := range n.Content {
		text, err := d.text(what, item)
		if err != nil {
			return nil, err
		}
		if err := check(text); err != nil {
			return nil, d.fail(item.Line, "%s: %v", what, err)
		}
		out = append(out, text)
	}
	return out, nil
}

// specName matches names of agents.
var specName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

func checkName(name string) error {
	if len(name) > 40 || !specName.MatchString(name) {
		return fmt.Errorf("%q: want 1 to 40 letters, digits, _ or -", name)
	}
	return nil
}

// field reads one key into the layer.
func (d decoder) field(l *layer, key string, n *yaml.Node) (err error) {
	s := &l.spec
	switch key {
	case keyName:
		s.Name, err = d.checked(key, n, checkName)
	case keyDescription:
		s.Description, err = d.checked(key, n, func(text string) error {
			if len(text) > maxDescription {
				return fmt.Errorf("%d bytes, at most %d are taken", len(text), maxDescription)
			}
			return nil
		})
	case keyExtends:
		l.extends, err = d.reference(key, n)
	case keyPrompt:
		l.prompt, err = d.reference(key, n)
	case keyArgs:
		s.Args, err = d.args(n)
	case keyModel:
		s.Model, err = d.text(key, n)
	case keyTools:
		if s.Tools, err = d.texts(key, n, d.checkTool); err == nil && len(s.Tools) == 0 {
			err = d.fail(n.Line, "%s: name at least one, or leave the key out for all", key)
		}
	case keyExclude:
		s.ExcludeTools, err = d.texts(key, n, d.checkTool)
	case keySubagents:
		l.subagents, err = d.subagents(n)
	case keyGuarded:
		_, err = d.texts(key, n, func(text string) error {
			p, err := ParseGuarded(text)
			s.Guarded = append(s.Guarded, p)
			return err
		})
	case keyRules:
		err = d.rules(s, n)
	case keyApproval:
		s.Approval, err = d.checked(key, n, func(text string) error { _, err := approval.ParseMode(text); return err })
	case keySandbox:
		s.Sandbox, err = d.checked(key, n, func(text string) error { _, err := guard.ParseConfinement(text); return err })
	case keyReadOnly:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			return d.fail(n.Line, "%s: want true or false", key)
		}
		err = n.Decode(&s.ReadOnly)
	}
	return err
}

func (d decoder) checked(key string, n *yaml.Node, check func(string) error) (string, error) {
	text, err := d.text(key, n)
	if err == nil {
		if fault := check(text); fault != nil {
			err = d.fail(n.Line, "%s: %v", key, fault)
		}
	}
	return text, err
}

func (d decoder) reference(key string, n *yaml.Node) (reference, error) {
	text, err := d.text(key, n)
	return reference{text: text, line: n.Line}, err
}

// argName matches names of arguments of a prompt.
var argName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

func (d decoder) args(n *yaml.Node) (map[string]string, error) {
	fields, lines, err := d.mapping(n, nil)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(fields))
	for name, v := range fields {
		switch {
		case len(name) > 40 || !argName.MatchString(name):
			return nil, d.fail(lines[name], "%s: %q: want capital letters, digits and _", keyArgs, name)
		case slices.Contains(builtinArgs(), name):
			return nil, d.fail(lines[name], "%s: %s is filled in by the program; take another name", keyArgs, name)
		case v.Kind != yaml.ScalarNode:
			return nil, d.fail(v.Line, "%s: %s: want one text", keyArgs, name)
		}
		out[name] = v.Value
	}
	return out, nil
}

// subagents reads NAME: SPEC, or NAME: {path: SPEC, description: TEXT}.
func (d decoder) subagents(n *yaml.Node) (map[string]reference, error) {
	fields, lines, err := d.mapping(n, nil)
	if err != nil {
		return nil, err
	}
	out := make(map[string]reference, len(fields))
	for name, v := range fields {
		if err := checkName(name); err != nil {
			return nil, d.fail(lines[name], "%s: %v", keySubagents, err)
		}
		if v.Kind != yaml.MappingNode {
			if out[name], err = d.reference(keySubagents, v); err != nil {
				return nil, err
			}
			continue
		}
		parts, _, err := d.mapping(v, []string{"path", keyDescription})
		if err != nil {
			return nil, err
		}
		if parts["path"] == nil {
			return nil, d.fail(v.Line, "%s: %s has no path", keySubagents, name)
		}
		r, err := d.reference(keySubagents, parts["path"])
		if err != nil {
			return nil, err
		}
		if about := parts[keyDescription]; about != nil {
			if r.description, err = d.text(keyDescription, about); err != nil {
				return nil, err
			}
		}
		out[name] = r
	}
	return out, nil
}

func (d decoder) rules(s *Spec, n *yaml.Node) error {
	fields, _, err := d.mapping(n, []string{"allow", "ask", "deny"})
	if err != nil {
		return err
	}
	for _, list := range []struct {
		key     string
		verdict approval.Verdict
		into    *[]string
	}{{"allow", approval.Allow, &s.Allow}, {"ask", approval.Ask, &s.Ask}, {"deny", approval.Refuse, &s.Deny}} {
		if fields[list.key] == nil {
			continue
		}
		*list.into, err = d.texts(keyRules, fields[list.key], func(text string) error {
			_, err := approval.ParseRule(text, list.verdict)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkTool rejects a tool that does not exist, and a pattern that matches none. The tools of
// MCP servers are unknown before the servers run.
func (d decoder) checkTool(name string) error {
	if _, err := path.Match(name, ""); err != nil {
		return fmt.Errorf("%q is not a valid pattern: %w", name, err)
	}
	if d.tools == nil || strings.HasPrefix(name, tool.MCPPrefix) {
		return nil
	}
	if slices.ContainsFunc(d.tools, func(t string) bool { return matches(name, t) }) {
		return nil
	}
	return fmt.Errorf("unknown tool %q; there are %s, and %s… of MCP servers", name, strings.Join(d.tools, ", "), tool.MCPPrefix)
}

// ParseGuarded reads which calls need an investigation first: a tool's name, or Bash:COMMAND,
// in which * matches any text.
func ParseGuarded(text string) (op.CallPattern, error) {
	name, command, _ := strings.Cut(text, ":")
	if name == "" || strings.ContainsAny(name, " \t") || command != "" && op.Acts(name) != op.RunsShell {
		return op.CallPattern{}, fmt.Errorf("%q: want a tool's name, or Bash:COMMAND such as 'Bash:terraform apply*'", text)
	}
	return op.CallPattern{Tool: name, Command: command}, nil
}

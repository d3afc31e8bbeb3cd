package agent

import (
	"errors"
	"fmt"
	"maps"
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

// The keys of a spec that faults name.
const (
	keyName        = "name"
	keyDescription = "description"
	keyExtends     = "extends"
	keyPrompt      = "system_prompt"
	keyArgs        = "system_prompt_args"
	keySubagents   = "subagents"
)

// allKeys are the keys of a spec, in the order in which the guide explains them.
const allKeys = "name, description, extends, system_prompt, system_prompt_args, model, tools, exclude_tools, " +
	"subagents (NAME: {path, description}), guarded, rules (allow, ask, deny), approval, sandbox, read_only"

// value is a text in a spec and its line; line 0: the key is not in the file.
type value struct {
	text string
	line int
}

// UnmarshalYAML reads a scalar that is not empty.
func (v *value) UnmarshalYAML(n *yaml.Node) error {
	*v = value{strings.TrimSpace(n.Value), n.Line}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || v.text == "" {
		return errors.New("want one text")
	}
	return nil
}

// subagent is NAME: SPEC, or NAME: {path: SPEC, description: TEXT}.
type subagent struct{ path, description value }

// UnmarshalYAML reads either form.
func (s *subagent) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return s.path.UnmarshalYAML(n)
	}
	var long struct{ Path, Description value }
	err := n.Load(&long, yaml.WithKnownFields(), yaml.WithUniqueKeys())
	if err == nil && long.Path.line == 0 {
		err = errors.New(keySubagents + ": one has no path")
	}
	s.path, s.description = long.Path, long.Description
	return err
}

// layer is one file of a chain, without what it extends. A list that is nil is not in the file.
type layer struct {
	Name         value              `yaml:"name"`
	Description  value              `yaml:"description"`
	Extends      value              `yaml:"extends"`
	Prompt       value              `yaml:"system_prompt"`
	Args         map[value]string   `yaml:"system_prompt_args"`
	Model        value              `yaml:"model"`
	Tools        []value            `yaml:"tools"`
	ExcludeTools []value            `yaml:"exclude_tools"`
	Subagents    map[value]subagent `yaml:"subagents"`
	Guarded      []value            `yaml:"guarded"`
	Rules        struct {
		Allow []value `yaml:"allow"`
		Ask   []value `yaml:"ask"`
		Deny  []value `yaml:"deny"`
	} `yaml:"rules"`
	Approval value `yaml:"approval"`
	Sandbox  value `yaml:"sandbox"`
	ReadOnly *bool `yaml:"read_only"`

	guarded []op.CallPattern
}

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
	l := new(layer)
	err := yaml.Load(data, l, yaml.WithKnownFields(), yaml.WithUniqueKeys())
	if err != nil && !userfile.Empty(err) {
		line, cause := userfile.YAML(err)
		if strings.HasPrefix(cause, "unknown key") {
			cause += "; there are " + allKeys
		}
		return nil, d.fail(line, "%s", cause)
	}
	if l.Tools != nil && len(l.Tools) == 0 { // an agent without any tool is surely not what is meant
		return nil, d.fail(0, "tools: empty: name at least one, or leave the key out for all")
	}
	rule := func(v approval.Verdict) func(string) error {
		return func(text string) error { _, err := approval.ParseRule(text, v); return err }
	}
	for _, c := range []struct {
		key    string
		values []value
		check  func(text string) error
	}{
		{keyName, []value{l.Name}, checkName},
		{keyDescription, []value{l.Description}, checkDescription},
		{keyArgs, slices.Collect(maps.Keys(l.Args)), checkArg},
		{keySubagents, slices.Collect(maps.Keys(l.Subagents)), checkName},
		{"tools", l.Tools, d.checkTool},
		{"exclude_tools", l.ExcludeTools, d.checkTool},
		{"guarded", l.Guarded, func(text string) error {
			p, err := ParseGuarded(text)
			l.guarded = append(l.guarded, p)
			return err
		}},
		{"rules", l.Rules.Allow, rule(approval.Allow)},
		{"rules", l.Rules.Ask, rule(approval.Ask)},
		{"rules", l.Rules.Deny, rule(approval.Refuse)},
		{"approval", []value{l.Approval}, func(text string) error { _, err := approval.ParseMode(text); return err }},
		{"sandbox", []value{l.Sandbox}, func(text string) error { _, err := guard.ParseConfinement(text); return err }},
	} {
		for _, v := range c.values {
			if v.line == 0 { // not in this file
				continue
			}
			if err := c.check(v.text); err != nil {
				return nil, d.fail(v.line, "%s: %v", c.key, err)
			}
		}
	}
	return l, nil
}

// specName matches names of agents, argName those of arguments of a prompt.
var (
	specName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	argName  = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
)

func checkName(name string) error {
	if len(name) > 40 || !specName.MatchString(name) {
		return fmt.Errorf("%q: want 1 to 40 letters, digits, _ or -", name)
	}
	return nil
}

func checkArg(name string) error {
	if len(name) > 40 || !argName.MatchString(name) {
		return fmt.Errorf("%q: want capital letters, digits and _", name)
	} else if slices.Contains(builtinArgs(), name) {
		return fmt.Errorf("%s is filled in by the program; take another name", name)
	}
	return nil
}

func checkDescription(text string) error {
	if len(text) > maxDescription {
		return fmt.Errorf("%d bytes, at most %d are taken", len(text), maxDescription)
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
	return fmt.Errorf("unknown tool %q; there are %s, and %s… of MCP servers", name, strings.Join(d.tools, ", "),
		tool.MCPPrefix)
}

// ParseGuarded reads which calls need an investigation first: a tool's name, or Bash:COMMAND,
// in which * matches any text.
func ParseGuarded(text string) (op.CallPattern, error) {
	name, command, _ := strings.Cut(text, ":")
	if name == "" || strings.ContainsAny(name, " \t") || command != "" && op.Acts(name) != op.RunsShell {
		return op.CallPattern{}, fmt.Errorf("%q: want a tool's name, or Bash:COMMAND, as 'Bash:terraform apply*'", text)
	}
	return op.CallPattern{Tool: name, Command: command}, nil
}

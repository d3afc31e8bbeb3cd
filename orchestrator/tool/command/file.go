package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"anamnesis/knowledge_base/userfile"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
)

// Limits of a file.
const (
	maxFileBytes          = 64 << 10
	maxWords              = 256
	defaultTimeoutSeconds = 60
	maxTimeoutSeconds     = 3_600
)

// definition is the content of a file.
type definition struct {
	Name        string         `yaml:"name"` // if given, the file's own
	Description string         `yaml:"description"`
	Parameters  map[string]any `yaml:"parameters"` // JSON Schema
	Command     []string       `yaml:"command"`
	Timeout     int            `yaml:"timeout"`
	ReadOnly    bool           `yaml:"read_only"`
	Network     bool           `yaml:"network"`
	Sandbox     string         `yaml:"sandbox"` // "off", or none: the task's
}

// parse reads the file of a tool's name.
func parse(name string, data []byte) (*remembered, error) {
	var d definition
	if err := yaml.Load(data, &d, yaml.WithKnownFields(), yaml.WithUniqueKeys()); err != nil && !userfile.Empty(err) {
		line, cause := userfile.YAML(err)
		return nil, fmt.Errorf("cannot be read: line %d: %s; the keys are name, description, parameters, command, timeout, read_only, network and sandbox", line, cause)
	}
	if d.Parameters == nil {
		d.Parameters = map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}
	}
	text, err := json.Marshal(d.Parameters)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	schema := new(jsonschema.Schema)
	if err := json.Unmarshal(text, schema); err != nil {
		_, cause := userfile.JSONCause(err)
		return nil, fmt.Errorf("parameters: %s; write a JSON schema", cause)
	}
	switch {
	case d.Name != "" && d.Name != name:
		return nil, fmt.Errorf("name %q: the file is called %s.yaml", d.Name, name)
	case strings.HasPrefix(name, tool.MCPPrefix): // otherwise a rule about a server's tools would match this one
		return nil, fmt.Errorf("name %q: names with %s are those of MCP servers' tools", name, tool.MCPPrefix)
	case strings.TrimSpace(d.Description) == "":
		return nil, errors.New("description is missing: the model chooses tools by it")
	case len(d.Command) == 0 || len(d.Command) > maxWords:
		return nil, fmt.Errorf("command: want 1 to %d words, the program first", maxWords)
	case d.Timeout < 0 || d.Timeout > maxTimeoutSeconds:
		return nil, fmt.Errorf("timeout %d: want 1 to %d seconds", d.Timeout, maxTimeoutSeconds)
	case d.Sandbox != "" && d.Sandbox != string(guard.ConfineOff):
		return nil, fmt.Errorf("sandbox %q: want off, or leave it out for the task's own", d.Sandbox)
	case d.ReadOnly && d.Sandbox != "": // without a question it would run what the project makes it load
		return nil, errors.New("read_only: calls outside the sandbox (sandbox: off) need an approval; remove read_only, and allow the tool by a rule")
	}
	if d.Timeout == 0 {
		d.Timeout = defaultTimeoutSeconds
	}
	if err := checkWords(d.Command, schema); err != nil {
		return nil, err
	}
	r := &remembered{definition: d, timeout: time.Duration(d.Timeout) * time.Second}
	r.spec = tool.Spec{Name: name, Description: strings.TrimSpace(d.Description), Schema: schema, ReadOnly: d.ReadOnly, Runs: true}
	if _, err := tool.NewRegistry(r); err != nil {
		return nil, err
	}
	return r, nil
}

// placeholder matches an argument: {{name}}.
var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}`)

// checkWords finds words that cannot be filled in.
func checkWords(words []string, schema *jsonschema.Schema) error {
	if strings.Contains(words[0], "{{") || strings.TrimSpace(words[0]) == "" {
		return errors.New("command: the program is the file's choice, not an argument's")
	}
	for _, w := range words {
		for _, m := range placeholder.FindAllStringSubmatch(w, -1) {
			if schema.Properties[m[1]] == nil {
				return fmt.Errorf("command: {{%s}} is no parameter; there are %s", m[1],
					strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", "))
			}
		}
	}
	return nil
}

// fill puts arguments into the words. A word whose argument is missing is omitted; one that is
// only a list becomes a word for each of its items.
func fill(words []string, args map[string]any) []string {
	var out []string
	for _, w := range words {
		if m := placeholder.FindStringSubmatch(w); m != nil && m[0] == w {
			if list, ok := args[m[1]].([]any); ok {
				for _, v := range list {
					out = append(out, word(v))
				}
				continue
			}
		}
		missing := false
		text := placeholder.ReplaceAllStringFunc(w, func(p string) string {
			v, ok := args[placeholder.FindStringSubmatch(p)[1]]
			missing = missing || !ok || v == nil
			return word(v)
		})
		if !missing {
			out = append(out, text)
		}
	}
	return out
}

// word returns an argument as a word: a text unchanged, anything else as JSON.
func word(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "" // it was decoded from JSON
	}
	return string(data)
}

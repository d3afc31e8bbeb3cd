package named

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v4"

	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/model/openai"
)

// TuningKey is the key of the user's config.yaml whose rows say how models are asked.
const TuningKey = "models"

const (
	maxConfigBytes  = 64 << 10
	keyCommandTime  = 30 * time.Second // a password manager may ask the user
	maxKeyBytes     = 8 << 10
	maxTuningFields = 64
)

// Tuning is a row of config.yaml: how the models whose name fits are asked. All matching rows count, and
// of each setting the first that has it.
type Tuning struct {
	Match      string            `yaml:"match"`                 // a pattern of names, such as deepseek/*
	Headers    map[string]string `yaml:"headers"`               // sent with each request
	KeyCommand string            `yaml:"key_command"`           // prints the API key; again when that is refused
	Effort     string            `yaml:"reasoning_effort"`      // sent as the field of this name
	FirstByte  time.Duration     `yaml:"first_byte_timeout"`    // 0: openai.DefaultFirstByteTimeout
	Idle       time.Duration     `yaml:"between_bytes_timeout"` // 0: openai.DefaultIdleTimeout
	Body       map[string]any    `yaml:"extra_body"`            // further fields of each request
	Fallback   []string          `yaml:"fallback"`              // models that take over, in order
}

// ParseTuning reads the rows of the key. An error says what is wrong with which row.
func ParseTuning(node *yaml.Node) ([]Tuning, error) {
	if node.Kind != yaml.SequenceNode {
		return nil, errors.New("want a list of rows, each with match")
	}
	var rows []Tuning
	for i, n := range node.Content {
		var row Tuning
		if err := n.Load(&row, yaml.WithKnownFields()); err != nil {
			line, cause := userfile.YAML(err)
			return nil, fmt.Errorf("row %d (line %d): %s", i+1, max(line, n.Line), cause)
		}
		if err := row.check(); err != nil {
			return nil, fmt.Errorf("row %d (line %d): %w", i+1, n.Line, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (t *Tuning) check() error {
	switch {
	case t.Match == "":
		return errors.New(`match is missing; "*" fits every model`)
	case !doublestar.ValidatePattern(t.Match):
		return fmt.Errorf("match %q is not a pattern", t.Match)
	case t.FirstByte < 0 || t.Idle < 0:
		return errors.New("a timeout is below zero")
	case len(t.Body)+len(t.Headers) > maxTuningFields:
		return fmt.Errorf("more than %d headers and fields", maxTuningFields)
	}
	for key := range t.Body {
		if slices.Contains([]string{"model", "messages", "tools", "stream"}, key) {
			return fmt.Errorf("extra_body sets %s, which the program sets", key)
		}
	}
	for key, value := range t.Headers {
		if key == "" || strings.ContainsAny(key+value, "\r\n") || strings.ContainsAny(key, ": ") {
			return fmt.Errorf("the header %q cannot be sent", key)
		}
	}
	return nil
}

// tuningOf returns the settings of a model from the user's file, which need not exist.
func tuningOf(path, name string) (t Tuning, err error) {
	data, err := durable.ReadFile(path, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) || path == "" {
		return t, nil
	}
	if err != nil {
		return t, fmt.Errorf("read %s: %w", path, err)
	}
	var nodes map[string]yaml.Node
	if err := yaml.Unmarshal(data, &nodes); err != nil {
		return t, fmt.Errorf("%s: %w", path, err)
	}
	node, ok := nodes[TuningKey]
	if !ok {
		return t, nil
	}
	rows, err := ParseTuning(&node)
	if err != nil {
		return t, fmt.Errorf("%s: %s: %w", path, TuningKey, err)
	}
	for _, row := range rows {
		// In a pattern * fits no slash, but alone it stands for every model.
		if ok, err := doublestar.Match(row.Match, name); err != nil || !ok && row.Match != "*" {
			continue
		}
		t.KeyCommand, t.Effort = cmp.Or(t.KeyCommand, row.KeyCommand), cmp.Or(t.Effort, row.Effort)
		t.FirstByte, t.Idle = cmp.Or(t.FirstByte, row.FirstByte), cmp.Or(t.Idle, row.Idle)
		t.Headers, t.Body = merge(t.Headers, row.Headers), merge(t.Body, row.Body)
		if t.Fallback == nil {
			t.Fallback = row.Fallback
		}
	}
	return t, nil
}

// merge adds what is missing.
func merge[V any](to, from map[string]V) map[string]V {
	for k, v := range from {
		if to == nil {
			to = make(map[string]V)
		}
		if _, ok := to[k]; !ok {
			to[k] = v
		}
	}
	return to
}

func (t *Tuning) apply(o *openai.Options) error {
	o.Headers, o.FirstByteTimeout, o.IdleTimeout = t.Headers, t.FirstByte, t.Idle
	for key, v := range t.Body {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("extra_body: %s: %w", key, err)
		}
		if o.Body == nil {
			o.Body = make(map[string]json.RawMessage)
		}
		o.Body[key] = data
	}
	if t.Effort != "" {
		data, err := json.Marshal(t.Effort)
		if err != nil {
			return err
		}
		o.Body = merge(o.Body, map[string]json.RawMessage{"reasoning_effort": data})
	}
	if t.KeyCommand != "" {
		o.NewKey = func(ctx context.Context) (string, error) { return runKeyCommand(ctx, t.KeyCommand) }
	}
	return nil
}

// runKeyCommand returns the first line that the command prints. Its other output is not shown: it may hold
// the key.
func runKeyCommand(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keyCommandTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sh", "-c", command).Output()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("key_command of config.yaml did not end within %v; run it in a shell to see why",
			keyCommandTime)
	case err != nil:
		return "", fmt.Errorf("key_command of config.yaml failed: %w; run it in a shell to see why", err)
	}
	key, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if key = strings.TrimSpace(key); key == "" || len(key) > maxKeyBytes {
		return "", errors.New("key_command of config.yaml printed no key; run it in a shell to see why")
	}
	return key, nil
}

package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/tool"
)

// Limits of a server's description of a tool.
const (
	maxDescriptionRunes = 8_000
	maxSchemaBytes      = 64 << 10
	maxSchemaDepth      = 64
)

// remote is a tool of a server.
type remote struct {
	of    *server
	name  string // the server's own
	spec  tool.Spec
	again bool // calling it twice has the effect of calling it once
}

// newRemote makes a tool under a free name.
func newRemote(of *server, t *sdk.Tool, taken map[string]bool) *remote {
	r := &remote{of: of, name: t.Name}
	r.spec = tool.Spec{
		Name:        remoteName(of.Server, t.Name, taken),
		Description: printable(t.Description),
		ReadOnly:    slices.Contains(of.ReadOnlyTools, t.Name),
	}
	r.spec.Description = cmp.Or(r.spec.Description, printable(t.Title))
	schema, err := schemaOf(t.InputSchema)
	if err != nil {
		// The server still checks its arguments.
		schema = &jsonschema.Schema{Type: "object"}
		text := fmt.Sprintf("%s\n(Its parameters are not known here: %s.)", r.spec.Description, oneLine(err.Error()))
		r.spec.Description = strings.TrimSpace(text)
	}
	r.spec.Schema = schema
	if a := t.Annotations; a != nil {
		r.again = a.ReadOnlyHint || a.IdempotentHint
	}
	return r
}

func (r *remote) Spec() tool.Spec { return r.spec }

func (r *remote) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, fmt.Errorf("call MCP server %s: %w", r.of.Name, err)
	}
	res, err := r.of.call(ctx, request{tool: r.name, args: args, again: r.again || r.spec.ReadOnly, env: env})
	if r.of.confined() {
		if note := r.of.o.Sandbox.Quarantine(); note != "" { // as after a command
			res.Text += "\n[" + note + "]"
		}
	}
	return res, err
}

// remoteName returns mcp__SERVER__TOOL in valid characters. A name that is too long, or taken,
// ends with a part of its hash.
func remoteName(server Server, name string, taken map[string]bool) string {
	full := server.ToolPrefix() + quote.Word(name)
	if len(full) <= tool.MaxNameBytes && !taken[full] {
		return full
	}
	sum := sha256.Sum256([]byte(server.Name + "\x00" + name))
	end := "_" + hex.EncodeToString(sum[:4])
	return full[:min(len(full), tool.MaxNameBytes-len(end))] + end
}

// schemaOf reads a server's schema of a tool's arguments, and makes every text in it visible.
func schemaOf(in any) (*jsonschema.Schema, error) {
	fields, ok := in.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the server sent no schema")
	}
	visible, err := visibleTexts(fields, maxSchemaDepth)
	if err != nil {
		return nil, err
	}
	fields = visible.(map[string]any)
	delete(fields, "$schema")       // the drafts in use agree on what is used here
	data, _ := json.Marshal(fields) // it was read as JSON
	if len(data) > maxSchemaBytes {
		return nil, fmt.Errorf("the schema has %d bytes, at most %d are read", len(data), maxSchemaBytes)
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	if s.Type == "" && len(s.Types) == 0 {
		s.Type = "object"
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("the schema is not of an object")
	}
	if _, err := s.CloneSchemas().Resolve(nil); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return s, nil
}

// visibleTexts returns a copy of a decoded JSON value in which the texts under description and
// title are visible. Names, patterns and values, which arguments are checked against, stay
// unchanged.
func visibleTexts(v any, depth int) (any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("the schema is nested more than %d deep", maxSchemaDepth)
	}
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = visibleTexts(v[i], depth-1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			if text, ok := x.(string); ok && (k == "description" || k == "title" || k == "$comment") {
				out[k] = printable(text)
				continue
			}
			var err error
			if out[k], err = visibleTexts(x, depth-1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// printable returns a server's text as model and user see it.
func printable(s string) string {
	text, _ := headAndTail(strings.TrimSpace(tool.Visible(s)), maxDescriptionRunes)
	return text
}

// describe shows a user all of a server's descriptions that the model would see.
func describe(s Server, tools []*sdk.Tool) []ToolInfo {
	out := []ToolInfo{}
	for _, t := range tools {
		spec := newRemote(&server{Server: s}, t, nil).spec
		info := ToolInfo{Name: oneLine(t.Name), Description: spec.Description}
		if data, err := json.Marshal(spec.Schema); err == nil && string(data) != `{"type":"object"}` {
			info.Parameters = tool.Visible(string(data))
		}
		out = append(out, info)
	}
	return out
}

package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// request returns the body of a request.
func (c *Client) request(r model.Request) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body := map[string]any{"model": c.o.Model, "stream": true, "stream_options": map[string]any{"include_usage": true}}
	messages := []map[string]any{}
	var pictures gallery
	sees := c.sees()
	for i, m := range r.Messages {
		switch m.Role {
		case model.RoleSystem, model.RoleUser, model.RoleAssistant, model.RoleTool:
		default:
			return nil, fmt.Errorf("message %d has the unknown role %q", i, m.Role)
		}
		if m.Role != model.RoleTool {
			words := ""
			if m.Role == model.RoleUser {
				words = m.Text
			}
			if shown, ok := pictures.show(words); ok {
				messages = append(messages, shown)
				if m.Role == model.RoleUser {
					continue
				}
			}
		}
		messages = append(messages, c.message(m))
		if sees {
			pictures.add(m.Name, m.CallID, m.Parts)
		}
	}
	if shown, ok := pictures.show(""); ok {
		messages = append(messages, shown)
	}
	c.mend(messages)
	body["messages"] = messages
	var tools []map[string]any
	for _, t := range r.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if !json.Valid(schema) {
			return nil, fmt.Errorf("the schema of tool %q is not JSON", t.Name)
		}
		function := map[string]any{"name": t.Name, "parameters": schema}
		if t.Description != "" {
			function["description"] = t.Description
		}
		tools = append(tools, map[string]any{"type": "function", "function": function})
	}
	if tools != nil {
		body["tools"] = tools
	}
	if r.MaxTokens > 0 {
		name := "max_tokens"
		if reasoningFamily(c.o.Model) {
			name = "max_completion_tokens"
		}
		body[name] = r.MaxTokens
	}
	return json.Marshal(body)
}

// message returns a message as it is sent. Every message has a content: without one, an empty tool
// result would be refused.
func (c *Client) message(m model.Message) map[string]any {
	out := map[string]any{"role": string(m.Role), "content": m.Text}
	if m.Name != "" {
		out["name"] = m.Name
	}
	if m.CallID != "" {
		out["tool_call_id"] = m.CallID
	}
	own := m.Origin == c.origin() // another provider may refuse what it does not know
	var calls []map[string]any
	for _, call := range m.Calls {
		sent := map[string]any{}
		function := map[string]any{}
		if own {
			c.addExtra(sent, call.Extra)
			for key, v := range objectOf(call.Extra["function"]) {
				function[key] = v
			}
		}
		function["name"], function["arguments"] = sendableName(call.Name), sendableArgs(call)
		sent["id"], sent["type"], sent["function"] = call.ID, "function", function
		calls = append(calls, sent)
	}
	if calls != nil {
		out["tool_calls"] = calls
		if m.Text == "" {
			out["content"] = nil // as OpenAI itself writes it
		}
	}
	if own {
		c.addExtra(out, m.Extra)
	}
	return out
}

func (c *Client) addExtra(to map[string]any, extra map[string]json.RawMessage) {
	for key, v := range extra {
		if !c.mends.omit[key] {
			to[key] = v
		}
	}
}

// origin identifies who understands what a reply has beside its text and calls.
func (c *Client) origin() string { return c.o.BaseURL + " " + c.o.Model }

// sendableArgs returns arguments an endpoint accepts in a history. Several (Ollama, vLLM's
// templates, gateways to other APIs) parse them and refuse a whole request over one malformed
// call of an earlier reply, which would end the task. The result still shows the model what it
// wrote.
func sendableArgs(call op.Call) string {
	if call.ValidArgs() {
		return call.Args
	}
	if strings.TrimSpace(call.Args) == "" {
		return "{}"
	}
	wrapped, err := json.Marshal(map[string]string{"malformed_arguments": call.Args})
	if err != nil {
		return "{}" // a map of strings always marshals
	}
	return string(wrapped)
}

// maxNameLength is OpenAI's limit for a function's name,
// https://platform.openai.com/docs/api-reference/chat/create
const maxNameLength = 64

// sendableName returns a function name an endpoint accepts in a history: a model can invent
// one that its own endpoint refuses.
func sendableName(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return "unnamed"
	}
	return clean[:min(len(clean), maxNameLength)]
}

// reasoningFamily reports whether a model is one of OpenAI's that take max_completion_tokens
// instead of max_tokens. Gateways put the vendor before the name.
func reasoningFamily(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

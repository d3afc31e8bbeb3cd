package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gopenai "github.com/sashabaranov/go-openai"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// written is a request in go-openai's types, and the message of the history that each of its messages
// stands for; nil for images.
type written struct {
	gopenai.ChatCompletionRequest
	from []*model.Message
	// repairs are the names of what was written in another form; fields are the names of the fields
	// that can be left out.
	repairs, fields []string
}

// request translates into go-openai's request. patch adds what that type cannot express.
func (c *Client) request(r model.Request) (*written, error) {
	out := &written{fields: []string{"stream_options"}}
	out.Model, out.StreamOptions = c.o.Model, &gopenai.StreamOptions{IncludeUsage: true}
	add := func(m gopenai.ChatCompletionMessage, from *model.Message) {
		out.Messages, out.from = append(out.Messages, m), append(out.from, from)
	}
	var pictures gallery
	sees := c.sees()
	for i := range r.Messages {
		m := &r.Messages[i]
		switch m.Role {
		case model.RoleSystem, model.RoleUser, model.RoleAssistant, model.RoleTool:
		default:
			return nil, fmt.Errorf("message %d has the unknown role %q", i, m.Role)
		}
		if m.Role != model.RoleTool { // images wait: nothing may stand between results
			words := ""
			if m.Role == model.RoleUser {
				words = m.Text
				if sees {
					pictures.add(m)
				}
			}
			if shown, ok := pictures.show(words); ok {
				add(shown, nil)
				if m.Role == model.RoleUser {
					continue
				}
			}
		}
		out := message(m)
		switch {
		case sees && m.Role == model.RoleTool:
			pictures.add(m)
		case !sees && len(m.Parts) > 0:
			out.Content += unseen
		}
		add(out, m)
	}
	if shown, ok := pictures.show(""); ok {
		add(shown, nil)
	}
	for _, t := range r.Tools {
		if !json.Valid(t.Schema) && len(t.Schema) > 0 {
			return nil, fmt.Errorf("the schema of tool %q is not JSON", t.Name)
		}
		name := sendableName(t.Name)
		if c.leavesOut(name) {
			continue
		}
		schema, changed := acceptedSchema(t.Schema)
		if changed {
			out.repairs = append(out.repairs, op.RepairToolSchema+":"+t.Name)
		}
		out.Tools = append(out.Tools, gopenai.Tool{
			Type:     gopenai.ToolTypeFunction,
			Function: &gopenai.FunctionDefinition{Name: name, Description: t.Description, Parameters: schema},
		})
	}
	return out, nil
}

func message(m *model.Message) gopenai.ChatCompletionMessage {
	out := gopenai.ChatCompletionMessage{Role: string(m.Role), Content: m.Text, Name: m.Name, ToolCallID: m.CallID}
	for _, call := range m.Calls {
		out.ToolCalls = append(out.ToolCalls, gopenai.ToolCall{
			ID: call.ID, Type: gopenai.ToolTypeFunction,
			Function: gopenai.FunctionCall{Name: sendableName(call.Name), Arguments: sendableArgs(call)},
		})
	}
	return out
}

// patch adds to an encoded request what go-openai leaves out: a content key in every message (an empty
// tool result would have none, which endpoints refuse), the cap under the name this model knows, and what
// this endpoint put beside its replies. Another one does not get that, since it may refuse what it does
// not know.
func (c *Client) patch(body []byte, w *written, maxTokens int) ([]byte, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return nil, fmt.Errorf("read back the request: %w", err)
	}
	messages := []map[string]any{}
	if err := json.Unmarshal(top["messages"], &messages); err != nil {
		return nil, fmt.Errorf("read back the messages: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, m := range messages {
		calls := callsOf(m)
		if _, ok := m["content"]; !ok {
			m["content"] = ""
			if calls != nil {
				m["content"] = nil // as OpenAI itself writes it
			}
		}
		from := w.from[i]
		if from == nil || from.Origin != c.origin() {
			continue
		}
		for key, v := range from.Extra {
			if !c.mends.omit[key] {
				m[key] = v
			}
		}
		for j, call := range calls {
			extra := from.Calls[j].Extra
			if function, ok := call["function"].(map[string]any); ok {
				for key, v := range objectOf(extra["function"]) {
					if _, ok := function[key]; !ok {
						function[key] = v
					}
				}
			}
			for key, v := range extra {
				if _, ok := call[key]; !ok && !c.mends.omit[key] {
					call[key] = v
				}
			}
		}
	}
	messages = c.mend(messages)
	if maxTokens > 0 {
		name := cmp.Or(c.mends.renamed, capName(c.o.Model))
		top[name] = json.RawMessage(strconv.Itoa(maxTokens))
		w.fields = append(w.fields, name)
	}
	for key, v := range c.o.Body {
		top[key] = v
		w.fields = append(w.fields, key)
	}
	for key := range c.mends.without {
		if delete(top, key); key == "stream" {
			delete(top, "stream_options")
		}
	}
	c.markCache(top, messages, w)
	var err error
	if top["messages"], err = json.Marshal(slices.Concat([]map[string]any{}, messages)); err != nil {
		return nil, fmt.Errorf("encode the messages: %w", err)
	}
	return json.Marshal(top)
}

func callsOf(m map[string]any) (calls []map[string]any) {
	list, _ := m["tool_calls"].([]any)
	for _, c := range list {
		if call, ok := c.(map[string]any); ok {
			calls = append(calls, call)
		}
	}
	return calls
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
	clean := cmp.Or(quote.Word(name), "unnamed")
	return clean[:min(len(clean), maxNameLength)]
}

func (c *Client) leavesOut(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mends.leftOut[name]
}

// capName is the name of the cap on the reply's tokens. OpenAI's reasoning models take another one than
// the rest. Gateways put the vendor before the name.
func capName(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	reasons := func(family string) bool { return strings.HasPrefix(name, family) }
	if slices.ContainsFunc([]string{"o1", "o3", "o4", "gpt-5", "gpt-6"}, reasons) {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

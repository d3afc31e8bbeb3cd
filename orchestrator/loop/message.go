package loop

import (
	"encoding/json"
	"errors"
	"strings"
)

// message is one chat message, or one item of a conversation, in the forms that recordings
// have: OpenAI's with tool_calls or the older function_call, the items of its responses,
// Anthropic's blocks, Gemini's parts, and parts named toolCall. Ollama's have no ids, and
// arguments that are not text. A message without a role may be one of OpenHands' events, see
// event.
type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Parts     json.RawMessage `json:"parts"`
	ToolCalls []struct {
		ID       string       `json:"id"`
		Function calledByName `json:"function"`
	} `json:"tool_calls"`
	FunctionCall *calledByName `json:"function_call"`
	ToolCallID   string        `json:"tool_call_id"`
	ToolCallID2  string        `json:"toolCallId"`
	ToolName     string        `json:"tool_name"`
	IsError      bool          `json:"isError"`

	// An item is a call, or a call's output.
	Type   string          `json:"type"`
	CallID string          `json:"call_id"`
	Input  json.RawMessage `json:"input"`
	Output json.RawMessage `json:"output"`
	calledByName
}

// calledByName is a called function. In a result it names the call that is answered.
type calledByName struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// contentPart is a part of a message's content: a text, a call, or a result.
type contentPart struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`

	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`

	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

// message records one message. It ignores other values.
func (r *recorder) message(raw json.RawMessage) {
	if r.pair(raw) {
		r.seen++
		return
	}
	var m message
	if !fits(raw, &m) || m.Role == "" && !r.item(m) && !r.event(raw, "") {
		return
	}
	r.seen++
	if m.Role == "assistant" || m.Role == "model" {
		r.step()
	}
	text, parts := content(m.Content)
	for _, c := range m.ToolCalls {
		r.call(c.ID, c.Function.Name, plain(c.Function.Arguments))
	}
	if m.FunctionCall != nil && m.FunctionCall.Name != "" {
		r.call("", m.FunctionCall.Name, plain(m.FunctionCall.Arguments))
	}
	_, more := content(m.Parts)
	for _, p := range append(parts, more...) {
		r.part(p)
	}
	switch m.Role {
	case "tool", "toolResult", "function":
		r.result(r.answered(m.ToolCallID+m.ToolCallID2, m.Name+m.ToolName), text, m.IsError)
	}
}

// fits decodes a JSON text, and reports whether it is one. A field of another type than
// expected stays unchanged.
func fits(raw json.RawMessage, into any) bool {
	err := json.Unmarshal(raw, into)
	var other *json.UnmarshalTypeError
	return err == nil || errors.As(err, &other)
}

// item records an item that is a call or the output of one, and reports whether it is.
func (r *recorder) item(m message) bool {
	switch m.Type {
	case "function_call":
		r.call(m.CallID, m.Name, plain(m.Arguments))
	case "custom_tool_call":
		r.call(m.CallID, m.Name, plain(m.Input))
	case "function_call_output", "custom_tool_call_output":
		r.result(m.CallID, plain(m.Output), false)
	default:
		return false
	}
	return true
}

// part records the call or the result that a part of a message holds.
func (r *recorder) part(p contentPart) {
	switch {
	case p.Type == "toolCall":
		r.call(p.ID, p.Name, plain(p.Arguments))
	case p.Type == "tool_use":
		r.call(p.ID, p.Name, plain(p.Input))
	case p.Type == "tool_result":
		text, _ := content(p.Content)
		r.result(p.ToolUseID, text, p.IsError)
	case p.FunctionCall != nil:
		r.call(p.FunctionCall.ID, p.FunctionCall.Name, plain(p.FunctionCall.Args))
	case p.FunctionResponse != nil:
		var a struct {
			Error json.RawMessage `json:"error"`
		}
		failed := json.Unmarshal(p.FunctionResponse.Response, &a) == nil && len(a.Error) > 0
		r.result(r.answered(p.FunctionResponse.ID, p.FunctionResponse.Name), plain(p.FunctionResponse.Response), failed)
	}
}

// answered returns the id of the call that a result belongs to. If neither has an id, it is
// the first call without one of that name, or of any if the result names none.
func (r *recorder) answered(id, name string) string {
	if id != "" {
		return id
	}
	for _, made := range r.nameless {
		if i, open := r.open[made]; open && (name == "" || r.calls[i].Tool == name) {
			return made
		}
	}
	return ""
}

// plain returns the text of a JSON text, and other values unchanged.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
		return text
	}
	return string(raw)
}

// content reads a message's content: a text, or parts.
func content(raw json.RawMessage) (string, []contentPart) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []contentPart
	if !fits(raw, &parts) {
		return "", nil
	}
	var sb strings.Builder
	for _, p := range parts {
		sb.WriteString(p.Text)
	}
	return sb.String(), parts
}

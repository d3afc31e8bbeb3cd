package loop

import (
	"bytes"
	"encoding/json"
)

// event is one event of OpenHands: an action or an observation. Its runtime names both by a
// text and numbers them; its SDK states the kind of an event, and an action is then the call's
// arguments.
type event struct {
	ID          json.RawMessage `json:"id"`
	Source      string          `json:"source"`
	Action      json.RawMessage `json:"action"`
	Args        json.RawMessage `json:"args"`
	Observation json.RawMessage `json:"observation"`
	Cause       json.RawMessage `json:"cause"`
	Content     json.RawMessage `json:"content"`

	Kind       string `json:"kind"`
	ToolName   string `json:"tool_name"`
	ToolCallID string `json:"tool_call_id"`
	ToolCall   struct {
		Arguments json.RawMessage `json:"arguments"`
	} `json:"tool_call"`
	Error           string `json:"error"`
	RejectionReason string `json:"rejection_reason"`
}

// pair records an action and its observation, as older histories have them, and reports
// whether the text is such a pair. There an action without a source is the agent's.
func (r *recorder) pair(raw json.RawMessage) bool {
	var both []json.RawMessage
	if !bytes.HasPrefix(raw, []byte("[")) || json.Unmarshal(raw, &both) != nil || len(both) != 2 {
		return false
	}
	action, observation := r.event(both[0], "agent"), r.event(both[1], "")
	return action || observation
}

// event records a call or its result, and reports whether the text is an event of the agent's
// work. An event without a source has the one given.
func (r *recorder) event(raw json.RawMessage, source string) bool {
	var e event
	if !bytes.HasPrefix(raw, []byte("{")) || !fits(raw, &e) {
		return false
	}
	if e.Kind != "" {
		return r.eventOfKind(e)
	}
	if e.Source == "" {
		e.Source = source
	}
	switch name := nameOf(e.Action); name {
	case "":
	case "null", "message", "finish", "system", "recall", "change_agent_state": // no calls
		return true
	case "think":
		return r.action(e, name, string(e.Args)) // the thought is its argument
	default:
		return r.action(e, name, without(e.Args, "thought"))
	}
	if name := nameOf(e.Observation); name != "" {
		r.result(r.answered(string(e.Cause), ""), plain(e.Content), name == "error")
		return true
	}
	return false
}

// action records what the agent did. A user's own action is not a call.
func (r *recorder) action(e event, name, args string) bool {
	if e.Source != "agent" {
		return false
	}
	r.call(string(e.ID), name, args)
	return true
}

// eventOfKind is event for those of the SDK.
func (r *recorder) eventOfKind(e event) bool {
	switch e.Kind {
	case "ActionEvent":
		switch {
		case e.ToolName == "finish": // no call
		case bytes.HasPrefix(e.Action, []byte("{")):
			r.call(e.ToolCallID, e.ToolName, without(e.Action, "kind"))
		default: // its arguments could not be read, so it did not run
			r.call(e.ToolCallID, e.ToolName, plain(e.ToolCall.Arguments))
		}
	case "ObservationEvent":
		var o struct {
			Content json.RawMessage `json:"content"`
			IsError bool            `json:"is_error"`
		}
		fits(e.Observation, &o)
		text, _ := content(o.Content)
		if text == "" {
			text = string(e.Observation)
		}
		r.result(r.answered(e.ToolCallID, e.ToolName), text, o.IsError)
	case "AgentErrorEvent":
		r.result(r.answered(e.ToolCallID, e.ToolName), e.Error, true)
	case "UserRejectObservation":
		r.result(r.answered(e.ToolCallID, e.ToolName), e.RejectionReason, true)
	case "MessageEvent", "SystemPromptEvent":
	default:
		return false
	}
	return true
}

// nameOf returns the text that names an action or an observation; empty for other values.
func nameOf(raw json.RawMessage) string {
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return ""
	}
	return name
}

// without returns a JSON object without one field; other values unchanged.
func without(raw json.RawMessage, field string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return string(raw)
	}
	delete(fields, field)
	data, err := json.Marshal(fields)
	if err != nil {
		return string(raw)
	}
	return string(data)
}

package beside

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/sessions"
)

// The events of all agents are recorded in the form of Claude Code's. Codex, Kimi Code
// and this program's plugin of opencode use its names. Gemini CLI has names of its own.
var geminiEvents = map[string]string{
	"BeforeAgent": "UserPromptSubmit", "AfterAgent": "Stop", "BeforeTool": "PreToolUse", "AfterTool": "PostToolUse",
}

// contextual lists the events whose reply can add to the agent's context.
var contextual = map[sessions.Agent][]string{
	sessions.Claude: {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
		"PostToolBatch"},
	sessions.Codex:    {"SessionStart", "UserPromptSubmit", "PostToolUse"},
	sessions.OpenCode: {"UserPromptSubmit", "PostToolUse", "PostToolUseFailure"},
	sessions.Gemini:   {"SessionStart", "UserPromptSubmit", "PostToolUse"},
	sessions.Kimi:     {"UserPromptSubmit"},
	ACP:               {"UserPromptSubmit"},
}

// ACP is the origin of sessions that were recorded between an editor and its agent.
const ACP sessions.Agent = "acp"

// Recorded reports whether events of an agent can be recorded.
func Recorded(agent sessions.Agent) bool { return len(contextual[agent]) > 0 }

// foreign holds the fields that some agents send in another form.
type foreign struct {
	Prompt         json.RawMessage `json:"prompt"`
	PromptResponse string          `json:"prompt_response"` // Gemini CLI
	Timestamp      string          `json:"timestamp"`       // Gemini CLI
	ToolCallID     string          `json:"tool_call_id"`    // Kimi Code
	ToolOutput     json.RawMessage `json:"tool_output"`     // Kimi Code
	Error          json.RawMessage `json:"error"`
}

// decodeEvent reads an event in an agent's own form. Another version of the agent may fill a field
// differently: that one is left out and named in event.Odd. The event is never nil.
func decodeEvent(agent sessions.Agent, data []byte) (*event, error) {
	e := &event{Agent: agent}
	decode := func(data []byte, v any) error {
		err := json.Unmarshal(data, v)
		if odd, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // the other fields are filled
			e.Odd, err = fmt.Sprintf("%s, which is a JSON %s", odd.Field, odd.Value), nil
		}
		return err
	}
	var f foreign
	if agent == sessions.Gemini || agent == sessions.Kimi {
		if err := decode(data, &f); err != nil {
			return e, err
		}
		var rest map[string]json.RawMessage
		if err := decode(data, &rest); err != nil {
			return e, err
		}
		delete(rest, "prompt")
		delete(rest, "error")
		data, _ = json.Marshal(rest) // decoded from JSON
	}
	if err := decode(data, e); err != nil {
		return e, err
	}
	if e.SessionID == "" {
		return e, errors.New("it names no session")
	}
	e.Native = e.Name
	switch agent {
	case sessions.Gemini:
		e.Name = cmp.Or(geminiEvents[e.Name], e.Name)
		e.Prompt, e.LastAnswer = sessions.WithoutOwn(sessions.Text(f.Prompt)), f.PromptResponse
		if e.ToolName != "" {
			e.ToolUseID = geminiCall(e) + "_" + strings.Map(digits, f.Timestamp)
		}
	case sessions.Kimi:
		e.Prompt, e.ToolUseID, e.ToolResponse = sessions.WithoutOwn(sessions.Text(f.Prompt)), f.ToolCallID, f.ToolOutput
		var failed struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(f.Error, &failed) == nil {
			e.Error = failed.Message
		}
	}
	return e, nil
}

func digits(r rune) rune {
	if r < '0' || r > '9' {
		return -1
	}
	return r
}

// geminiCall names a call of Gemini CLI, whose hooks have no ids, by its tool and
// arguments.
func geminiCall(e *event) string {
	sum := sha256.Sum256([]byte(e.ToolName + "\x00" + string(e.ToolInput)))
	return "gemini_" + hex.EncodeToString(sum[:6])
}

// match sets the id of a result of Gemini CLI, whose hooks have none, to that of the oldest
// open call with the same tool and arguments.
func (e *event) match(open []op.Call) {
	if e.Agent != sessions.Gemini || e.Name != "PostToolUse" {
		return
	}
	if i := slices.IndexFunc(open, func(c op.Call) bool { return strings.HasPrefix(c.ID, geminiCall(e)+"_") }); i >= 0 {
		e.ToolUseID = open[i].ID
	}
}

// reply returns the hook's output that adds a text to the agent's context.
func (e *event) reply(text string) []byte {
	if e.Agent == sessions.Kimi {
		return []byte("<anamnesis>\n" + text + "\n</anamnesis>") // it passes standard output to the model unchanged
	}
	out := map[string]any{"hookSpecificOutput": map[string]string{"hookEventName": e.Native, "additionalContext": text}}
	data, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	return data
}

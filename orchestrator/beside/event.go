package beside

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/sessions"
)

// event is what a hook is given on standard input, in the form of Claude Code.
type event struct {
	Agent          sessions.Agent  `json:"-"`
	SessionID      string          `json:"session_id"`
	TranscriptPath string          `json:"transcript_path"`
	Name           string          `json:"hook_event_name"`
	Native         string          `json:"-"`      // the agent's name for it
	Source         string          `json:"source"` // of SessionStart: "compact" after a compaction
	PermissionMode string          `json:"permission_mode"`
	Model          string          `json:"model"`
	Prompt         string          `json:"prompt"`
	ToolName       string          `json:"tool_name"`
	ToolInput      json.RawMessage `json:"tool_input"`
	ToolUseID      string          `json:"tool_use_id"`
	ToolResponse   json.RawMessage `json:"tool_response"`
	Error          string          `json:"error"`
	Writes         bool            `json:"writes,omitempty"`  // the call may change the directory
	Running        bool            `json:"running,omitempty"` // the call may have changed it already
	Refused        bool            `json:"refused,omitempty"` // a user or a rule said no: nothing ran
	LastAnswer     string          `json:"last_assistant_message"`
	Odd            string          `json:"-"` // a field that was left out, and why
	ToolCalls      []struct {
		ToolName     string          `json:"tool_name"`
		ToolInput    json.RawMessage `json:"tool_input"`
		ToolUseID    string          `json:"tool_use_id"`
		ToolResponse json.RawMessage `json:"tool_response"`
	} `json:"tool_calls"` // of PostToolBatch
}

// call is the call of an event in our own form; nil where there is none, or it is one
// of this program's own tools.
func (e *event) call(dir string) *sessions.Call {
	if e.ToolName == "" || e.ToolUseID == "" || sessions.IsOwnTool(e.ToolName) {
		return nil
	}
	c := &sessions.Call{ID: e.ToolUseID, Tool: e.ToolName, Args: string(e.ToolInput)}
	e.result(c)
	c.Normalise(dir)
	return c
}

var exitLine = regexp.MustCompile(`^Exit code (\d+)\n?`)

func (e *event) result(c *sessions.Call) {
	exit := func(n int) { c.Exit = &n }
	switch e.Name {
	case "PostToolUseFailure":
		if e.Agent == sessions.Kimi {
			c.KimiFailed(e.Error)
			return
		}
		c.Done, c.Failed, c.Refused, c.Text = true, true, e.Refused, e.Error
	case "PostToolUse":
		if e.Agent == sessions.Gemini {
			c.GeminiResponse(e.ToolResponse)
			return
		}
		c.Done = true
		c.Text, c.Failed = sessions.ResultText(e.ToolResponse)
		if e.Agent == sessions.Kimi && op.Acts(c.Tool) == op.RunsShell || sessions.ExitedZero(e.ToolResponse) {
			exit(0)
		}
		if e.Agent == sessions.Codex && op.Acts(c.Tool) == op.RunsShell {
			if n, ok := transcriptExit(e.TranscriptPath, e.ToolUseID); ok {
				exit(n)
				c.Failed = n != 0
			}
		}
	}
	if m := exitLine.FindStringSubmatch(c.Text); c.Failed && m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			exit(n)
			c.Text = c.Text[len(m[0]):]
		}
	}
}

const (
	// transcriptTail is how much of a transcript's end is searched.
	transcriptTail = 1 << 20
	// modelTail is how much of it is searched for the model, with each event. A result that is larger
	// hides the model until the next reply.
	modelTail = 256 << 10
)

// model returns the model that the session uses: the one that the event names, or that the end of the
// transcript does. Claude Code and Gemini CLI name it nowhere else. Empty: not known.
func (e *event) model() string {
	if e.Model != "" || e.TranscriptPath == "" {
		return e.Model
	}
	data, err := durable.ReadTail(e.TranscriptPath, modelTail)
	if err != nil {
		return "" // a session without a reply has no file yet
	}
	return sessions.ModelIn(data)
}

// rollout is what a line of Codex's rollout says of a call.
type rollout struct {
	Payload struct {
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
		Item   struct {
			ID       string `json:"id"`
			ExitCode *int   `json:"exit_code"`
		} `json:"item"`
	} `json:"payload"`
}

// inTranscript looks for a line about a call at the end of a rollout.
func inTranscript(path, call string, fits func(*rollout) bool) bool {
	data, err := durable.ReadTail(path, transcriptTail)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(data) {
		var l rollout
		if bytes.Contains(line, []byte(call)) && json.Unmarshal(line, &l) == nil && fits(&l) {
			return true
		}
	}
	return false
}

// transcriptExit returns the exit code of a call from Codex's rollout. Codex does not pass
// it to hooks.
func transcriptExit(path, call string) (exit int, ok bool) {
	ok = inTranscript(path, call, func(l *rollout) bool {
		if l.Payload.Item.ID != call || l.Payload.Item.ExitCode == nil {
			return false
		}
		exit = *l.Payload.Item.ExitCode
		return true
	})
	return exit, ok
}

// transcriptOutput returns, from Codex's rollout, the result of a call after which Codex ran
// no hook: a rejected call, or a patch.
func transcriptOutput(path string, c op.Call) (done *sessions.Call, ok bool) {
	done = &sessions.Call{ID: c.ID, Tool: c.Name, Args: c.Args}
	ok = inTranscript(path, c.ID, func(l *rollout) bool {
		if l.Payload.CallID != c.ID || l.Payload.Output == nil {
			return false
		}
		done.CodexOutput(l.Payload.Output)
		return true
	})
	return done, ok
}

func writes(c *sessions.Call) bool {
	return op.Acts(c.Tool) == op.RunsShell || len(c.Writes) > 0 || c.Network
}

func callOf(c *sessions.Call, writes bool) runtime.OutsideCall {
	return runtime.OutsideCall{Call: op.Call{ID: c.ID, Name: c.Tool, Args: c.Args}, Writes: writes}
}

const maxEventBytes = 32 << 20

// head is what a hook reads of an event.
type head struct {
	SessionID string `json:"session_id"`
	Cwd       string `json:"cwd"`
	Name      string `json:"hook_event_name"`
}

// readEvent reads an event from a hook's standard input.
func readEvent(in io.Reader) (data []byte, of head, err error) {
	if data, err = io.ReadAll(io.LimitReader(in, maxEventBytes)); err != nil {
		return nil, of, err
	}
	if err := json.Unmarshal(data, &of); err != nil {
		return data, head{}, err
	}
	if of.SessionID == "" || of.Name == "" || of.Cwd == "" {
		return data, of, errors.New("it names no session, event or directory")
	}
	return data, of, nil
}

// contextCut is the event by which the plugin of opencode asks which calls a jump has
// left. It is answered and not recorded.
const contextCut = "ContextCut"

// missingField names the field that an event of its name has in the known versions of the agent, and this one
// does not; empty: none.
func (e *event) missingField() string {
	id, response := "tool_use_id", "tool_response"
	if e.Agent == sessions.Kimi {
		id, response = "tool_call_id", "tool_output"
	}
	switch e.Name {
	case "UserPromptSubmit":
		if e.Prompt == "" {
			return "prompt"
		}
	case "PreToolUse", "PostToolUse", "PostToolUseFailure":
		switch {
		case e.ToolName == "":
			return "tool_name"
		case len(e.ToolInput) == 0:
			return "tool_input"
		case e.ToolUseID == "":
			return id
		case e.Name == "PostToolUse" && len(e.ToolResponse) == 0:
			return response
		}
	case "PostToolBatch":
		if len(e.ToolCalls) == 0 {
			return "tool_calls"
		}
	}
	return ""
}

// Package continuation finds the point in a session of Claude Code at which a copy of it
// continues after a jump.
package continuation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

// Point is where a Claude Code session continues after a jump.
type Point struct {
	Session string // its id
	Copy    string // the id of the copy in which it continues
	Message string // the agent's last message in the copy
	Dir     string // the session's directory
}

// Commands returns two command lines. Claude Code cuts a session only in print mode: the
// first makes the copy, with the prompt as its next message, and the second opens it.
func (p Point) Commands(prompt string) (copies, opens []string) {
	prompt += "\n\nCall no tool now. Reply in one line what you will do next."
	return []string{
			"claude", "-p", "--resume", p.Session, "--resume-session-at", p.Message, "--fork-session", "--session-id",
			p.Copy, prompt,
		},
		[]string{"claude", "--resume", p.Copy}
}

// entry is a line of Claude Code's session file.
type entry struct {
	Type        string `json:"type"`
	UUID        string `json:"uuid"`
	Cwd         string `json:"cwd"`
	IsSidechain bool   `json:"isSidechain"`
	Message     struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// calls returns the ids of the calls that a message makes, and of those whose results it holds.
func (e *entry) calls() (begun, returned []string) {
	var blocks []struct {
		ID        string `json:"id"`
		ToolUseID string `json:"tool_use_id"`
	}
	if json.Unmarshal(e.Message.Content, &blocks) != nil {
		return nil, nil // a text
	}
	for _, b := range blocks {
		if b.ID != "" {
			begun = append(begun, b.ID)
		}
		if b.ToolUseID != "" {
			returned = append(returned, b.ToolUseID)
		}
	}
	return begun, returned
}

// At returns the point at which a Claude Code session continues from the end of a step.
func At(svc *session.Service, task string, step int, getenv func(string) string) (p Point, err error) {
	st, err := svc.State(task)
	if err != nil {
		return p, err
	}
	o := st.Opened.Origin
	if o == nil || o.Agent != string(sessions.Claude) {
		return p, remedy.With(session.Usagef("task %s: only a session of Claude Code can be continued at a step", task),
			remedy.JumpAlone, "")
	}
	ids, err := callsOf(svc, task)
	if err != nil {
		return p, err
	}
	for step > 0 && len(ids[step]) == 0 && step < st.Steps.Len() { // a step without calls follows those before it
		step = st.Steps.At(step).Parent
	}
	if len(ids[step]) == 0 {
		return p, remedy.With(session.Usagef("task %s: no call of the agent comes before this step; start claude again",
			task), remedy.JumpAlone, "")
	}
	files, err := sessions.Find(sessions.Claude, getenv("HOME"), getenv)
	if err != nil {
		return p, err
	}
	i := slices.IndexFunc(files,
		func(f string) bool { return strings.TrimSuffix(filepath.Base(f), ".jsonl") == o.Session })
	if i < 0 {
		return p, remedy.With(session.Usagef("task %s: the file of session %s is not among those of Claude Code", task,
			o.Session), remedy.JumpAlone, "")
	}
	data, err := os.ReadFile(files[i])
	if err != nil {
		return p, err
	}
	p.Session, p.Copy = o.Session, uuid.NewString()
	p.Message, p.Dir = lastMessage(data, ids[step])
	p.Dir = cmp.Or(p.Dir, st.Opened.Dir) // not every version of Claude Code writes it into the file
	if p.Message == "" {
		return p, remedy.With(fmt.Errorf("%s does not have the calls of step %d", files[i], step), remedy.JumpAlone, "")
	}
	return p, nil
}

func callsOf(svc *session.Service, task string) (map[int][]string, error) {
	ids, open := map[int][]string{}, []string(nil)
	err := svc.Ops(task, 0, func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.ToolReturned:
			open = append(open, b.Call)
		case *op.WorldSaved:
			ids[o.Step], open = open, nil
		}
		return nil
	})
	return ids, err
}

// lastMessage returns the id of the agent's last message about the results of some calls,
// before its next call or the user's next words. If it said nothing about them, that is the
// message that made the calls. dir is the session's directory, empty if the file does not name it.
func lastMessage(data []byte, calls []string) (message, dir string) {
	own := func(ids []string) bool {
		return slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(calls, id) })
	}
	ended := true
	for line := range bytes.Lines(data) {
		var e entry
		if json.Unmarshal(line, &e) != nil || e.IsSidechain || e.Type != "assistant" && e.Type != "user" {
			continue
		}
		dir = cmp.Or(dir, e.Cwd)
		begun, returned := e.calls()
		switch {
		case own(begun):
			message, ended = e.UUID, false
		case own(returned):
			ended = false
		case ended:
		case len(begun) > 0 || e.Type == "user" && len(returned) == 0:
			ended = true
		case e.Type == "assistant":
			message = e.UUID
		}
	}
	return message, dir
}

package mcpserver

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/names"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// taskUse says what a call does with the task that it is about.
type taskUse bool

const (
	reading  taskUse = false
	changing taskUse = true
)

// find returns the task that a call is about: the one it names, if only by a beginning; the
// session whose id the client sends, or whose environment the server was started with; if
// there is no such id, the only live session of the directory. A call that changes nothing may
// also be about the only session that worked there. Otherwise the error lists the tasks.
func (s *Server) find(req *mcp.CallToolRequest, task string, use taskUse) (*state.State, error) {
	var err error
	if task == "" {
		task, err = s.ownTask(req, use)
	} else {
		task, err = names.Task(s.svc.Home, task)
	}
	if err != nil {
		return nil, err
	}
	return s.svc.State(task)
}

// codexTurn is what Codex says of the turn that a call belongs to; nil from another client.
func codexTurn(req *mcp.CallToolRequest) map[string]any {
	turn, _ := req.Params.Meta["x-codex-turn-metadata"].(map[string]any)
	return turn
}

func (s *Server) ownTask(req *mcp.CallToolRequest, use taskUse) (string, error) {
	agent, id := sessions.Claude, s.getenv("CLAUDE_CODE_SESSION_ID")
	if own, ok := codexTurn(req)["session_id"].(string); ok {
		agent, id = sessions.Codex, own
	}
	for _, task := range []string{beside.RecordedIn(s.svc.Home, agent, id, s.dir), beside.TaskOf(agent, id)} {
		if s.svc.Home.HasTask(task) {
			return task, nil
		}
	}
	all, err := s.svc.Tasks()
	if err != nil {
		return "", err
	}
	var here, live []taskdir.Summary
	for _, t := range all {
		if t.Imported || t.Parent != "" || t.Dir == "" || t.Dir != s.dir &&
			!strings.HasPrefix(s.dir, t.Dir+string(filepath.Separator)) {
			continue
		}
		here = append(here, t)
		if id != "" && t.Agent != string(beside.ACP) {
			continue // the client sent the id of another session; a proxy may have recorded an editor's id
		}
		if t.PID != 0 || t.Agent != "" && t.State == "interrupted" {
			live = append(live, t)
		}
	}
	switch {
	case len(live) == 1:
		return live[0].ID, nil
	case len(live) == 0 && len(here) == 1 && id == "" && use == reading:
		return here[0].ID, nil
	}
	if len(here) == 0 {
		return "", fmt.Errorf("no session is recorded in %s; name one with task", s.dir)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "this session is not recorded, or it is not known which it is; name one of %s with task:", s.dir)
	for _, t := range here[max(0, len(here)-20):] {
		fmt.Fprintf(&b, "\n  %s (%s, %s): %.60s", t.ID, t.State, quote.Number(t.Steps, "step"), t.Request)
	}
	return "", fmt.Errorf("%s", b.String())
}

package mcpserver

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/cmd/internal/names"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// find returns the task that a call is about: the one it names, if only by a beginning; the session whose id
// the client sends, or whose environment the server was started with; or the only live
// one of the directory. It never guesses: otherwise the error lists the tasks.
func (s *Server) find(req *mcp.CallToolRequest, task string) (*state.State, error) {
	var err error
	if task == "" {
		task, err = s.ownTask(req)
	} else {
		task, err = names.Task(s.svc.Home, task)
	}
	if err != nil {
		return nil, err
	}
	return s.svc.State(task)
}

func (s *Server) ownTask(req *mcp.CallToolRequest) (string, error) {
	if id := s.getenv("CLAUDE_CODE_SESSION_ID"); id != "" {
		if task := beside.TaskOf(sessions.Claude, id); s.svc.Home.HasTask(task) {
			return task, nil
		}
	}
	if turn, ok := req.Params.Meta["x-codex-turn-metadata"].(map[string]any); ok {
		if id, ok := turn["session_id"].(string); ok {
			if task := beside.TaskOf(sessions.Codex, id); s.svc.Home.HasTask(task) {
				return task, nil
			}
		}
	}
	all, err := s.svc.Tasks()
	if err != nil {
		return "", err
	}
	var here, live []taskdir.Summary
	for _, t := range all {
		if t.Imported || t.Parent != "" || t.Dir == "" || t.Dir != s.dir && !strings.HasPrefix(s.dir, t.Dir+string(filepath.Separator)) {
			continue
		}
		here = append(here, t)
		if t.State == "running" || t.Agent != "" && t.State == "interrupted" {
			live = append(live, t)
		}
	}
	switch {
	case len(live) == 1:
		return live[0].ID, nil
	case len(live) == 0 && len(here) == 1:
		return here[0].ID, nil
	case len(here) == 0:
		return "", fmt.Errorf("no session is recorded in %s; name one with task", s.dir)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d sessions worked in %s; name one with task:", len(here), s.dir)
	for _, t := range here[max(0, len(here)-20):] {
		fmt.Fprintf(&b, "\n  %s (%s, %d steps): %.60s", t.ID, t.State, t.Steps, t.Request)
	}
	return "", fmt.Errorf("%s", b.String())
}

package notice

import (
	"fmt"

	"anamnesis/orchestrator/model"
)

// ToolChanges lists which tools were added, removed or described differently.
func ToolChanges(before, after []model.ToolSpec) []string {
	old := make(map[string]model.ToolSpec, len(before))
	for _, s := range before {
		old[s.Name] = s
	}
	var added, changed, gone []string
	for _, s := range after {
		was, known := old[s.Name]
		switch {
		case !known:
			added = append(added, s.Name)
		case was.Description != s.Description || string(was.Schema) != string(s.Schema):
			changed = append(changed, s.Name)
		}
		delete(old, s.Name)
	}
	for _, s := range before {
		if _, left := old[s.Name]; left {
			gone = append(gone, s.Name)
		}
	}
	var lines []string
	for _, l := range []struct {
		lead  string
		names []string
	}{{"New tools", added}, {"Tools with another description", changed}, {"Tools that are gone", gone}} {
		if len(l.names) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s.", l.lead, List(l.names, len(l.names))))
		}
	}
	return lines
}

// Package builtin lists the built-in tools.
package builtin

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/tool/plan"
	"anamnesis/orchestrator/tool/search"
	"anamnesis/orchestrator/tool/shell"
	"anamnesis/orchestrator/tool/subagent"
	"anamnesis/orchestrator/tool/timeline"
	"anamnesis/orchestrator/tool/web"
)

// Options configure the tools, one section a package; zero values mean the defaults.
type Options struct {
	Shell  shell.Options
	File   file.Options
	Search search.Options
	Web    web.Options
	// Agents are those that work can be handed to; without any there is no Task.
	Agents []subagent.Agent
}

// Tools lists every built-in tool, in the order the model is offered them.
func Tools(o *Options) []tool.Tool {
	var v Options
	if o != nil {
		v = *o
	}
	tools := []tool.Tool{
		shell.Bash(&v.Shell),
		shell.TaskList(),
		shell.TaskOutput(),
		shell.TaskStop(),
		file.ReadFile(&v.File),
		file.WriteFile(&v.File),
		file.StrReplaceFile(&v.File),
		file.PatchFile(&v.File),
		search.Glob(&v.Search),
		search.Grep(&v.Search),
		web.FetchURL(&v.Web),
		plan.Think(),
		plan.SetTodoList(),
		plan.AskUser(),
		timeline.JumpToStep(),
		timeline.Recall(),
		timeline.Investigate(),
	}
	if s, ok := web.SearchWeb(&v.Web); ok {
		tools = append(tools, s)
	}
	if len(v.Agents) > 0 {
		tools = append(tools, subagent.Task(v.Agents))
	}
	return tools
}

// asked are the tools that an agent has only if its spec names them.
func asked() []tool.Tool { return []tool.Tool{timeline.SendDMail(), timeline.DMail()} }

// OptInNames lists the names of the opt-in tools.
func OptInNames() []string { return names(asked()) }

// Names lists all built-in tools, in any configuration.
func Names() []string {
	return slices.Concat(names(Tools(nil)), []string{web.SearchName}, OptInNames())
}

func names(tools []tool.Tool) []string {
	var out []string
	for _, t := range tools {
		out = append(out, t.Spec().Name)
	}
	return out
}

// OptIn returns the opt-in tools of some names. An unknown name is an error that lists the
// known ones.
func OptIn(names ...string) ([]tool.Tool, error) {
	all := asked()
	var out []tool.Tool
	for _, name := range names {
		var known []string
		found := false
		for _, t := range all {
			known = append(known, t.Spec().Name)
			if t.Spec().Name == name {
				found = true
				if !slices.Contains(out, t) { // named twice
					out = append(out, t)
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("no tool %q to be asked for: there are %s", name, strings.Join(known, ", "))
		}
	}
	return out, nil
}

// Package builtin lists the tools that come with the program.
package builtin

import (
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/tool/plan"
	"anamnesis/orchestrator/tool/search"
	"anamnesis/orchestrator/tool/shell"
	"anamnesis/orchestrator/tool/timeline"
)

// Options configure the tools, each room by its own section; zero values mean
// the defaults.
type Options struct {
	Shell  shell.Options
	File   file.Options
	Search search.Options
}

// Tools lists every built-in tool, in the order the model is offered them.
func Tools(o *Options) []tool.Tool {
	var v Options
	if o != nil {
		v = *o
	}
	return []tool.Tool{
		shell.Bash(&v.Shell),
		file.ReadFile(&v.File),
		file.WriteFile(&v.File),
		file.StrReplaceFile(&v.File),
		search.Glob(&v.Search),
		search.Grep(&v.Search),
		plan.Think(),
		timeline.JumpToStep(),
		timeline.Recall(),
	}
}

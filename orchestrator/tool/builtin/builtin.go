// Package builtin lists the built-in tools.
package builtin

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/orchestrator/feature/jobs"
	"anamnesis/orchestrator/feature/mail"
	"anamnesis/orchestrator/feature/research"
	"anamnesis/orchestrator/feature/todo"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/tool/plan"
	"anamnesis/orchestrator/tool/search"
	"anamnesis/orchestrator/tool/shell"
	"anamnesis/orchestrator/tool/timeline"
	"anamnesis/orchestrator/tool/web"
)

// Options configure the tools, one section a package; zero values mean the defaults.
type Options struct {
	// AllowSecrets are doublestar patterns over paths relative to the world: files that look
	// like secrets and may be read.
	AllowSecrets []string
	Web          web.Options
}

// Tools lists every built-in tool, in the order the model is offered them.
func Tools(o Options) []tool.Tool {
	tools := append([]tool.Tool{shell.Bash()}, jobs.Tools(nil)...)
	tools = append(tools,
		file.ReadFile(o.AllowSecrets),
		file.WriteFile(),
		file.StrReplaceFile(),
		file.PatchFile(o.AllowSecrets),
		search.Glob(),
		search.Grep(o.AllowSecrets),
		web.FetchURL(o.Web),
		plan.Think(),
		todo.Tool(nil),
		plan.AskUser(),
		timeline.JumpToStep(),
		timeline.Recall(),
		research.Tool(nil),
	)
	if s, ok := web.SearchWeb(o.Web); ok {
		tools = append(tools, s)
	}
	return tools
}

// asked are the tools that an agent has only if its spec names them.
func asked() []tool.Tool { return mail.Tools(nil) }

// OptInNames lists the names of the opt-in tools.
func OptInNames() []string { return names(asked()) }

// Names lists all built-in tools, in any configuration.
func Names() []string {
	return slices.Concat(names(Tools(Options{})), []string{web.SearchName}, OptInNames())
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
		i := slices.IndexFunc(all, func(t tool.Tool) bool { return t.Spec().Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no tool %q to be asked for: there are %s", name, strings.Join(OptInNames(), ", "))
		}
		if !slices.Contains(out, all[i]) { // named twice
			out = append(out, all[i])
		}
	}
	return out, nil
}

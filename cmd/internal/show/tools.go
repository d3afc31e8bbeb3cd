//go:build unix

package show

import (
	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool/mcp"
	"maps"
	"slices"
	"strings"
)

func (o *Printer) ServerReport(s mcp.Server, r mcp.Report) {
	info := r.Info
	if info == "" {
		info = "a server that does not name itself"
	}
	o.Printf("%s: %s, %d tool(s)\n", s.Name, view.Clean(info), len(r.Tools))
	for _, t := range r.Tools {
		o.Println(view.Clean(t.String()))
	}
}

// Granted says what was granted, at the end of a line of a list.
func Granted(g *guard.Grants) string {
	if g == nil || len(g.Lines()) == 0 {
		return ""
	}
	return "  (granted: " + strings.Join(g.Lines(), "; ") + ")"
}

// Agent is a resolved spec.
type Agent struct {
	op.Agent
	Scope    string   `json:"scope"`
	Approved bool     `json:"approved"`
	Offered  []string `json:"offered"` // of the program's own tools
}

// Agent prints a spec in the form of its file.
func (o *Printer) Agent(s *Agent) {
	line := func(key string, values ...string) {
		if text := strings.Join(values, ", "); text != "" {
			o.Printf("%-14s %s\n", key, view.Clean(text))
		}
	}
	from := s.From + " (" + s.Scope
	if !s.Approved {
		from += ", not approved: 'anamnesis agent approve " + s.Name + "'"
	}
	line("name", s.Name)
	line("description", s.Description)
	line("from", from+")")
	line("hash", s.Hash)
	line("model", s.Model)
	line("tools", s.Tools...)
	line("exclude_tools", s.ExcludeTools...)
	if s.ReadOnly {
		line("read_only", "true")
	}
	line("offered", s.Offered...)
	line("approval", s.Approval)
	line("sandbox", s.Sandbox)
	for _, p := range s.Guarded {
		line("guarded", strings.TrimSuffix(p.Tool+":"+p.Command, ":"))
	}
	line("allow", s.Allow...)
	line("ask", s.Ask...)
	line("deny", s.Deny...)
	for i := range s.Subagents {
		sub := &s.Subagents[i]
		line("subagent", sub.Name+": "+sub.Description)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Args)) {
		line("argument", name+": "+s.Args[name])
	}
	o.Printf("system_prompt\n\n%s\n", view.Clean(strings.TrimSpace(s.Prompt)))
}

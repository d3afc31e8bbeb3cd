//go:build unix

package show

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/settings"
	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/tool/mcp"
)

func (o *Printer) ServerReport(s mcp.Server, r mcp.Report) {
	info := cmp.Or(r.Info, "a server that does not name itself")
	o.Printf("%s: %s, %s\n", s.Name, view.Clean(info), quote.Number(len(r.Tools), "tool"))
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

func (o *Printer) Agents(listed []session.ListedAgent) {
	for _, l := range listed {
		about := l.Description
		switch {
		case l.Error != "":
			about = "(no agent: " + l.Error + ")"
		case !l.Approved:
			about = "(not approved: 'anamnesis agent approve " + l.Name + "')"
		}
		o.Println(view.Line(fmt.Sprintf("%-16s %-8s %s", l.Name, l.Scope, about), o.Width))
	}
}

func (o *Printer) Servers(entries []session.ListedServer) {
	for _, e := range entries {
		state := ""
		switch {
		case e.Error != "":
			state = "  (no server: " + e.Error + ")"
		case e.Disabled:
			state = "  (disabled)"
		case !e.Approved:
			state = "  (not approved: 'anamnesis mcp approve " + e.Name + "')"
		default:
			state = Granted(e.Grants)
			if e.Cwd == mcp.CwdProject {
				state = "  (cwd: project: runs the project's code, outside the sandbox)"
			} else if e.Cwd != "" {
				state = "  (cwd: " + e.Cwd + ")"
			}
		}
		o.Println(view.Line(fmt.Sprintf("%-16s %-8s %s%s", e.Name, e.Scope, e.How, state), o.Width))
	}
}

func (o *Printer) Settings(set *settings.Settings) {
	for _, v := range set.Values {
		o.Printf("%-14s %-28s %s\n", v.Key, view.Line(cmp.Or(v.Text, "-"), 200), view.Clean(v.Origin))
		if v.Bounded {
			o.Printf("%-14s (not approved: does not count above the model's own value)\n", "")
		}
		if v.Ignored != "" {
			o.Printf("%-14s (%s says %s: not approved, does not count)\n", "", view.Clean(set.File),
				view.Line(v.Ignored, 200))
		}
	}
	o.Printf("\nyour file: %s\n", set.UserFile)
}

func (o *Printer) Rule(r session.ListedRule) {
	note := ""
	if !r.Counts {
		note = " (not approved: does not count)"
	}
	if r.ID != "" {
		note = " (always: 'anamnesis rules revoke " + r.ID + "' takes it back)"
	}
	o.Printf("%-5s %s  %s%s\n", r.Verdict, view.Clean(r.Rule), view.Clean(r.From), note)
}

// Package research holds back calls about something new, such as a package, a host or a model's
// name, until the agent has looked it up and recorded its findings with the tool investigate.
package research

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard/research"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/toolset"
	"anamnesis/orchestrator/workspace"
)

// Limits of searches for research.
const (
	maxLookedBack = 256 // operations before a result, for its call; and before now, for results to cite
	maxCitable    = 5   // results named as such
)

// Guard compares calls with what a task has researched.
type Guard struct {
	place      *workspace.Place
	tools      *toolset.Set
	knownModel func(name string) bool
}

// New returns the guard of a task in a place. knownModel reports whether a model needs no research
// before its name is used; nil: none does without.
func New(p *workspace.Place, tools *toolset.Set, knownModel func(name string) bool) *Guard {
	return &Guard{place: p, tools: tools, knownModel: knownModel}
}

// Check refuses a call about subjects that were not researched. Without the tool that records
// research no call is refused.
func (g *Guard) Check(_ context.Context, c *gate.Call) ([]op.Body, error) {
	if g.place.State().Opened.NoResearch {
		return nil, nil
	}
	if _, ok := g.tools.Registry.Spec(toolName); !ok {
		return nil, nil
	}
	rules := research.Rules{KnownHost: g.knowsHost, KnownModel: g.knowsModel, Listed: g.lists}
	for _, p := range g.place.State().Opened.Guarded {
		rules.Patterns = append(rules.Patterns, loop.Pattern{Tool: p.Tool, Command: p.Command})
	}
	now := g.researchNow()
	allowed := &op.ApprovalDecided{Call: c.ID, Decision: "allow", By: state.ByResearchGuard}
	refused := &op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: state.ByResearchGuard}
	var missing []research.Subject
	for _, s := range rules.Subjects(c.Name, c.Args) {
		if seq := now.Record(s); seq > 0 {
			allowed.Subjects, allowed.Research = append(allowed.Subjects, s.ID), append(allowed.Research, seq)
			continue
		}
		missing, refused.Subjects = append(missing, s), append(refused.Subjects, s.ID)
	}
	if len(missing) > 0 {
		return c.Refuse(g.refusal(c.Name, missing), refused), nil
	}
	if len(allowed.Subjects) > 0 {
		c.Record = append(c.Record, allowed)
	}
	return nil, nil
}

// researchNow returns what was researched so far, including by the calls of this reply.
func (g *Guard) researchNow() state.Research {
	var r state.Research
	g.place.Journal.ReadQueue(func(queue []op.Op) {
		r.Done = maps.Clone(g.place.State().Research.Done)
		for _, o := range queue {
			r.Fold(o)
		}
	})
	return r
}

// knowsHost reports whether the user or the world names a host.
func (g *Guard) knowsHost(host string) bool {
	return g.place.State().Research.Hosts[host] || g.worldNames(host)
}

// knowsModel reports whether the EAS table has a model, or the world names it.
func (g *Guard) knowsModel(name string) bool {
	return name == g.place.State().Model.Name || g.knownModel != nil && g.knownModel(name) || g.worldNames(name)
}

// lists reports whether the world's files list a package.
func (g *Guard) lists(kind, name string) bool {
	root, err := g.place.Root()
	return err == nil && kind == "npm" && listsPackage(root, name)
}

func (g *Guard) worldNames(text string) bool {
	root, err := g.place.Root()
	return err == nil && treeNames(root.FS(), text)
}

// refusal returns the result of a call that lacks research: what to research, and how.
func (g *Guard) refusal(name string, missing []research.Subject) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s was not run: research first. This call is about something new to this task:", name)
	for _, s := range missing {
		fmt.Fprintf(&sb, "\n- %s", s)
		if s.Look != "" {
			fmt.Fprintf(&sb, " (`%s` only looks)", s.Look)
		}
		fmt.Fprintf(&sb, ": investigate with subject %q", s.ID)
	}
	sb.WriteString("\nLook it up, then call investigate once for each, with what you found and the numbers of the " +
		"operations that show it; then make this call again.")
	if looks := g.citable(op.Range{First: g.place.State().Last - min(g.place.State().Last-1, maxLookedBack),
		Last: g.place.State().Last}); len(looks) > 0 {
		fmt.Fprintf(&sb, " Of what you have seen so far you could cite %s.", strings.Join(looks, ", "))
	}
	return sb.String()
}

// citable lists the last results of a range that can be cited.
func (g *Guard) citable(r op.Range) []string {
	ops, err := g.place.Ops(r)
	if err != nil {
		return nil // the list is optional
	}
	var out []string
	for i, o := range ops {
		if b, ok := o.Body.(*op.ToolReturned); ok {
			if args, why := g.readOnlyResult(b, ops[:i]); why == "" {
				out = append(out, fmt.Sprintf("op %d (%s)", o.Seq,
					quote.OneLine(tool.Display(op.Call{Name: b.Name, Args: args}, g.place.Dir), notice.MaxDelivered)))
			}
		}
	}
	return out[max(0, len(out)-maxCitable):]
}

// readOnlyResult returns the arguments of a call that succeeded and only read, or why it did not. before
// are the operations before its result.
func (g *Guard) readOnlyResult(b *op.ToolReturned, before []op.Op) (args, why string) {
	spec, _ := g.tools.Registry.Spec(b.Name)
	switch {
	case b.Refused:
		return "", "was refused"
	case b.Unknown:
		return "", "has an unknown outcome"
	case b.Exit != nil && *b.Exit != 0:
		return "", fmt.Sprintf("failed (exit %d)", *b.Exit)
	case b.IsError:
		return "", "failed"
	case spec.Silent:
		return "", "shows nothing that was there before"
	}
	for _, o := range slices.Backward(before) {
		if c, ok := o.Body.(*op.ToolCalled); ok && c.Call == b.Call {
			args = c.Args
			break
		}
	}
	if spec.ReadOnly || spec.Command != "" && research.Looks(args) {
		return args, ""
	}
	return "", "may have done more than look"
}

// Cite implements Evidence: it returns the first of some operations that can be evidence.
func (g *Guard) Cite(cites []uint64) (uint64, error) {
	last, _ := g.place.Journal.Log().Last()
	var faults []string
	for _, seq := range cites {
		if seq == 0 || seq > last {
			faults = append(faults, fmt.Sprintf("op %d does not exist", seq))
			continue
		}
		ops, err := g.place.Ops(op.Range{First: seq - min(seq-1, maxLookedBack), Last: seq})
		if err != nil {
			return 0, fmt.Errorf("op %d cannot be read: %w", seq, err)
		}
		cited := ops[len(ops)-1]
		b, ok := cited.Body.(*op.ToolReturned)
		if !ok {
			faults = append(faults, fmt.Sprintf("op %d is a %s and no result", seq, cited.Kind()))
			continue
		}
		_, why := g.readOnlyResult(b, ops[:len(ops)-1])
		if why == "" {
			return seq, nil
		}
		faults = append(faults, fmt.Sprintf("op %d (%s) %s", seq, b.Name, why))
	}
	text := "at least one cited operation must be the result of a successful call that only looked: " +
		notice.List(faults, len(faults)) + "."
	if looks := g.citable(op.Range{First: last - min(last-1, maxLookedBack), Last: last}); len(looks) > 0 {
		return 0, fmt.Errorf("%s You can cite %s", text, strings.Join(looks, ", "))
	}
	return 0, fmt.Errorf("%s There is none yet: look first", text)
}

// CiteLine lists the operations of a step that can be cited while research is missing.
func (g *Guard) CiteLine(id int) string {
	st := g.place.State().Steps.At(id)
	if len(g.place.State().Research.Wanted) == 0 || st.First == 0 {
		return ""
	}
	looks := g.citable(op.Range{First: st.First, Last: st.Last})
	if len(looks) == 0 {
		return ""
	}
	return "\n(to cite: " + strings.Join(looks, ", ") + ")"
}

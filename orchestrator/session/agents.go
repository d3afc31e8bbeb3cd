package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/feature/skill"
	"anamnesis/orchestrator/feature/subagent"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool/builtin"
)

// Agents returns the loader of the specs that a directory has.
func (s *Service) Agents(dir string) (*agent.Loader, error) {
	dir, err := RealDir(dir)
	if err != nil {
		return nil, err
	}
	o := s.agentOptions()
	o.Project = dir
	return agent.NewLoader(o), nil
}

// agentOptions are the options of a loader without a project's own specs.
func (s *Service) agentOptions() *agent.Options {
	o := &agent.Options{User: s.Home.Agents(), Tools: append(builtin.Names(), subagent.ToolName, skill.ToolName)}
	for _, t := range s.o.Tools {
		o.Tools = append(o.Tools, t.Spec().Name)
	}
	return o
}

// AgentError makes a fault of a spec a usage error.
func AgentError(err error) error {
	if errors.As(err, new(*agent.Error)) || errors.Is(err, agent.ErrUnknown) {
		return &UsageError{err}
	}
	return err
}

// pickAgent returns the agent of a new task. A project's agent runs only if it was approved:
// otherwise a named one is refused, and the project's default is skipped.
func (o *opening) pickAgent(ctx context.Context, dir, asked string) (*agent.Loaded, error) {
	loader, err := o.Agents(dir)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(asked, agent.Default)
	who, err := loader.Load(name)
	if err == nil {
		ok, err := who.Allow(ctx, o.trust(), o.client.Trust)
		if ok || err != nil {
			return who, err
		}
	}
	entry, found := loader.Find(agent.Default)
	// Nobody asked for the project's agent: if it is not approved or cannot be read, the task begins without it.
	if asked == "" && (err == nil || found == nil && entry.Scope == agent.ScopeProject) {
		return o.withoutProject(err)
	}
	if err != nil {
		return nil, AgentError(err)
	}
	err = fmt.Errorf("agent %s: the project brings it, and %w", name, ErrNotApproved)
	return nil, remedy.With(err, remedy.ApproveAgent, name)
}

// withoutProject returns the default agent if the project's cannot be used.
func (o *opening) withoutProject(fault error) (*agent.Loaded, error) {
	why := "its current content is not approved by you"
	if fault != nil {
		why = fault.Error()
	}
	o.warn("the project's own default agent is not used: %s", why)
	who, err := agent.NewLoader(o.agentOptions()).Load(agent.Default)
	return who, AgentError(err)
}

// The instructions may take a part of the EAS.
const (
	minInstructionTokens = 1_000
	instructionPartOfEAS = 4
)

// instructions reads the repository's instructions if the agent's prompt has a place for them.
// The warnings name files that cannot be read.
func (s *Service) instructions(prompt, dir, encoding string, eas int) (
	in agent.Instructions, warnings []string, err error) {
	if !strings.Contains(prompt, agent.InstructionPlaceholder) {
		return in, nil, nil
	}
	counter, err := tokens.ForEncoding(encoding)
	if err != nil {
		return in, nil, err
	}
	in = agent.ReadInstructions(s.Home.Instructions(), dir, max(minInstructionTokens, eas/instructionPartOfEAS),
		counter.Count)
	for _, fault := range in.Faults {
		warnings = append(warnings, fmt.Sprintf("warning: instructions are not read: %s", fault))
	}
	return in, warnings, nil
}

// prompt is an agent's system prompt in a directory, with the instructions that it
// quotes.
func (s *Service) prompt(spec *agent.Spec, dir, encoding string, eas int) (
	text string, in agent.Instructions, warnings []string, err error) {
	if in, warnings, err = s.instructions(spec.Prompt, dir, encoding, eas); err != nil {
		return "", in, warnings, err
	}
	listing, err := agent.Listing(dir)
	if err != nil {
		return "", in, warnings, err
	}
	vars := agent.Vars{Now: time.Now(), Dir: dir, Listing: listing, Instructions: in.Text}
	return agent.Render(spec, vars), in, warnings, nil
}

// Prompt returns the system prompt that a model of a large EAS would get in a directory now.
func (s *Service) Prompt(spec *agent.Spec, dir string) (text string, warnings []string, err error) {
	if dir, err = RealDir(dir); err != nil {
		return "", nil, err
	}
	text, _, warnings, err = s.prompt(spec, dir, tokens.Fallback, instructionPartOfEAS*agent.MaxInstructionBytes)
	return text, warnings, err
}

// OfferedTools returns the names of the built-in tools that an agent is offered.
func OfferedTools(spec *agent.Spec) ([]string, error) {
	var set Settings
	set.follow(spec)
	more, err := builtin.OptIn(set.tools...)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, t := range append(builtin.Tools(builtin.Options{}), more...) {
		if s := t.Spec(); agent.Offers(spec, s.Name, s.Looks()) {
			names = append(names, s.Name)
		}
	}
	if len(spec.Subagents) > 0 && agent.Offers(spec, subagent.ToolName, false) {
		names = append(names, subagent.ToolName)
	}
	return names, nil
}

// brief fills in the system prompt of a new task.
func (o *opening) brief(n *runtime.New, who *agent.Loaded) error {
	dir, err := RealDir(n.Dir)
	if err != nil {
		return err
	}
	spec := who.Spec
	spec.Prompt = agent.ForModel(&spec, n.Model)
	text, in, warnings, err := o.prompt(&spec, dir, n.Encoding, n.EAS)
	if o.client.Ask == nil {
		limits := o.Limits
		limits.Steps = cmp.Or(limits.Steps, state.DefaultMaxSteps)
		text += "\n\n" + agent.Unattended(o.whenAsked() == question.Wait, limits)
	}
	o.warnings = append(o.warnings, warnings...)
	o.tellUnread(dir)
	n.Agent, n.System, n.Instructions = &who.Spec, text, in.Files
	return err
}

// tellUnread warns of what a directory has for Claude Code and this program does not read, before its first task.
func (o *opening) tellUnread(dir string) {
	if _, err := os.Lstat(o.Home.Store(dir)); err == nil {
		return
	}
	if text := agent.Unread(o.Home.User, dir, filepath.Join(o.Home.Config, "config.yaml")); text != "" {
		o.warn("%s", text)
	}
}

// agentSince compares a task's agent with its files. The task keeps the agent it was opened
// with; the record of a resume gets changes of the repository's instructions.
func (o *opening) agentSince(st *state.State, resumed *op.TaskResumed) error {
	spec := st.Opened.Agent
	if spec == nil {
		return nil
	}
	if filepath.IsAbs(spec.From) {
		if why := o.agentChanged(st.Opened.Dir, spec); why != "" {
			o.warn("the agent %s %s; the task keeps the one it began with", spec.Name, why)
		}
	}
	if _, err := os.Stat(st.Opened.Dir); err != nil {
		return nil // opening the task reports it
	}
	in, warnings, err := o.instructions(spec.Prompt, st.Opened.Dir, st.Opened.Encoding, st.Model.EAS)
	if err != nil {
		return err
	}
	o.warnings = append(o.warnings, warnings...)
	news := instructionNews(st.Instructions, in.Files)
	if len(news) == 0 {
		return nil
	}
	o.warn("changed since the task last ran: %s; the agent gets the new text", strings.Join(news, ", "))
	resumed.Instructions = &in.Files
	resumed.Notice = "[instructions] Changed since you were told: " + strings.Join(news, ", ") + "."
	if in.Text != "" {
		resumed.Notice += " They take the place of the earlier ones.\n\n" + in.Text
	}
	return nil
}

// agentChanged describes how a file differs from the spec that was read from it; empty if it
// does not.
func (s *Service) agentChanged(dir string, spec *op.Agent) string {
	loader, err := s.Agents(dir)
	if err != nil {
		return ""
	}
	now, err := loader.Load(spec.From)
	switch {
	case err != nil:
		return "cannot be read any more: " + err.Error()
	case now.Spec.Hash != spec.Hash:
		return "was changed in " + spec.From
	}
	return ""
}

// instructionNews lists the files of instructions that are new, changed or gone.
func instructionNews(before, now []op.SourceFile) []string {
	var news []string
	for _, f := range now {
		i := slices.IndexFunc(before, func(b op.SourceFile) bool { return b.Path == f.Path })
		switch {
		case i < 0:
			news = append(news, f.Path+" (new)")
		case before[i].Hash != f.Hash:
			news = append(news, f.Path+" (changed)")
		}
	}
	for _, b := range before {
		if !slices.ContainsFunc(now, func(f op.SourceFile) bool { return f.Path == b.Path }) {
			news = append(news, b.Path+" (gone)")
		}
	}
	return news
}

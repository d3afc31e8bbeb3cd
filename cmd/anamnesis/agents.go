//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/tokens"
	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/builtin"
	"anamnesis/orchestrator/tool/subagent"
)

// agentLoader finds the specs that count in a directory; ours alone where
// project is false.
func agentLoader(h taskdir.Home, dir string, project bool) (*agent.Loader, error) {
	dir, err := realDir(dir)
	if err != nil {
		return nil, err
	}
	o := agent.Options{User: h.Agents(), Tools: append(builtin.Names(), subagent.ToolName)}
	if project {
		o.Project = dir
	}
	for _, f := range toolFolders(h, dir) {
		files, _ := f.Read() // a folder that cannot be read is told of where its tools are wanted
		for _, file := range files {
			o.Tools = append(o.Tools, file.Tool)
		}
	}
	return agent.NewLoader(&o), nil
}

// agentError gives what is wrong with a spec its exit code.
func agentError(err error) error {
	var fault *agent.Error
	if errors.As(err, &fault) || errors.Is(err, agent.ErrUnknown) {
		return usageError("%v", err)
	}
	return err
}

// pickAgent finds the agent a new task runs with. What a project brings runs
// when it was approved: an agent that was asked for is refused otherwise, and
// the project's own default is passed over.
func (a *app) pickAgent(ctx context.Context, h taskdir.Home, f agentFlags, keys *view.Keyboard) (*agent.Loaded, error) {
	loader, err := agentLoader(h, f.dir, true)
	if err != nil {
		return nil, err
	}
	name := f.agent
	if name == "" {
		name = agent.Default
	}
	who, err := loader.Load(name)
	if err == nil {
		var ask func(context.Context, string) bool
		if keys != nil {
			ask = questions{keys}.approves
		}
		ok, err := who.Allow(ctx, guard.OpenTrust(h.Approvals()), ask)
		if ok || err != nil {
			return who, err
		}
	}
	if f.agent == "" && (err == nil || inProject(loader)) {
		return a.withoutProject(h, f.dir, err)
	}
	if err != nil {
		return nil, agentError(err)
	}
	return nil, &exitError{exitRefused, fmt.Errorf("agent %s: the project brings it, and nobody approved it as it is now; 'anamnesis agent approve %s' shows it and asks", name, name)}
}

// inProject reports whether the default agent would be a project's.
func inProject(l *agent.Loader) bool {
	entry, err := l.Find(agent.Default)
	return err == nil && entry.Scope == agent.ScopeProject
}

// withoutProject is the default agent of a person whose project brings another
// that cannot be used.
func (a *app) withoutProject(h taskdir.Home, dir string, fault error) (*agent.Loaded, error) {
	why := "nobody approved it as it is now; 'anamnesis agent approve default' shows it"
	if fault != nil {
		why = fault.Error()
	}
	fmt.Fprintf(a.stderr, "anamnesis: the project's own default agent is not used: %s\n", why)
	loader, err := agentLoader(h, dir, false)
	if err != nil {
		return nil, err
	}
	who, err := loader.Load(agent.Default)
	return who, agentError(err)
}

// follow takes over from a spec what the flags do not say.
func (f *agentFlags) follow(s *agent.Spec) {
	if f.model == "" {
		f.model = s.Model
	}
	if f.sandbox == "" {
		f.sandbox = s.Sandbox
	}
	if f.approval == "" {
		f.approval = s.Approval
	}
	for _, name := range builtin.OptInNames() {
		if slices.Contains(s.Tools, name) && !slices.Contains(s.ExcludeTools, name) && !slices.Contains(f.tools, name) {
			f.tools = append(f.tools, name)
		}
	}
}

// Instructions have at most a part of what a model attends to.
const (
	minInstructionTokens   = 1_000
	instructionPartOfEAS   = 4
	instructionPlaceholder = "${AGENTS_MD}"
)

// instructions gathers what the repository tells an agent whose prompt has a
// place for it.
func (a *app) instructions(prompt, dir, encoding string, eas int) (agent.Instructions, error) {
	if !strings.Contains(prompt, instructionPlaceholder) {
		return agent.Instructions{}, nil
	}
	counter, err := tokens.ForEncoding(encoding)
	if err != nil {
		return agent.Instructions{}, err
	}
	in := agent.ReadInstructions(dir, max(minInstructionTokens, eas/instructionPartOfEAS), counter.Count)
	for _, fault := range in.Faults {
		fmt.Fprintf(a.stderr, "anamnesis: warning: instructions are not read: %s\n", fault)
	}
	return in, nil
}

// prompt fills in what an agent is told in a directory, with the instructions
// that it quotes.
func (a *app) prompt(spec *agent.Spec, dir, encoding string, eas int) (string, agent.Instructions, error) {
	in, err := a.instructions(spec.Prompt, dir, encoding, eas)
	if err != nil {
		return "", in, err
	}
	listing, err := agent.Listing(dir)
	if err != nil {
		return "", in, err
	}
	return agent.Render(spec, agent.Vars{Now: time.Now(), Dir: dir, Listing: listing, Instructions: in.Text}), in, nil
}

// brief fills in what a new task's agent is told.
func (a *app) brief(n *runtime.New, who *agent.Loaded) error {
	dir, err := realDir(n.Dir)
	if err != nil {
		return err
	}
	text, in, err := a.prompt(&who.Spec, dir, n.Encoding, n.EAS)
	n.Agent, n.System, n.Instructions = &who.Spec, text, in.Files
	return err
}

// agentSince says what became of a task's agent since it began: the record of a
// resume gets what changed of the repository's instructions. The task keeps the
// agent it was opened with.
func (a *app) agentSince(h taskdir.Home, st *state.State, resumed *op.TaskResumed) error {
	spec := st.Opened.Agent
	if spec == nil {
		return nil
	}
	if filepath.IsAbs(spec.From) {
		if why := agentChanged(h, st.Opened.Dir, spec); why != "" {
			fmt.Fprintf(a.stderr, "anamnesis: the agent %s %s; the task keeps the one it began with\n", spec.Name, why)
		}
	}
	if _, err := os.Stat(st.Opened.Dir); err != nil {
		return nil // opening the task says what to do
	}
	in, err := a.instructions(spec.Prompt, st.Opened.Dir, st.Opened.Encoding, st.EAS)
	if err != nil {
		return err
	}
	news := instructionNews(st.Instructions, in.Files)
	if len(news) == 0 {
		return nil
	}
	fmt.Fprintf(a.stderr, "anamnesis: changed since the agent was told: %s; it is told now\n", strings.Join(news, ", "))
	resumed.Instructions = &in.Files
	resumed.Notice = "[instructions] Changed since you were told: " + strings.Join(news, ", ") + "."
	if in.Text != "" {
		resumed.Notice += " They take the place of the earlier ones.\n\n" + in.Text
	}
	return nil
}

// agentChanged says in which way a file is not the spec it was; empty: it is.
func agentChanged(h taskdir.Home, dir string, spec *op.Agent) string {
	loader, err := agentLoader(h, dir, true)
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

// instructionNews says which files of instructions came, went or changed.
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

// agentOf is the name of the agent that a task was opened with; empty in tasks
// of before specs.
func agentOf(st *state.State) string {
	if st.Opened.Agent == nil {
		return ""
	}
	return st.Opened.Agent.Name
}

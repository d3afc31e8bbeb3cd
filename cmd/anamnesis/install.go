//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/install"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

type installFlags struct{ dryRun, yes, all, purge, allowReads bool }

func (a *app) installCommand() *cobra.Command {
	return a.installVerb("install [AGENT]", "Record the sessions of another agent, and offer it jumps and cards",
		`Add hooks, the MCP server and a skill to the configuration of an agent: claude-code, codex,
opencode, gemini or kimi. From then on each of its calls is recorded as an operation and each
step as a snapshot in this program's state folder, with secrets redacted. Only passes send parts
of it: to the model of your config.yaml, if that names one. The change is shown first and made
when you agree (--yes). Other entries and comments stay. 'uninstall' removes it. A file
.anamnesis/off in a project, or 'anamnesis pause', stops the recording.

Claude Code asks before each call of a tool. It may call those that change nothing (timeline, diff,
recall, show_operation) without, if you say so or with --allow-reads.
At the end past sessions of the agent are offered for import: what they show of a repository is
told to the next session there. With --yes, the command that imports them is printed.`, install.Add)
}

func (a *app) uninstallCommand() *cobra.Command {
	return a.installVerb("uninstall [AGENT]", "Remove hooks, MCP server and skill from an agent's configuration",
		`Remove hooks, MCP server and skill from an agent's configuration, also those of another state
folder or an older version. A file that was not changed otherwise becomes byte for byte what it
was before the installation; from any other file only our entries are removed. What cannot be
removed, as from a file with a syntax error, is named, the hooks' script stays, and the exit code
is 2. Recorders stop. Recordings stay; --purge lists the recorded sessions of the agent and
deletes them with their snapshots. Cards stay.`, install.Remove)
}

func (a *app) installVerb(use, short, long string, verb install.Verb) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.MaximumNArgs(1),
		RunE: a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) error {
			return a.install(cmd.Context(), svc, verb, args, f)
		}),
	}
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the change and make none")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.all, "all", false, "every agent that has a configuration in your home directory")
	if verb == install.Add {
		cmd.Flags().BoolVar(&f.allowReads, "allow-reads", false, "let the agent call the read-only tools unasked")
	} else {
		cmd.Flags().BoolVar(&f.purge, "purge", false, "delete the agent's recordings, too")
	}
	return cmd
}

func (a *app) install(ctx context.Context, svc *session.Service, verb install.Verb,
	args []string, f installFlags) error {
	p, err := install.Here(svc.Home, a.getenv)
	if err != nil {
		return err
	}
	agents, err := a.installAgents(p, args, verb, f.all)
	if err != nil {
		return err
	}
	p.Allow = f.allowReads
	asks := verb == install.Add && !f.allowReads && !f.yes && !f.dryRun
	if asks && slices.ContainsFunc(agents, p.Offers) {
		p.Allow, err = a.tty().Offer(ctx, "let it call the tools that change nothing "+
			"(timeline, diff, recall, show_operation) without asking you?")
		if err != nil {
			return err
		}
	}
	changes, err := p.Changes(verb, agents)
	if err == nil && f.purge {
		changes, err = install.AddPurge(svc.Home, agents, changes)
	}
	if err != nil {
		return err
	}
	var problems []string
	changed := false
	for _, c := range changes {
		if changed = changed || len(c.Files)+len(c.Purge) > 0; c.Problem != nil {
			problems = append(problems, fmt.Sprintf("%s stays configured: %s", c.Agent,
				strings.ReplaceAll(c.Problem.Error(), "\n", "; ")))
		}
	}
	partial := exit.Usagef("%s; hooks that stay end with 0 and do nothing when this program is gone",
		strings.Join(problems, "; "))
	switch {
	case !changed && len(problems) > 0:
		return partial
	case !changed:
		a.println("nothing to change")
		return p.Apply(ctx, svc, verb, install.Change{}) // recorders may still run
	}
	a.showInstall(changes)
	for _, problem := range problems {
		a.notef("%s", problem)
	}
	if verb == install.Add {
		a.println(p.Stored())
	}
	if f.dryRun {
		return nil
	}
	if !f.yes {
		unasked := exit.Usagef("nothing was changed: add --yes to change it without being asked")
		if err := a.tty().Agree(ctx, "make these changes? [y/N] ", unasked, "nothing was changed"); err != nil {
			return err
		}
	}
	then := map[install.Verb]string{install.Add: "recording begins with its next session",
		install.Remove: "its sessions are no longer recorded"}
	var failed error
	for _, c := range changes {
		if err := p.Apply(ctx, svc, verb, c); err != nil {
			failed = errors.Join(failed, err)
			continue // the other agents do not depend on it
		}
		if len(c.Purge) > 0 {
			a.printf("deleted %s of %s\n", quote.Number(len(c.Purge), "session"), c.Agent)
		}
		if len(c.Files) > 0 {
			a.printf("%sed for %s: %s\n", verb, c.Agent, then[verb])
		}
		if c.Agent == sessions.Codex && verb == install.Add {
			a.println("Codex runs hooks only once you trust them: start it and confirm them under /hooks")
		}
	}
	switch {
	case failed == nil && len(problems) > 0:
		return partial
	case failed == nil && verb == install.Add:
		return a.beginBeside(ctx, svc, agents, f.yes)
	}
	return failed
}

// beginBeside ends an installation: it offers to import the agents' past sessions, and says what to do now.
func (a *app) beginBeside(ctx context.Context, svc *session.Service, agents []sessions.Agent, yes bool) error {
	var of []string // all agents
	command := "anamnesis import --all"
	if len(agents) == 1 {
		of = []string{string(agents[0])}
		command = "anamnesis import " + of[0] + " --all"
	}
	src, err := beside.FindSessions(of, true, a.getenv)
	if err != nil {
		a.notef("past sessions: %v", err)
	} else if err := a.offerImport(ctx, svc, src, command, yes); err != nil {
		return err
	}
	a.println("now: start the agent as ever; from the third session in a repository on it gets the command " +
		"that runs the tests there ('anamnesis kb facts')\n" +
		"     'anamnesis tasks' lists its sessions, 'anamnesis timeline' the steps of the last one, " +
		"'anamnesis serve' shows both as a page\n" +
		"     if it goes wrong, tell the agent to go back, or see 'anamnesis jump TASK STEP --dry-run'; " +
		"'anamnesis doctor' says whether this works")
	return nil
}

// showInstall prints the changes as diffs, and the sessions to delete.
func (a *app) showInstall(changes []install.Change) {
	shown := map[string]bool{} // agents share the hooks' wrapper
	for _, c := range changes {
		for _, file := range c.Files {
			if shown[file.Path] {
				continue
			}
			shown[file.Path] = true
			a.printf("%s", view.Clean(show.LineDiff(file.Path, file.Before, file.After)))
		}
		for _, t := range c.Purge {
			a.println(view.Line(fmt.Sprintf("delete %s, %s in %s: %s", t.ID,
				quote.Number(t.Steps, "step"), t.Dir, t.Request), 200))
		}
	}
}

// installAgents returns the agents that a command line names.
func (a *app) installAgents(p *install.Places, args []string, verb install.Verb, all bool) ([]sessions.Agent, error) {
	switch {
	case all == (len(args) > 0):
		return nil, exit.Usagef("name one agent, or --all: %s", sessions.Names())
	case all:
		return p.Configured()
	case !slices.Contains(sessions.Agents(), sessions.Agent(args[0])):
		return nil, exit.Usagef("%s: not an agent; known are %s", args[0], sessions.Names())
	}
	agent := sessions.Agent(args[0])
	if verb == install.Add && !p.Found(agent) {
		a.notef("%s has no configuration here yet", agent)
	}
	return []sessions.Agent{agent}, nil
}

func (a *app) pauseCommand() *cobra.Command {
	var end bool
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Stop recording other agents, until 'pause --end'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			if end {
				if err := beside.Unpause(h); err != nil {
					return err
				}
				a.println("other agents are recorded again")
				return nil
			}
			if err := beside.Pause(h); err != nil {
				return err
			}
			if _, err := beside.StopRecorders(cmd.Context(), h); err != nil {
				return err
			}
			a.println("other agents are not recorded; 'anamnesis pause --end' ends this")
			return nil
		},
	}
	cmd.Flags().BoolVar(&end, "end", false, "record again")
	return cmd
}

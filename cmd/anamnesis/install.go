//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/install"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
)

type installFlags struct{ dryRun, yes, all, purge bool }

func (a *app) installCommand() *cobra.Command {
	return a.installVerb("install [AGENT]", "Record the sessions of another agent, and offer it jumps and cards",
		`Add hooks, the MCP server and a skill to the configuration of an agent: claude-code, codex,
opencode, gemini or kimi. From then on each of its calls is recorded as an operation and each
step as a snapshot in this program's state folder, with secrets redacted. Only passes send parts
of it: to the model of your config.yaml, if that names one. The change is shown first and made
when you agree (--yes). Other entries and comments stay. 'uninstall' removes it. A file
.anamnesis/off in a project, or 'anamnesis pause', stops the recording.`, (*install.Places).Plan, (*install.Places).Install)
}

func (a *app) uninstallCommand() *cobra.Command {
	return a.installVerb("uninstall [AGENT]", "Remove hooks, MCP server and skill from an agent's configuration",
		`Remove hooks, MCP server and skill from an agent's configuration. A file that was not changed
otherwise becomes byte for byte what it was before the installation; from any other file only
our entries are removed. Recorders stop. Recordings stay; --purge lists the recorded sessions of
the agent and deletes them with their snapshots. Cards stay.`, (*install.Places).PlanRemoval, (*install.Places).Uninstall)
}

// installChange is the change of an installation for one agent.
type installChange struct {
	agent sessions.Agent
	files []install.File
	purge []taskdir.Summary // sessions that are deleted
}

func (a *app) installVerb(use, short, long string, plan func(*install.Places, sessions.Agent) ([]install.File, error), do func(*install.Places, sessions.Agent, []install.File) error) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, _, _ := strings.Cut(use, " ")
			p, err := a.places()
			if err != nil {
				return err
			}
			agents, err := a.installAgents(p, args, verb, f.all)
			if err != nil {
				return err
			}
			changes, err := a.planInstall(p, agents, f.purge, plan)
			if err != nil {
				return err
			}
			if len(changes) == 0 {
				a.println("nothing to change")
				return a.stopRecorders(cmd.Context(), verb)
			}
			a.showInstall(changes)
			if verb == "install" {
				a.println(p.Stored())
			}
			if f.dryRun {
				return nil
			}
			if err := a.agreeToInstall(cmd.Context(), f.yes); err != nil {
				return err
			}
			for _, c := range changes {
				if len(c.files) > 0 {
					if err := do(p, c.agent, c.files); err != nil {
						return fmt.Errorf("%s for %s: %w", verb, c.agent, err)
					}
				}
				if err := a.stopRecorders(cmd.Context(), verb); err != nil {
					return err
				}
				if err := a.purge(cmd.Context(), c.purge); err != nil {
					return err
				}
				if len(c.files) > 0 {
					then := map[string]string{"install": "recording begins with its next session", "uninstall": "its sessions are no longer recorded"}
					a.printf("%sed for %s: %s\n", verb, c.agent, then[verb])
				}
				if c.agent == sessions.Codex && verb == "install" {
					a.println("Codex runs hooks only once you trust them: start it and confirm them under /hooks")
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the change and make none")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.all, "all", false, "every agent that has a configuration in your home directory")
	if strings.HasPrefix(use, "uninstall") {
		cmd.Flags().BoolVar(&f.purge, "purge", false, "delete the agent's recordings, too")
	}
	return cmd
}

// planInstall returns the changes for some agents, without those that need none.
func (a *app) planInstall(p *install.Places, agents []sessions.Agent, purge bool, plan func(*install.Places, sessions.Agent) ([]install.File, error)) ([]installChange, error) {
	var changes []installChange
	for _, agent := range agents {
		files, err := plan(p, agent)
		if errors.Is(err, install.ErrConfig) {
			return nil, exit.Usagef("%w; mend the file and try again", err)
		}
		if err != nil {
			return nil, err
		}
		c := installChange{agent: agent, files: files}
		if purge {
			if c.purge, err = a.recordedSessions(agent); err != nil {
				return nil, err
			}
		}
		if len(c.files)+len(c.purge) > 0 {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// showInstall prints the changes as diffs, and the sessions to delete.
func (a *app) showInstall(changes []installChange) {
	shown := map[string]bool{} // agents share the hooks' wrapper
	for _, c := range changes {
		for _, file := range c.files {
			if shown[file.Path] {
				continue
			}
			shown[file.Path] = true
			a.printf("%s", view.Clean(show.LineDiff(file.Path, file.Before, file.After)))
		}
		for _, t := range c.purge {
			a.println(view.Line(fmt.Sprintf("delete %s, %s in %s: %s", t.ID, quote.Number(t.Steps, "step"), t.Dir, t.Request), 200))
		}
	}
}

func (a *app) recordedSessions(agent sessions.Agent) ([]taskdir.Summary, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	return beside.SessionsOf(h, agent)
}

func (a *app) purge(ctx context.Context, list []taskdir.Summary) error {
	if len(list) == 0 {
		return nil
	}
	svc, err := a.service()
	if err != nil {
		return err
	}
	if err := beside.Purge(ctx, svc, list); err != nil {
		return err
	}
	a.printf("deleted %s of %s\n", quote.Number(len(list), "session"), list[0].Agent)
	return nil
}

// stopRecorders ends the recorders when a verb removes an agent.
func (a *app) stopRecorders(ctx context.Context, verb string) error {
	if verb != "uninstall" {
		return nil
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	_, err = beside.StopRecorders(ctx, h)
	return err
}

// places returns the places of this user and this program.
func (a *app) places() (*install.Places, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &install.Places{Home: a.getenv("HOME"), State: h.State, Data: a.getenv("ANAMNESIS_HOME"), Program: program, Getenv: a.getenv}, nil
}

// installAgents returns the agents that a command line names.
func (a *app) installAgents(p *install.Places, args []string, verb string, all bool) (agents []sessions.Agent, err error) {
	switch {
	case all == (len(args) > 0):
		return nil, exit.Usagef("name one agent, or --all: %s", sessions.Names())
	case all:
		for _, agent := range install.Agents() {
			if p.Found(agent) {
				agents = append(agents, agent)
			}
		}
		if len(agents) == 0 {
			return nil, exit.Usagef("no agent has a configuration in %s", p.Home)
		}
		return agents, nil
	case !slices.Contains(install.Agents(), sessions.Agent(args[0])):
		return nil, exit.Usagef("%s: not an agent; known are %s", args[0], sessions.Names())
	}
	agent := sessions.Agent(args[0])
	if verb == "install" && !p.Found(agent) {
		a.notef("%s has no configuration here yet", agent)
	}
	return []sessions.Agent{agent}, nil
}

// agreeToInstall asks the user, unless they agreed already.
func (a *app) agreeToInstall(ctx context.Context, yes bool) error {
	if yes {
		return nil
	}
	unasked := exit.Usagef("nothing was changed: add --yes to change it without being asked")
	return a.tty().Agree(ctx, "make these changes? [y/N] ", unasked, "nothing was changed")
}

func (a *app) pauseCommand() *cobra.Command {
	var end bool
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Stop recording other agents, until 'pause --end'",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			if err := beside.Pause(h, !end); err != nil {
				return err
			}
			if !end {
				if _, err := beside.StopRecorders(cmd.Context(), h); err != nil {
					return err
				}
			}
			if end {
				a.println("other agents are recorded again")
			} else {
				a.println("other agents are not recorded; 'anamnesis pause --end' ends this")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&end, "end", false, "record again")
	return cmd
}

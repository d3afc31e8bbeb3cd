//go:build unix

package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/install"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
)

type installFlags struct{ dryRun, yes bool }

func (a *app) installCommand() *cobra.Command {
	return a.installVerb("install AGENT", "Record the sessions of Claude Code or Codex, and offer them jumps and cards",
		`Add hooks and the MCP server to the configuration of claude-code or codex. From then on each of its calls becomes an operation
and each step a snapshot in this program's state folder, secrets redacted; nothing leaves the machine. The change is shown first and
made when you agree (--yes). Other entries and comments stay. 'uninstall' takes it out again. A file .anamnesis/off in a project,
or 'anamnesis pause', stops the recording.`, (*install.Places).Plan, (*install.Places).Install)
}

func (a *app) uninstallCommand() *cobra.Command {
	return a.installVerb("uninstall AGENT", "Take hooks and MCP server out of an agent's configuration",
		`Take hooks and MCP server out of an agent's configuration. A file that nothing else changed is as it was before, byte for byte;
of another exactly our entries go. What was recorded stays.`, (*install.Places).PlanRemoval, (*install.Places).Uninstall)
}

func (a *app) installVerb(use, short, long string, plan func(*install.Places, sessions.Agent) ([]install.File, error), do func(*install.Places, sessions.Agent, []install.File) error) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			agent := sessions.Agent(args[0])
			if !slices.Contains(install.Agents(), agent) {
				return exit.Usagef("%s: want claude-code or codex", args[0])
			}
			h, err := a.home()
			if err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			p := &install.Places{Home: a.getenv("HOME"), State: h.State, Data: a.getenv("ANAMNESIS_HOME"), Program: program, Getenv: a.getenv}
			files, err := plan(p, agent)
			if errors.Is(err, install.ErrConfig) {
				return exit.Usagef("%w; mend the file and try again", err)
			}
			if err != nil {
				return err
			}
			if len(files) == 0 {
				a.println("nothing to change")
				return nil
			}
			for _, f := range files {
				a.printf("%s", view.Clean(show.LineDiff(f.Path, f.Before, f.After)))
			}
			if f.dryRun {
				return nil
			}
			if !f.yes {
				if !a.interactive() {
					return exit.Usagef("nothing was changed: add --yes to change it without being asked")
				}
				answer, err := a.askLine(cmd.Context(), "change these files? [y/N] ")
				if err != nil {
					return err
				}
				if !isYes(answer) {
					return exit.With(exit.Refused, errors.New("nothing was changed"))
				}
			}
			if err := do(p, agent, files); err != nil {
				return err
			}
			verb, _, _ := strings.Cut(use, " ")
			a.printf("%sed for %s: it counts from the next session on\n", verb, agent)
			if agent == sessions.Codex && verb == "install" {
				a.println("Codex runs hooks only once you trust them: start it and confirm them under /hooks")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the change and make none")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) pauseCommand() *cobra.Command {
	var end bool
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Stop recording other agents, until 'pause --end'",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			if err := beside.Pause(h, !end); err != nil {
				return err
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

//go:build unix

package main

import (
	"context"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
)

// agentCommand is the family of verbs over agent specs.
func (a *app) agentCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "List, show and approve agents",
		Long: `A file agents/NAME.yaml of the program's configuration, or .anamnesis/agents/NAME.yaml of a
project, defines an agent: its prompt, its tools and its rules. 'run --agent NAME' uses it. A
project's agent is used only after you approved its current content.`,
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", ".", "directory of the project")
	cmd.AddCommand(a.agentListCommand(&dir), a.agentShowCommand(&dir), a.agentApproveCommand(&dir))
	return cmd
}

// agentNamed loads one of a directory's agents.
func (a *app) agentNamed(dir, name string) (*session.Service, *agent.Loaded, *consent.Trust, error) {
	svc, err := a.service()
	if err != nil {
		return nil, nil, nil, err
	}
	loader, err := svc.Agents(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	who, err := loader.Load(name)
	return svc, who, consent.OpenTrust(svc.Home.Approvals()), session.AgentError(err)
}

func (a *app) agentListCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the agents that a run in the directory can name",
		RunE: a.withService(func(cmd *cobra.Command, _ []string, svc *session.Service) error {
			listed, err := svc.ListAgents(cmd.Context(), *dir)
			if err != nil {
				return err
			}
			return a.show(listed, func() { a.out().Agents(listed) })
		}),
	}
	return a.jsonFlag(cmd, "one JSON array")
}

func (a *app) agentShowCommand(dir *string) *cobra.Command {
	var prompt bool
	cmd := &cobra.Command{
		Use:   "show NAME|FILE",
		Short: "Print an agent with everything it extends resolved",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, who, trust, err := a.agentNamed(*dir, args[0])
			if err != nil {
				return err
			}
			if prompt {
				text, warnings, err := svc.Prompt(&who.Spec, *dir)
				a.warn(warnings...)
				if err == nil {
					a.println(view.Clean(text))
				}
				return err
			}
			s := show.Agent{Agent: who.Spec, Scope: string(who.Scope), Offered: []string{}}
			if s.Approved, err = who.Allow(cmd.Context(), trust, nil); err != nil {
				return err
			}
			if s.Offered, err = session.OfferedTools(&who.Spec); err != nil {
				return err
			}
			return a.show(s, func() { a.out().Agent(&s) })
		},
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().BoolVar(&prompt, "prompt", false,
		"print only the system prompt that the agent would get in the directory now")
	return cmd
}

func (a *app) agentApproveCommand(dir *string) *cobra.Command {
	return a.approveCommand(&cobra.Command{
		Use:   "approve NAME|FILE",
		Short: "Show a project's agent and approve it",
		Long: `Show the files of the project that an agent consists of, including its prompt and its subagents,
and approve them. The approval covers their current content; if a file changes, you are asked
again.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) (p pending, err error) {
		_, who, trust, err := a.agentNamed(*dir, args[0])
		if err != nil {
			return p, err
		}
		if ok, err := who.Allow(ctx, trust, nil); ok || err != nil {
			return p, err
		}
		return pending{what: "agent", name: who.Spec.Name, question: "Approve this agent?", text: who.Text(),
			approve: func() error { return who.Approve(trust) }}, nil
	})
}

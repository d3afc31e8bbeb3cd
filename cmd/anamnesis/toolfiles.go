//go:build unix

package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/names"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/tool/command"
)

// toolsCommand is the family of verbs over command tools.
func (a *app) toolsCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List and approve tools made of commands",
		Long: `A file tools/NAME.yaml of the program's configuration, or .anamnesis/tools/NAME.yaml of a
project, turns a command into a tool. A project's tool is offered to the agent only after you
approved its current content, and runs in a sandbox with what you granted.`,
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", ".", "directory of the project")
	cmd.AddCommand(a.toolsListCommand(&dir), a.toolsApproveCommand(&dir), a.toolsRevokeCommand(&dir))
	return cmd
}

// toolFiles reads the tool files of a directory.
func (a *app) toolFiles(dir string) ([]command.File, *consent.Trust, error) {
	svc, err := a.service()
	if err != nil {
		return nil, nil, err
	}
	files, warnings, err := svc.CommandTools(dir)
	a.warn(warnings...)
	return files, consent.OpenTrust(svc.Home.Approvals()), err
}

func (a *app) toolsListCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the command tools a task in the directory would have",
		RunE: a.withService(func(cmd *cobra.Command, _ []string, svc *session.Service) error {
			entries, warnings, err := svc.ListTools(cmd.Context(), *dir)
			a.warn(warnings...)
			if err != nil {
				return err
			}
			return a.show(entries, func() { a.out().CommandTools(entries) })
		}),
	}
	return a.jsonFlag(cmd, "one JSON array")
}

func (a *app) toolsApproveCommand(dir *string) *cobra.Command {
	var yes bool
	var grants guard.Grants
	cmd := &cobra.Command{
		Use:   "approve [NAME…]",
		Args:  cobra.ArbitraryArgs,
		Short: "Show a project's command tools and approve them",
		Long: `Show a project's command tools and approve them. The approval covers the file and the project's
own programs that its command runs or names. If one of them changes, you are asked again. A
project's tool runs in a sandbox. The flags below grant more; a network that the file asks for
is granted with the approval.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, trust, err := a.toolFiles(*dir)
			if err != nil {
				return err
			}
			if files, err = names.ToolFiles(files, args); err != nil {
				return err
			}
			if grants, err = resolveGrants(grants, args); err != nil {
				return err
			}
			for _, f := range files {
				f.Grants = grants
				if ok, err := f.Allow(cmd.Context(), trust, nil); err != nil {
					return err
				} else if ok && len(grants.Lines()) == 0 {
					if len(args) > 0 {
						a.printf("%s is approved already\n", f.Tool)
					}
					continue
				}
				text := fmt.Sprintf("%s makes a tool of a command:\n%s\n%s\n", f.Path, f.Text, f.Beyond())
				if err := a.approve(cmd.Context(), pending{what: "tool", name: f.Tool, question: "Approve it?", text: text,
					approve: func() error { return f.Approve(trust) }}, yes); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "approve without asking")
	grantFlags(cmd, &grants)
	return cmd
}

func (a *app) toolsRevokeCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Withdraw the approval of a project's tool",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, trust, err := a.toolFiles(*dir)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(files, func(f command.File) bool { return f.Tool == args[0] && f.Project() })
			if i < 0 {
				return exit.Usagef("the project has no tool %s; 'anamnesis tools list' shows them", args[0])
			}
			if err := files[i].Revoke(trust); err != nil {
				return err
			}
			a.printf("%s is no longer approved\n", args[0])
			return nil
		},
	}
}

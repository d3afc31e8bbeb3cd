//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/feature/skill"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
)

// skillsCommand is the family of verbs over skills and slash commands.
func (a *app) skillsCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "skills",
		Short: "List and approve skills and slash commands",
		Long: `Skills are folders with a SKILL.md in .agents/skills, .claude/skills and skills of the program's
configuration, slash commands are files in the folders commands beside them: of a project and of your home. A
project's count only after you approved their current content.`,
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", ".", "directory of the project")
	list := &cobra.Command{
		Use:   "list",
		Short: "List the skills and slash commands of a directory",
		RunE: a.withService(func(_ *cobra.Command, _ []string, svc *session.Service) error {
			all := svc.Skills(dir)
			_, waiting, err := skill.Approved(consent.OpenTrust(svc.Home.Approvals()), all)
			for _, k := range all {
				scope, about := "user", cmp.Or(k.Warning, k.Description)
				if k.Project != "" {
					scope = "project"
				}
				if k.Err != nil {
					about = fmt.Sprintf("not used: %v", k.Err)
				} else if slices.ContainsFunc(waiting, func(w skill.Skill) bool { return w.Path == k.Path }) {
					about = "not approved: " + about
				}
				a.println(view.Line(fmt.Sprintf("%-20s %-8s %s", k.Name, scope, about), a.out().Width))
			}
			return err
		}),
	}
	approve := a.approveCommand(&cobra.Command{
		Use: "approve", Short: "Show a project's skills and slash commands that are not approved, and approve them",
	}, func(context.Context, []string) (p pending, err error) {
		svc, err := a.service()
		if err != nil {
			return p, err
		}
		trust := consent.OpenTrust(svc.Home.Approvals())
		_, waiting, err := skill.Approved(trust, svc.Skills(dir))
		// Without anything that waits, approve stays nil and nothing is asked.
		p = pending{what: "skills", question: "Approve them?", text: skill.Question(waiting) + "\n"}
		if len(waiting) > 0 {
			p.approve = func() error { return skill.Approve(trust, waiting) }
		}
		return p, err
	})
	cmd.AddCommand(list, approve)
	return cmd
}

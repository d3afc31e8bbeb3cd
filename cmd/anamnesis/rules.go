//go:build unix

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
)

func (a *app) rulesCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Show the rules that allow, ask about or refuse calls in a directory",
		Long: `Show the rules that apply in a directory: yours, from rules.yaml in the configuration, and the
project's, from .anamnesis/rules.yaml. A project's rules may refuse and ask; what they allow
counts only after you approved the file's current content. Calls that you answered with "always" are
listed with the ID that 'rules revoke' takes.`,
		RunE: a.withService(func(_ *cobra.Command, _ []string, svc *session.Service) error {
			return a.rulesShow(svc, dir)
		}),
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", ".", "directory whose rules to show")
	a.jsonFlag(cmd, "one JSON object a rule")
	cmd.AddCommand(a.rulesApproveCommand(&dir), &cobra.Command{
		Use:   "revoke ID",
		Short: "Ask again about a call that always runs in a directory",
		Args:  cobra.ExactArgs(1),
		RunE: a.withService(func(_ *cobra.Command, args []string, svc *session.Service) error {
			call, err := svc.RevokeCall(dir, args[0])
			if err == nil {
				a.printf("%s is asked about again\n", call)
			}
			return err
		}),
	})
	return cmd
}

func (a *app) rulesShow(svc *session.Service, dir string) error {
	rules, err := svc.ListRules(dir)
	if err != nil {
		return err
	}
	for _, r := range rules {
		if err := a.show(r, func() { a.out().Rule(r) }); err != nil {
			return err
		}
	}
	if len(rules) == 0 && !a.json {
		a.printf("no rules: neither %s nor %s has any\n", svc.Home.Rules(), session.ProjectRules)
	}
	return nil
}

func (a *app) rulesApproveCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{Use: "approve", Short: "Approve what a project's rules allow at present"}
	return a.approveCommand(cmd, func(context.Context, []string) (p pending, err error) {
		svc, err := a.service()
		if err != nil {
			return p, err
		}
		real, err := session.RealDir(*dir)
		if err != nil {
			return p, err
		}
		_, project, approved, err := svc.Rules(real)
		switch {
		case err != nil:
			return p, err
		case project.Hash == "":
			return p, exit.Usagef("%s: there is no such file", filepath.Join(real, session.ProjectRules))
		}
		p = pending{what: "rules", question: "Approve these rules?"}
		if !approved {
			p.approve = approveAll(svc.Home, []consent.Approval{project.Approval(real)})
		}
		for _, r := range project.Rules {
			p.text += fmt.Sprintf("%s %s\n", r.Verdict, r)
		}
		return p, nil
	})
}

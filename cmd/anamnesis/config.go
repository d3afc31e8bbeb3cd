//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/settings"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) configured(dir string) (*session.Service, *settings.Settings, error) {
	h, err := a.home()
	if err != nil {
		return nil, nil, err
	}
	set, err := settings.Load(h, dir, a.getenv)
	if err != nil {
		return nil, nil, err
	}
	svc, err := a.serviceKeyed(set.KeyEnv())
	return svc, set, err
}

func (a *app) configCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show each setting with its value and where it comes from",
		Long: "Show each setting with its value and where it comes from. A flag wins over the environment\n" +
			"(ANAMNESIS_MODEL and so on), then the project's " + settings.ProjectFile + " (the nearest, up to the\n" +
			"root of the git repository), then your own config.yaml. A project's file may make approval, sandbox\n" +
			"and limits stricter. Its other values for these, the models, the server's address and the key are\n" +
			"used only after you approved the file's current content.",
		RunE: func(*cobra.Command, []string) error {
			if _, err := session.RealDir(dir); err != nil {
				return err
			}
			_, set, err := a.configured(dir)
			if err != nil {
				return err
			}
			return a.show(set.Values, func() { a.out().Settings(set) })
		},
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", ".", "directory whose settings to show")
	a.jsonFlag(cmd, "a JSON array")
	cmd.AddCommand(a.configApproveCommand(&dir))
	return cmd
}

func (a *app) configApproveCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{Use: "approve", Short: "Approve a project's current settings"}
	return a.approveCommand(cmd, func(context.Context, []string) (p pending, err error) {
		svc, set, err := a.configured(*dir)
		switch {
		case err != nil:
			return p, err
		case !set.Project:
			return p, exit.Usagef("%s: there is no such file in %s or above it in its repository, and no eas.yaml",
				settings.ProjectFile, *dir)
		}
		p = pending{what: "config", question: "Approve these settings?", approve: approveAll(svc.Home, set.Missing)}
		for _, v := range set.Values {
			if v.Ignored != "" || v.Bounded {
				p.text += fmt.Sprintf("%s: %s\n", v.Key, cmp.Or(v.Ignored, v.Text))
			}
		}
		return p, nil
	})
}

// pending is something of a project that waits for an approval by content.
type pending struct {
	what, name string // the name is printed with the approval; may be empty
	question   string
	text       string       // describes what is approved
	approve    func() error // nil: it is approved already
}

// approveAll returns a function that records approvals, nil if there are none.
func approveAll(h taskdir.Home, approvals []consent.Approval) func() error {
	if len(approvals) == 0 {
		return nil
	}
	return func() error { return consent.OpenTrust(h.Approvals()).Approve(approvals...) }
}

// approve shows what is pending and approves it, after the user has agreed.
func (a *app) approve(ctx context.Context, p pending, yes bool) error {
	if p.approve == nil {
		a.println("approved already")
		return nil
	}
	a.printf("%s", view.Clean(p.text))
	if err := a.tty().Confirm(ctx, strings.TrimSpace(p.what+" "+p.name), p.question, yes); err != nil {
		return err
	}
	if err := p.approve(); err != nil {
		return err
	}
	a.println(strings.TrimSpace("approved " + p.name))
	return nil
}

func (a *app) approveCommand(
	cmd *cobra.Command, find func(ctx context.Context, args []string) (pending, error),
) *cobra.Command {
	var yes bool
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := find(cmd.Context(), args)
		if err != nil {
			return err
		}
		return a.approve(cmd.Context(), p, yes)
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "approve without asking")
	return cmd
}

//go:build unix

package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/settings"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
)

// configured returns the service and the settings of a directory.
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
		Long: "Show each setting with its value and where it comes from. A flag wins over the environment (ANAMNESIS_MODEL and so on),\n" +
			"then the project's " + settings.ProjectFile +
			" (the nearest one, up to the root of the git repository), then your own config.yaml.\n" +
			"A project's file may make approval, sandbox and limits stricter. Its other values for these, the models, the server's address and\n" +
			"the key are used only after you approved the file's current content.",
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
	return a.approveCommand("Approve a project's current settings", func() (p pending, err error) {
		svc, set, err := a.configured(*dir)
		switch {
		case err != nil:
			return p, err
		case !set.Project:
			return p, exit.Usagef("%s: there is no such file in %s or above it in its repository, and no eas.yaml",
				settings.ProjectFile, *dir)
		}
		p = pending{svc: svc, what: "config", question: "Approve these settings?", approvals: set.Missing}
		for _, v := range set.Values {
			if v.Ignored != "" || v.Bounded {
				p.lines = append(p.lines, fmt.Sprintf("%s: %s", v.Key, cmp.Or(v.Ignored, v.Text)))
			}
		}
		return p, nil
	})
}

// pending is a project's file that waits for an approval by content.
type pending struct {
	svc            *session.Service
	what, question string
	lines          []string           // describe what is approved
	approvals      []consent.Approval // those that are missing
}

// approveCommand approves what find returns, after the user has seen it.
func (a *app) approveCommand(short string, find func() (pending, error)) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "approve",
		Short: short,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := find()
			if err != nil {
				return err
			}
			if len(p.approvals) == 0 {
				a.println("approved already")
				return nil
			}
			for _, line := range p.lines {
				a.println(view.Clean(line))
			}
			if err := a.tty().Confirm(cmd.Context(), p.what, p.question, yes); err != nil {
				return err
			}
			for _, approval := range p.approvals {
				if err := consent.OpenTrust(p.svc.Home.Approvals()).Approve(approval); err != nil {
					return err
				}
			}
			a.println("approved")
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "approve without asking")
	return cmd
}

//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/settings"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
)

// configured returns the service and the settings that count in a directory.
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
			"then the project's " + settings.ProjectFile + ", then your own config.yaml.\n" +
			"A project's file may make approval, sandbox and limits stricter. Its other values for these, the server's address and\n" +
			"the key are used only after you approved the file's current content.",
		RunE: func(*cobra.Command, []string) error {
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
	var yes bool
	cmd := &cobra.Command{
		Use:   "approve",
		Short: "Approve a project's current settings",
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, set, err := a.configured(*dir)
			switch {
			case err != nil:
				return err
			case set.Project.Hash == "":
				return exit.Usagef("%s: there is no such file in %s", settings.ProjectFile, *dir)
			case set.Approved:
				a.println("approved already")
				return nil
			}
			for _, v := range set.Values {
				if v.Ignored != "" {
					a.printf("%s: %s\n", v.Key, view.Clean(v.Ignored))
				}
			}
			if err := a.confirm(cmd.Context(), "config", "Approve these settings?", yes); err != nil {
				return err
			}
			if err := consent.OpenTrust(svc.Home.Approvals()).Approve(set.Project); err != nil {
				return err
			}
			a.println("approved")
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "approve without asking")
	return cmd
}

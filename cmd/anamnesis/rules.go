//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/taskdir"
)

// projectRules is a project's file of rules, beneath its directory.
const projectRules = ".anamnesis/rules.yaml"

// rules are the rules that were given as flags.
func (f *agentFlags) rules() ([]guard.Rule, error) {
	var out []guard.Rule
	for _, list := range []struct {
		flag    string
		texts   []string
		verdict guard.Verdict
	}{{"--allow", f.allow, guard.Allow}, {"--ask", f.ask, guard.Ask}, {"--deny", f.deny, guard.Refuse}} {
		rules, err := guard.ParseRules(list.texts, list.verdict, list.flag)
		if err != nil {
			return nil, usageError("%s: %v", list.flag, err)
		}
		out = append(out, rules...)
	}
	return out, nil
}

// ruleFiles are the person's rules and those of a directory, with whether those
// were approved as they are now.
func ruleFiles(h taskdir.Home, dir string) (own, project guard.RuleFile, approved bool, err error) {
	if own, err = guard.ReadRules(h.Rules()); err != nil {
		return own, project, false, usageError("%v", err)
	}
	if dir, err = realDir(dir); err != nil {
		return own, project, false, err
	}
	if project, err = guard.ReadRules(filepath.Join(dir, projectRules)); err != nil {
		return own, project, false, usageError("%v", err)
	}
	if project.Hash != "" {
		approved, err = guard.OpenTrust(h.Approvals()).Approved(project.Approval(dir))
	}
	return own, project, approved, err
}

// standingRules are the rules that hold in a directory. What a project's own
// allow counts only when a person approved the file as it is.
func (a *app) standingRules(h taskdir.Home, dir string) ([]guard.Rule, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // opening the task says what to do
	}
	own, project, approved, err := ruleFiles(h, dir)
	if err != nil {
		return nil, err
	}
	rules := project.Rules
	if !approved {
		rules = guard.Tightening(rules)
		if n := len(project.Rules) - len(rules); n > 0 {
			fmt.Fprintf(a.stderr, "anamnesis: %s allows %d kind(s) of calls, and that was not approved: only what it forbids or asks about counts; 'anamnesis rules approve' shows it\n", projectRules, n)
		}
	}
	return append(own.Rules, rules...), nil
}

func (a *app) rulesCommand() *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Show the rules that allow, ask about or refuse calls in a directory",
		Long: "Show the rules that hold for tasks in a directory: yours, from rules.yaml in the configuration, and the project's, from\n" +
			projectRules + ". A project's rules may forbid and ask; what they allow counts once you approved the file as it is.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.rulesShow(dir, asJSON) },
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", ".", "directory the rules hold in")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a rule")
	cmd.AddCommand(a.rulesApproveCommand(&dir))
	return cmd
}

// shownRule is a rule as the verb prints it.
type shownRule struct {
	Verdict string `json:"verdict"` // allow | ask | deny
	Rule    string `json:"rule"`
	From    string `json:"from"`
	Counts  bool   `json:"counts"` // false: the project allows it, and nobody approved that
}

func (a *app) rulesShow(dir string, asJSON bool) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	own, project, approved, err := ruleFiles(h, dir)
	if err != nil {
		return err
	}
	all := append(own.Rules, project.Rules...)
	for _, r := range all {
		s := shownRule{Verdict: string(r.Verdict), Rule: r.String(), From: r.From, Counts: r.Verdict != guard.Allow || r.From != project.Path || approved}
		if r.Verdict == guard.Refuse {
			s.Verdict = "deny"
		}
		if asJSON {
			if err := a.printJSON(s); err != nil {
				return err
			}
			continue
		}
		note := ""
		if !s.Counts {
			note = " (not approved: does not count)"
		}
		fmt.Fprintf(a.stdout, "%-5s %s  %s%s\n", s.Verdict, view.Clean(s.Rule), view.Clean(s.From), note)
	}
	if len(all) == 0 && !asJSON {
		fmt.Fprintf(a.stdout, "no rules: neither %s nor %s has any\n", h.Rules(), projectRules)
	}
	return nil
}

func (a *app) rulesApproveCommand(dir *string) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "approve",
		Short: "Approve what a project's rules allow, as they are now",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			real, err := realDir(*dir)
			if err != nil {
				return err
			}
			_, project, approved, err := ruleFiles(h, real)
			switch {
			case err != nil:
				return err
			case project.Hash == "":
				return usageError("%s: there is no such file", filepath.Join(real, projectRules))
			case approved:
				fmt.Fprintln(a.stdout, "approved already")
				return nil
			}
			for _, r := range project.Rules {
				fmt.Fprintf(a.stdout, "%s %s\n", r.Verdict, view.Clean(r.String()))
			}
			if err := a.confirm(cmd.Context(), "rules", "Approve these rules?", yes); err != nil {
				return err
			}
			if err := guard.OpenTrust(h.Approvals()).Approve(project.Approval(real)); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "approved")
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "approve without asking")
	return cmd
}

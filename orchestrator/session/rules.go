package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/consent"
)

// ProjectRules is a project's file of rules, beneath its directory.
const ProjectRules = ".anamnesis/rules.yaml"

// Rules returns the user's rules and those of a directory, and whether the latter's present
// content was approved.
func (s *Service) Rules(dir string) (own, project consent.RuleFile, approved bool, err error) {
	if own, err = consent.ReadRules(s.Home.Rules()); err != nil {
		return own, project, false, Usagef("%v", err)
	}
	if dir, err = RealDir(dir); err != nil {
		return own, project, false, err
	}
	if project, err = consent.ReadRules(filepath.Join(dir, ProjectRules)); err != nil {
		return own, project, false, Usagef("%v", err)
	}
	if project.Hash != "" {
		approved, err = s.trust().Approved(project.Approval(dir))
	}
	return own, project, approved, err
}

// standingRules returns the rules of a directory. A project's allow rules count only if the
// user approved the file's present content.
func (o *opening) standingRules(dir string) ([]approval.Rule, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // opening the task reports it
	}
	own, project, approved, err := o.Rules(dir)
	if err != nil {
		return nil, err
	}
	rules := project.Rules
	if !approved {
		rules = approval.Tightening(rules)
		if n := len(project.Rules) - len(rules); n > 0 {
			o.warn("%s allows %s of calls, and that was not approved: only what it forbids or asks about counts before you approve the rules", ProjectRules, quote.Number(n, "kind"))
		}
	}
	return append(own.Rules, rules...), nil
}

// ListedRule is a rule that holds in a directory.
type ListedRule struct {
	Verdict string `json:"verdict"` // allow | ask | deny
	Rule    string `json:"rule"`
	From    string `json:"from"`
	Counts  bool   `json:"counts"` // false: an allow rule of a project that is not approved
}

// ListRules lists the user's rules and those of a directory.
func (s *Service) ListRules(dir string) ([]ListedRule, error) {
	own, project, approved, err := s.Rules(dir)
	var out []ListedRule
	for _, r := range append(own.Rules, project.Rules...) {
		l := ListedRule{Verdict: string(r.Verdict), Rule: r.String(), From: r.From, Counts: r.Verdict != approval.Allow || r.From != project.Path || approved}
		if r.Verdict == approval.Refuse {
			l.Verdict = "deny"
		}
		out = append(out, l)
	}
	return out, err
}

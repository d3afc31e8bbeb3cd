package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/gate"
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
			o.warn("%s allows %s of calls, and that was not approved: only what it forbids or asks about counts "+
				"before you approve the rules", ProjectRules, quote.Number(n, "kind"))
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
	// ID names a call that the user always lets run in the directory; see RevokeCall.
	ID string `json:"id,omitempty"`
}

// callIDLen is the length of the name of a call that always runs: the beginning of its hash.
const callIDLen = 8

// ListRules lists the user's rules, those of a directory, and the calls that the user always lets run there.
func (s *Service) ListRules(dir string) ([]ListedRule, error) {
	own, project, approved, err := s.Rules(dir)
	var out []ListedRule
	for _, r := range append(own.Rules, project.Rules...) {
		counts := r.Verdict != approval.Allow || r.From != project.Path || approved
		l := ListedRule{Verdict: string(r.Verdict), Rule: r.String(), From: r.From, Counts: counts}
		if r.Verdict == approval.Refuse {
			l.Verdict = "deny"
		}
		out = append(out, l)
	}
	if err != nil {
		return out, err
	}
	calls, err := s.calls(dir)
	for _, c := range calls {
		l := ListedRule{Verdict: string(approval.Allow), Rule: c.Name, From: s.Home.Approvals(), Counts: true}
		l.ID = c.Hash[:callIDLen]
		out = append(out, l)
	}
	return out, err
}

// calls lists the calls that the user always lets run in a directory.
func (s *Service) calls(dir string) ([]consent.Approval, error) {
	dir, err := RealDir(dir)
	if err != nil {
		return nil, err
	}
	all, err := s.trust().List()
	return slices.DeleteFunc(all, func(a consent.Approval) bool {
		return a.Kind != gate.KindCall || a.Dir != dir || len(a.Hash) < callIDLen
	}), err
}

// RevokeCall takes back that a call always runs in a directory, and returns the call.
func (s *Service) RevokeCall(dir, id string) (string, error) {
	calls, err := s.calls(dir)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(calls, func(a consent.Approval) bool { return a.Hash[:callIDLen] == id })
	if i < 0 {
		return "", Usagef("no call %s always runs in %s", id, dir)
	}
	return calls[i].Name, s.trust().Revoke(calls[i])
}

package consent

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/guard/approval"
)

// Limits of a file of rules.
const (
	maxRulesBytes = 1 << 20
	maxRules      = 1_000
)

// RuleFile is a file of rules as it was read: the lists allow, ask and deny.
type RuleFile struct {
	Path  string
	Rules []approval.Rule // in the order allow, ask, deny
	Hash  string          // SHA-256 of its bytes, hex; empty: there is no file
}

// ReadRules reads a file of rules; a missing file has none. Unknown keys and malformed rules
// are errors that name the file.
func ReadRules(path string) (RuleFile, error) {
	f := RuleFile{Path: path}
	data, err := durable.ReadFile(path, maxRulesBytes)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("read rules: %w", err)
	}
	var lists struct {
		Allow []string `yaml:"allow"`
		Ask   []string `yaml:"ask"`
		Deny  []string `yaml:"deny"`
	}
	if err := userfile.Load(path, data, &lists, "the keys are allow, ask and deny, each a list of rules"); err != nil {
		return f, fmt.Errorf("read rules: %w", err)
	}
	if n := len(lists.Allow) + len(lists.Ask) + len(lists.Deny); n > maxRules {
		return f, fmt.Errorf("read rules %s: %d rules, at most %d are taken", path, n, maxRules)
	}
	if f.Rules, err = approval.ParseRules(path, lists.Allow, lists.Ask, lists.Deny); err != nil {
		return f, fmt.Errorf("read rules %s: %w", path, err)
	}
	f.Hash = fmt.Sprintf("%x", sha256.Sum256(data))
	return f, nil
}

// Approval describes a project's file of rules as a user approves it: its content, for its
// directory.
func (f RuleFile) Approval(dir string) Approval {
	return Approval{Kind: "rules", Name: "rules.yaml", Dir: dir, Hash: f.Hash}
}

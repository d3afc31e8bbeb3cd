//go:build unix

package settings

import (
	"math"

	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/model/openai"
	"anamnesis/orchestrator/session"
)

// CheckFlags rejects values that a flag cannot have. given reports whether a flag was set: a
// limit of 0 does not mean "no limit".
func CheckFlags(f *session.Request, given func(flag string) bool) error {
	switch {
	case f.Limits.Steps < 0 || f.Limits.Steps == 0 && given("max-steps"):
		return session.Usagef("--max-steps %d: want a positive number, or leave it out", f.Limits.Steps)
	case f.Limits.Tokens < 0 || f.Limits.Tokens == 0 && given("max-tokens"):
		return session.Usagef("--max-tokens %d: want a positive number, or leave it out", f.Limits.Tokens)
	case f.Limits.USD < 0 || f.Limits.USD == 0 && given("max-cost") || math.IsNaN(f.Limits.USD) ||
		math.IsInf(f.Limits.USD, 0):
		return session.Usagef("--max-cost %v: want a number of US dollars above zero, such as 0.50", f.Limits.USD)
	case f.Limits.Time < 0 || f.Limits.Time == 0 && given("max-time"):
		return session.Usagef("--max-time %s: want a time above zero, such as 30m", f.Limits.Time)
	case f.Patience < 0 || f.Patience == 0 && given("patience"):
		return session.Usagef("--patience %s: want a time above zero, such as 2h", f.Patience)
	case f.Images != "" && f.Images != string(openai.ImagesSend) && f.Images != string(openai.ImagesNever):
		return session.Usagef("--images %q: want send or never", f.Images)
	case f.ToolsWait <= 0:
		return session.Usagef("--tools-wait %s: want a time above zero, such as 10s", f.ToolsWait)
	case f.EAS <= 0 && given("eas"):
		return session.Usagef(
			"--eas %d: want a positive number of tokens, such as --eas 8000, or no --eas for the table's", f.EAS)
	case f.Window <= 0 && given("window"):
		return session.Usagef("--window %d: want a positive number of tokens, such as --window 128000, or no "+
			"--window for the table's", f.Window)
	}
	if f.Approval != "" { // before a model is looked for
		if _, err := approval.ParseMode(f.Approval); err != nil {
			return session.Usagef("--approval: %v", err)
		}
	}
	return nil
}

// Package approval decides which calls may run: by the mode, the rules of the user and of the
// project, and the known effects of a command line. It runs nothing.
package approval

import (
	"fmt"
	"slices"
	"strings"
)

// Mode decides on calls that could change something.
type Mode string

// The approval modes.
const (
	ModeAsk   Mode = "ask"   // a user decides each call
	ModeEdits Mode = "edits" // file edits run, other calls are asked about
	ModeAuto  Mode = "auto"  // everything runs
	ModeDeny  Mode = "deny"  // nothing runs that could change something
)

// ParseMode reads a mode's name. The error lists the valid names.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case ModeAsk, ModeEdits, ModeAuto, ModeDeny:
		return m, nil
	}
	return "", fmt.Errorf("approval mode %q: want ask, edits, auto or deny", s)
}

// StricterMode returns the stricter of two modes; an empty mode is no limit.
func StricterMode(a, b Mode) Mode {
	list := []Mode{ModeAuto, ModeEdits, ModeAsk, ModeDeny}
	if at := max(slices.Index(list, a), slices.Index(list, b)); at >= 0 {
		return list[at]
	}
	return a
}

// Facts is the input of a decision: a call's tool and what its spec declares.
type Facts struct {
	Tool     string // the tool's name
	ReadOnly bool   // the tool itself changes nothing
	Edits    bool   // the tool changes only files of the world
	Command  string // the command line it would run; empty: none
	// Autorun are the files it would write that other programs run by themselves, each with the
	// program.
	Autorun []string
}

// Network is the name by which modes and rules decide on a command's access to the network, if
// a sandbox denies it.
const Network = "Network"

// Verdict is the outcome of a decision.
type Verdict string

// The verdicts, from the mildest to the strictest.
const (
	Allow  Verdict = "allow"
	Ask    Verdict = "ask"
	Refuse Verdict = "refuse"
)

// Decision is whether a call may run, and the reason.
type Decision struct {
	Verdict Verdict
	// By is "mode:deny", "rule:Bash", or "read-only".
	By string
	// Text explains a refusal to the model, or is the question to the user; empty for Allow.
	Text string
}

// Decide is pure. The strictest rule that matches wins over any mode; a read-only tool that no
// rule names is allowed in any mode; the mode decides the rest. An unknown mode or verdict
// refuses. What writes a file that other programs run by themselves is asked about in every mode
// but auto, whatever allows it.
//
// Rules about commands examine each command of a line. They allow a line if they allow every
// one of its commands, and nothing in it is hidden; they refuse it if they refuse one command,
// and ask if one may need asking. What rules cannot see through is never allowed by them, and
// asked about even in mode auto if a rule refuses or asks.
func Decide(mode Mode, f Facts, rules []Rule) Decision {
	d := decide(mode, f, rules)
	if d.Verdict == Allow && mode != ModeAuto && len(f.Autorun) > 0 {
		return decision(Ask, ByAutorun+strings.Join(f.Autorun, ", "), f, "")
	}
	return d
}

// ByAutorun begins the By of a question about files that other programs run by themselves.
const ByAutorun = "autorun:"

func decide(mode Mode, f Facts, rules []Rule) Decision {
	if f.Command != "" {
		if d, ok := decideCommand(f, rules); ok {
			return d
		}
	} else if r, ok := strictest(rules, func(r Rule) bool { return r.Command == "" && r.about(f.Tool) }); ok {
		return ruled(r, f)
	}
	if f.ReadOnly {
		return Decision{Verdict: Allow, By: "read-only"}
	}
	by := "mode:" + string(mode)
	switch {
	case mode == ModeAuto, mode == ModeEdits && f.Edits:
		return Decision{Verdict: Allow, By: by}
	case mode == ModeAsk, mode == ModeEdits:
		return decision(Ask, by, f, "")
	case mode == ModeDeny:
		return decision(Refuse, by, f, denyText(f))
	}
	_, err := ParseMode(string(mode))
	return decision(Refuse, by, f, fmt.Sprintf("%s was not run: %v.", f.Tool, err))
}

// denyText names the mildest mode that would let the call run.
func denyText(f Facts) string {
	want := "auto"
	if f.Edits && len(f.Autorun) == 0 {
		want = "edits"
	}
	return fmt.Sprintf("%s was not run: this task runs in approval mode deny, so only read-only tools are allowed. A "+
		"user can let it run in mode %s.", f.Tool, want)
}

func ruled(r Rule, f Facts) Decision {
	where := ""
	if r.From != "" {
		where = " of " + r.From
	}
	refusal := fmt.Sprintf("%s was not run: a rule%s (%s) refuses it.", f.Tool, where, r)
	return decision(r.Verdict, "rule:"+r.String(), f, refusal)
}

func decision(v Verdict, by string, f Facts, refusal string) Decision {
	switch v {
	case Allow:
		return Decision{Verdict: Allow, By: by}
	case Ask:
		return Decision{Verdict: Ask, By: by, Text: fmt.Sprintf("Allow %s?", f.Tool)}
	}
	return Decision{Verdict: Refuse, By: by, Text: refusal}
}

// StricterDecision returns the stricter of two decisions on a call; the first if they are
// equal.
func StricterDecision(a, b Decision) Decision {
	if b.Verdict.rank() > a.Verdict.rank() {
		return b
	}
	return a
}

// Package approval decides which calls may run: by the mode, the rules of the user and of
// the project, and what a command line is known to do. It runs nothing.
package approval

import "fmt"

// Mode says what happens to a call that could change something.
type Mode string

// The approval modes.
const (
	ModeAsk   Mode = "ask"   // a user decides each call
	ModeEdits Mode = "edits" // file edits run, everything else is asked about
	ModeAuto  Mode = "auto"  // everything runs
	ModeDeny  Mode = "deny"  // nothing runs that could change something
)

// ParseMode reads a mode's name. The error lists the names there are.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case ModeAsk, ModeEdits, ModeAuto, ModeDeny:
		return m, nil
	}
	return "", fmt.Errorf("approval mode %q: want ask, edits, auto or deny", s)
}

// Facts is what a decision looks at: a call's tool and what the tool declares
// about itself.
type Facts struct {
	Tool     string // the tool's name
	ReadOnly bool   // it changes nothing by itself
	Edits    bool   // it changes files of the world and nothing else
	Command  string // the command line it would run; empty where it runs none
}

// Network is the name under which modes and rules decide on a command's access
// to the network, where a sandbox holds it back.
const Network = "Network"

// Verdict is the outcome of a decision.
type Verdict string

// The verdicts, from the mildest to the strictest.
const (
	Allow  Verdict = "allow"
	Ask    Verdict = "ask"
	Refuse Verdict = "refuse"
)

// Decision says whether a call may run, and who says so.
type Decision struct {
	Verdict Verdict
	// By is "mode:deny", "rule:Bash", or "read-only".
	By string
	// Text is what the model is told about a refusal, and a user is asked
	// otherwise; empty for Allow.
	Text string
}

// Decide is pure. The strictest rule that matches wins over any mode; a tool
// no rule names is allowed when it is read-only, whatever the mode; the mode
// decides the rest. An unknown mode or verdict refuses.
//
// Rules about commands look at each command of a line, wherever in it it
// stands. A line is allowed by them when every one of its commands is, and
// nothing in it is out of sight; it is refused when one command is, and asked
// about when one may be. What rules cannot see through is never allowed by them,
// and asked about even in mode auto where a rule refuses or asks.
func Decide(mode Mode, f Facts, rules []Rule) Decision {
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
	switch mode {
	case ModeAuto:
		return Decision{Verdict: Allow, By: by}
	case ModeEdits:
		if f.Edits {
			return Decision{Verdict: Allow, By: by}
		}
		return decision(Ask, by, f, "")
	case ModeAsk:
		return decision(Ask, by, f, "")
	case ModeDeny:
		return decision(Refuse, by, f, denyText(f))
	}
	return decision(Refuse, by, f, fmt.Sprintf("%s was not run: approval mode %q is unknown (--approval takes ask, edits, auto or deny).", f.Tool, mode))
}

// denyText names the flag and the mildest mode that would let the call run.
func denyText(f Facts) string {
	want := "auto"
	if f.Edits {
		want = "edits"
	}
	return fmt.Sprintf("%s was not run: this task runs with --approval deny, so only read-only tools are allowed. A user can let it run with --approval %s.", f.Tool, want)
}

// ruled is a rule's decision.
func ruled(r Rule, f Facts) Decision {
	where := ""
	if r.From != "" {
		where = " of " + r.From
	}
	return decision(r.Verdict, "rule:"+r.String(), f, fmt.Sprintf("%s was not run: a rule%s (%s) refuses it.", f.Tool, where, r))
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

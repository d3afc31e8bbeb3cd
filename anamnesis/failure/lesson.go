package failure

import (
	"path"
	"slices"
	"strings"
)

// Lesson reports whether a failed call holds something to learn from, and why
// not. A search without hits, an abort, a timeout chosen too short, a refusal,
// an unknown tool and a bad argument hold nothing.
func Lesson(o Output) (ok bool, reason string) {
	p := parse(o)
	exit := p.exit
	if o.HasExit {
		exit = o.Exit
	}
	names := programs(o.Command)
	switch end := p.abortReason(o.HasExit || exit >= 0); {
	case o.Refused:
		return false, "refused"
	case end != "":
		return false, end
	// A shell reports the end by a signal as 128 and its number: SIGINT is 2, SIGTERM 15.
	case exit == 130, exit == 143:
		return false, "aborted"
	// timeout(1) exits with 124, and with 137 if it had to kill.
	case (exit == 124 || exit == 137) && slices.Contains(names, "timeout"):
		return false, "timeout"
	case exit == 1 && slices.ContainsFunc(names, exitsToAnswer) && p.answersNo(o.Command, names[len(names)-1]):
		return false, "no hit"
	}
	return true, ""
}

// answersNo reports whether a command with a program that exits with 1 to say no, and did,
// only answered no: it printed nothing, or that program came last and what
// others printed before it names no failure.
func (p *page) answersNo(command, last string) bool {
	f := p.telling()
	compares := strings.HasSuffix(last, "diff") || last == "cmp" // what it printed says how two files differ
	// Behind &&, the code 1 may come from an earlier command that failed, after which the last one never ran.
	return f.Index < 0 || !f.Certain && !compares && exitsToAnswer(last) && !strings.Contains(command, "&&")
}

// exitsToAnswer reports whether a program exits with 1 to say no.
func exitsToAnswer(program string) bool {
	switch program {
	case "grep", "egrep", "fgrep", "rg", "ag", "zgrep", "pgrep", "git grep", "diff", "cmp", "git diff",
		"test", "[", "[[", "which", "command", "type":
		return true
	}
	return false
}

// wrappers stand before the program that a command is about.
var wrappers = []string{"sudo", "env", "time", "nice", "nohup", "xargs", "!", "if", "then", "while", "do"}

// programs returns the programs that a shell command names, by base name, as far
// as that shows without a shell: quoted text is not split.
func programs(command string) []string {
	var out []string
	quote, start := rune(0), 0
	part := func(s string) {
		words := strings.Fields(s)
		for len(words) > 0 && (strings.Contains(words[0], "=") || slices.Contains(wrappers, words[0])) {
			words = words[1:]
		}
		switch {
		case len(words) > 1 && words[0] == "git":
			out = append(out, "git "+words[1])
		case len(words) > 0:
			out = append(out, path.Base(words[0]))
		}
	}
	for i, r := range command {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case strings.ContainsRune("|;&\n(", r):
			part(command[start:i])
			start = i + 1
		}
	}
	part(command[start:])
	return out
}

// abortReason returns why an agent's harness ended the call early or did not start it, such as
// "timeout"; empty if it finished. The harness says so in the first or the last words of the output.
// ran: a process ran, so that its own words do not count for the harness's.
func (p *page) abortReason(ran bool) string {
	const most = 3
	var words []string
	for _, l := range p.lines {
		if strings.TrimSpace(l) != "" {
			words = append(words, l)
		}
	}
	for i, l := range words {
		if i >= most && i < len(words)-most {
			continue
		}
		for _, e := range endings {
			if !(ran && e.notRun) && e.re().MatchString(l) {
				return e.reason
			}
		}
	}
	return ""
}

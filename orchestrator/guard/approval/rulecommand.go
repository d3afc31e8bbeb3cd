package approval

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// reading is a command line as rules see it.
type reading struct {
	commands []shell.Simple
	// opaque is why the line may do more than its commands show, empty if it does not. A rule
	// about commands never allows an opaque line.
	opaque string
}

func read(line string) reading {
	commands, err := shell.Parse(line)
	r := reading{commands: commands, opaque: shell.Hidden(line)}
	if err != nil && r.opaque == "" {
		r.opaque = "it cannot be read as a whole"
	}
	for i, s := range commands {
		if r.opaque != "" {
			break
		}
		if r.opaque = opaque(s); r.opaque == "" && s.Program() == "xargs" {
			r.opaque = fed(commands, i)
		}
	}
	return r
}

// decideCommand returns the decision of the rules on a command line. It returns false if they
// leave it to the mode.
func decideCommand(f Facts, rules []Rule) (Decision, bool) {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return !r.about(f.Tool) })
	r := read(f.Command)
	tight := Tightening(rules)
	hit, found := strictest(tight, func(rule Rule) bool {
		about := func(s shell.Simple) bool { return names(rule, s, false) }
		return rule.Command == "" || slices.ContainsFunc(r.commands, about)
	})
	if !found && len(tight) > 0 { // all of these are about commands
		hit, found = strictest(tight, func(rule Rule) bool {
			about := func(s shell.Simple) bool { return names(rule, s, true) || mayLaunch(rule, s) }
			return slices.ContainsFunc(r.commands, about)
		})
		if !found && r.opaque != "" {
			question := "Allow " + f.Tool + "? Its rules cannot look into it: " + r.opaque + "."
			return Decision{Verdict: Ask, By: "opaque", Text: question}, true
		}
		hit.Verdict = Ask // the rule may or may not apply
	}
	if found {
		return ruled(hit, f), true
	}
	if whole, ok := strictest(rules, func(rule Rule) bool { return rule.Command == "" && rule.Verdict == Allow }); ok {
		return ruled(whole, f), true
	}
	if by, ok := covered(r, rules); ok {
		return Decision{Verdict: Allow, By: "rule:" + by}, true
	}
	return Decision{}, false
}

// covered reports whether rules allow every command of a line, and returns the name of the
// first of those.
func covered(r reading, rules []Rule) (by string, ok bool) {
	if r.opaque != "" {
		return "", false
	}
	rules = slices.DeleteFunc(slices.Clone(rules), func(rule Rule) bool { return rule.Verdict != Allow })
	// After a cd a relative path is not the one that the rule means.
	moved := slices.ContainsFunc(r.commands, func(s shell.Simple) bool { return s.Program() == "cd" })
	for i, s := range r.commands {
		if slices.ContainsFunc(s.Assigns, func(a shell.Assign) bool {
			return a.Value.Dynamic || !shell.InList(harmlessVariables, a.Name)
		}) {
			return "", false
		}
		args := false
		switch rule, found := allowing(rules, s.Words); {
		case len(s.Words) == 0, free(s), i+1 < len(r.commands) && wraps(s, r.commands[i+1]):
		case !found || moved && strings.Contains(s.Words[0].Text, "/"):
			return "", false
		default:
			args = strings.HasSuffix(rule.Command, " *")
			by = cmp.Or(by, rule.String())
		}
		for _, redirect := range s.Redirects {
			elsewhere := moved && redirect.Writes() && !path.IsAbs(redirect.File.Text)
			if elsewhere || !redirectCovered(redirect, rules, args) {
				return "", false
			}
		}
	}
	return by, by != ""
}

func allowing(rules []Rule, words []shell.Word) (Rule, bool) {
	i := slices.IndexFunc(rules, func(r Rule) bool { return fits(strings.Fields(r.Command), words) })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

// fits compares a command's words with a pattern's, for a rule that allows. A word that is
// known only at run time fits a last * only.
func fits(pattern []string, words []shell.Word) bool {
	for i, p := range pattern {
		if p == "*" && i == len(pattern)-1 {
			return true
		}
		if i >= len(words) || words[i].Dynamic || !shell.Glob(p, words[i].Text) ||
			p != "*" && climbs(words[i].Text) && !climbs(p) {
			return false
		}
	}
	return len(words) == len(pattern)
}

// climbs reports whether a word is a path with .. in it: build/* does not match build/../src.
func climbs(word string) bool {
	return slices.Contains(strings.Split(word, "/"), "..")
}

// redirectCovered reports whether a redirection needs no rule, or has one. Reading a file is
// allowed if args may name any file.
func redirectCovered(r shell.Redirect, rules []Rule, args bool) bool {
	if strings.HasPrefix(r.Op, "<<") || duplicates(r) {
		return true
	}
	if r.File.Dynamic {
		return false
	}
	op := ">"
	if r.Op == "<" {
		op = "<"
		if args {
			return true
		}
	} else if r.File.Text == "/dev/null" {
		return true
	}
	_, ok := allowing(rules, []shell.Word{{Text: op}, r.File})
	return ok
}

// duplicates reports whether a redirection only joins two open files: 2>&1.
func duplicates(r shell.Redirect) bool {
	return (r.Op == ">&" || r.Op == "<&") && !r.File.Dynamic && r.File.Text != "" &&
		strings.Trim(r.File.Text, "0123456789-") == ""
}

// names reports whether a rule that refuses or asks is about a command: its program under any
// path, its words with options between them. The rule has a command. With maybe, words known only at run time fit
// anything.
func names(rule Rule, s shell.Simple, maybe bool) bool {
	pattern := strings.Fields(rule.Command)
	if pattern[0] == ">" || pattern[0] == "<" {
		return slices.ContainsFunc(s.Redirects, func(r shell.Redirect) bool {
			fit := strings.Contains(r.Op, pattern[0]) && !strings.HasPrefix(r.Op, "<<") && !duplicates(r)
			return fit && (maybe && r.File.Dynamic || len(pattern) > 1 &&
				(shell.Glob(pattern[1], r.File.Text) || shell.Glob(pattern[1], path.Clean(r.File.Text))))
		})
	}
	if len(s.Words) == 0 {
		return false
	}
	fit := func(p string, w shell.Word, first bool) bool {
		if w.Dynamic {
			return maybe
		}
		return shell.Glob(p, w.Text) || first && shell.Glob(p, path.Base(w.Text))
	}
	if !fit(pattern[0], s.Words[0], true) {
		return false
	}
	words := s.Words[1:]
	for i, p := range pattern[1:] {
		if p == "*" && i == len(pattern)-2 {
			return true
		}
		for len(words) > 0 && !fit(p, words[0], false) {
			if maybe && slices.ContainsFunc(words, func(w shell.Word) bool { return w.Dynamic }) {
				return true // it may hold any words
			}
			if !strings.HasPrefix(words[0].Text, "-") {
				return false
			}
			// An option, and what may be its value.
			if words = words[1:]; len(words) > 0 && !fit(p, words[0], false) && !strings.HasPrefix(words[0].Text, "-") {
				words = words[1:]
			}
		}
		if len(words) == 0 {
			return false
		}
		words = words[1:]
	}
	return len(words) == 0
}

package approval

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// maxSuggested is how many rules are suggested for one line: users would not read more.
const maxSuggested = 3

// Programs by how many of a command's words determine its effect. A program in no list has no
// suggestion: each of its arguments may matter.
const (
	// readers only read, whatever their arguments.
	readers = "ls cat head tail wc grep egrep fgrep rg find sort cut diff cmp stat du df ps which jq nl basename " +
		"dirname realpath sed tr od sha256sum md5sum"
	// checkers take files and options, and have one effect.
	checkers = "pytest jest vitest mocha rspec phpunit ctest tox tsc eslint prettier ruff mypy flake8 black gofmt " +
		"goimports staticcheck golangci-lint shellcheck rustfmt ninja"
	// families name their effect by the first argument.
	families = "go git npm pnpm yarn cargo make gmake just rake gradle mvn dotnet mix bundle poetry uv pip pip3 " +
		"docker podman kubectl terraform gh brew apt"
	// destroyers are subcommands that delete, overwrite or publish: each call is asked about.
	destroyers = "clean reset restore checkout rm rmi push rebase filter-branch gc prune delete destroy apply " +
		"publish uninstall remove purge autoremove drain drop kill down"
	// deeper are commands of a family that name their effect by one more word.
	deeper = "npm run,pnpm run,yarn run,docker compose,podman compose,uv run,poetry run,bundle exec,gh pr,gh issue," +
		"gh run,git stash,git worktree,uv pip"
)

// namesWork matches a word that names the effect: a subcommand, a target, a script.
var namesWork = shell.Pattern(`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`)

// Suggest returns rules that allow a call and similar ones: for a command line one for each of
// its programs, with the words that name the effect and any that follow (go test *); for other
// calls the tool. It returns none if no such rule would let the call run, or if a user could
// not judge it at a glance.
func Suggest(f Facts) []Rule {
	if f.Tool == Network {
		return nil
	}
	var rules []Rule
	if f.Tool != commandTool {
		rules = []Rule{{Tool: f.Tool, Verdict: Allow}}
	} else {
		rules = suggestCommand(f.Command)
	}
	if f.ReadOnly || Decide(ModeDeny, f, rules).Verdict != Allow {
		return nil
	}
	return rules
}

func suggestCommand(line string) []Rule {
	r := read(line)
	var rules []Rule
	for i, s := range r.commands {
		if len(s.Words) == 0 || free(s) || i+1 < len(r.commands) && wraps(s, r.commands[i+1]) {
			continue
		}
		pattern := patternOf(s)
		if pattern == "" {
			return nil
		}
		rule := Rule{Tool: commandTool, Command: pattern, Verdict: Allow}
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	if len(rules) > maxSuggested {
		return nil
	}
	return rules
}

// patternOf returns a pattern for a command and similar ones; empty: there is none.
func patternOf(s shell.Simple) string {
	words := make([]string, 0, 4)
	for _, w := range s.Words[:min(len(s.Words), 4)] {
		if w.Dynamic {
			break
		}
		words = append(words, w.Text)
	}
	if len(words) == 0 {
		return ""
	}
	in := func(list string) bool { return shell.InList(list, words[0]) }
	n := 0 // words that the pattern keeps
	switch {
	case in(readers), in(checkers):
		n = 1
	case in(families):
		n = 2
		if len(words) > 1 && slices.Contains(strings.Split(deeper, ","), words[0]+" "+words[1]) {
			n = 3
		}
	case Interprets(words[0]) && len(words) > 1 && words[1] == "-m":
		n = 3
	}
	if n == 0 || n > len(words) {
		return ""
	}
	for i, w := range words[:n] {
		module := i == 1 && w == "-m"
		runs := i > 0 && (Interprets(w) || IsShell(w))
		if !namesWork().MatchString(w) && !module || shell.InList(destroyers, w) || runs {
			return ""
		}
	}
	return strings.Join(words[:n], " ") + " *"
}

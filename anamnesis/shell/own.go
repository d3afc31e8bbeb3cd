package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// network matches the names of modules and programs that use a network.
var network = regexp.MustCompile(`(?i)\b(?:pip\d*|ensurepip|urllib\d*|urlopen|requests|httpx|aiohttp|http|https|socket|ftplib|smtplib|fetch|curl|wget|ssh|axios)\b`)

// OwnWork reports whether a shell command is known to print nothing but what the world's own files make it
// print: it runs programs, tests and builds of the world, interpreters on files of the world, and local
// programs ([Local]). Such a program may use a network, as a test run may. dir is the world's directory.
func OwnWork(command, dir string) bool {
	commands, err := Parse(command)
	return err == nil && len(commands) > 0 && only(command, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.CoprocClause, *syntax.FuncDecl:
			return false
		}
		return true
	}) && !slices.ContainsFunc(commands, func(s Simple) bool { return s.Via == "" && !ownSimple(s, dir) })
}

func ownSimple(s Simple, dir string) bool {
	var input string // what a here document holds
	for _, r := range s.Redirects {
		if r.Op == "<<" || r.Op == "<<-" {
			input += r.File.Text
			continue
		}
		if to, ok := r.File.literal(); !ok || strings.Contains(to, "/dev/tcp/") || strings.Contains(to, "/dev/udp/") || len(to) > 1 && outsideWord(to, dir) {
			return false
		}
	}
	if len(s.Words) == 0 || s.Declares {
		return true
	}
	words, ok := s.literal()
	if !ok {
		return false
	}
	for _, a := range s.Assigns { // a variable may name what a loader or an interpreter runs
		if !strings.HasPrefix(a.Name, "PYTHON") && !strings.HasPrefix(a.Name, "DJANGO") && !slices.Contains([]string{"CI", "DEBUG", "NODE_ENV", "LANG", "LC_ALL"}, a.Name) {
			return false
		}
	}
	return ownCall(words, input, dir)
}

var (
	interpreter = regexp.MustCompile(`^(?:python[\d.]*|node|ruby|perl|php|bash|sh|java)$`)
	sedRuns     = regexp.MustCompile(`(?:^|[;{}0-9$/\s])e(?:\s|$)|/[gipI0-9]*e[gipI0-9]*(?:[;}\s]|$)`)
	builders    = Set(`make ctest cmake tsc jest vitest mocha eslint ruff mypy black flake8 pylint gcc g++ cc clang javac rustc
		nosetests sphinx-build export set unset which type exit patch`)
)

func ownCall(words []string, input, dir string) bool {
	name := words[0]
	if localSimple(words, dir) {
		return true
	}
	code := false // a program in the command line
	for _, w := range words[1:] {
		if !code && outsideWord(w, dir) {
			return false
		}
		code = w == "-c" || w == "-e"
	}
	base := path.Base(name)
	switch {
	case interpreter.MatchString(base):
		return !network.MatchString(strings.Join(words[1:], " ") + " " + input)
	case strings.Contains(name, "/"):
		return !outsideWord(name, dir)
	case builders[name]:
		return true
	case name == "sed":
		return !slices.ContainsFunc(words[1:], sedRuns.MatchString)
	case len(words) < 2:
		return false
	}
	sub := words[1]
	switch name {
	case "timeout", "nice", "time":
		return len(words) > 2 && ownCall(words[2:], input, dir)
	case "xargs":
		return ownCall(words[1:], input, dir)
	case "npm", "pnpm", "yarn":
		return sub == "run" || sub == "test"
	case "go":
		return sub == "run"
	case "cargo":
		return sub == "build" || sub == "run"
	case "pip", "pip3":
		return sub == "list" || sub == "show" || sub == "freeze" || sub == "--version"
	case "git":
		return slices.Contains([]string{"stash", "checkout", "reset", "apply", "restore", "rm", "mv", "init"}, sub)
	}
	return sub == "--version" && len(words) == 2
}

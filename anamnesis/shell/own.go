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
	file, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) == 0 {
		return false
	}
	own := true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			own = own && ownStatement(n, dir)
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.CoprocClause, *syntax.FuncDecl:
			own = false
		}
		return own
	})
	return own
}

func ownStatement(s *syntax.Stmt, dir string) bool {
	var input string // what a here document holds
	for _, r := range s.Redirs {
		if r.Hdoc != nil {
			input += r.Hdoc.Lit()
			continue
		}
		if to, ok := literal(r.Word); !ok || strings.Contains(to, "/dev/tcp/") || strings.Contains(to, "/dev/udp/") || to != "/dev/null" && len(to) > 1 && outsideWord(to, dir) {
			return false
		}
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return true // its parts are looked at on their own
	}
	words := make([]string, 0, len(call.Args))
	for _, w := range call.Args {
		text, ok := literal(w)
		if !ok {
			return false
		}
		words = append(words, text)
	}
	for _, a := range call.Assigns { // a variable may name what a loader or an interpreter runs
		if a.Name != nil && !strings.HasPrefix(a.Name.Value, "PYTHON") && !strings.HasPrefix(a.Name.Value, "DJANGO") && !slices.Contains([]string{"CI", "DEBUG", "NODE_ENV", "LANG", "LC_ALL"}, a.Name.Value) {
			return false
		}
	}
	return ownCall(words, input, dir)
}

// literal returns a word without expansions.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				lit, ok := q.(*syntax.Lit)
				if !ok {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
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

package repair

import (
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/shell"
)

// action is one command of a shell line, or one query, cut down to what is
// compared.
type action struct {
	program string
	script  bool     // program is a file that an interpreter was given
	inline  bool     // an interpreter runs a program that the command line holds
	paths   []string // base names of the files that it is given
	args    []string // those files as they are given
	words   map[string]bool
	text    string
}

// Programs by what their success says about another command: prepare leaves
// the way of calling alone, readers only look.
var (
	prepares       = shell.Set("cd echo printf cat export set source . true sleep rm cp mv mkdir touch chmod tee sed")
	readers        = shell.Set("cat head tail less more nl grep egrep rg find ls sed awk git rm cp mv mkdir touch echo wc stat file which cd diff vi vim nano open edit")
	says           = shell.Set("echo printf yes")
	wrappers       = shell.Set("sudo time env nohup exec command xvfb-run stdbuf")
	packageScripts = shell.Set("npm yarn pnpm") // "run NAME" names what runs
	verbs          = shell.Set("git go npm yarn pnpm cargo docker kubectl pip pip3 apt apt-get mvn gradle make bundle dotnet poetry uv conda terraform manage.py django-admin")
)

var (
	interpreter     = shell.Pattern(`^(python|pypy|node|ruby|perl|php|deno|bun|ts-node|bash|sh|zsh)[\d.]*$`)
	interpreterFlag = shell.Pattern(`^-[bBdEiIOqsSuvx]+$`) // of Python, without a value
	assignment      = shell.Pattern(`^[A-Za-z_]\w*=`)
	query           = shell.Pattern(`(?i)^\s*(select|insert\s+into|update\s+\S+\s+set|delete\s+from|with\s+\w+\s+as)\s`)
	nodeID          = shell.Pattern(`(::.*|:\d+)$`)
)

// actions returns the commands of a shell line in order, without those that
// only filter another's output.
func actions(command string) []action {
	var out []action
	if query().MatchString(command) {
		if a, ok := newAction(strings.Join(strings.Fields(command), " ")); ok {
			return []action{a}
		}
	}
	body, _ := shell.Heredocs(command)
	for _, part := range shell.Parts(body) {
		a, ok := newAction(part.Text)
		switch n := len(out); {
		case !ok:
		case !part.Piped:
			out = append(out, a)
		case n > 0 && says[out[n-1].program] && !readers[a.program] && !says[a.program]:
			out[n-1] = a // it reads what the other only says
		}
	}
	return out
}

// mainOf returns the action a line was about: the last that does more than
// prepare.
func mainOf(all []action) action {
	for _, a := range slices.Backward(all) {
		if !prepares[a.program] {
			return a
		}
	}
	if len(all) == 0 {
		return action{}
	}
	return all[len(all)-1]
}

// Essence returns a command without what only prepares it: changes of directory, files
// that it writes first. A here document that the rest reads stays.
func Essence(command string) string {
	whole := strings.TrimSpace(command)
	body, _ := shell.Heredocs(whole)
	rest := body
	for _, part := range shell.Parts(body) {
		a, ok := newAction(part.Text)
		if at := strings.Index(rest, part.Text); at >= 0 && ok && !prepares[a.program] {
			rest = strings.TrimSpace(rest[at:])
			if strings.HasSuffix(whole, rest) {
				return rest
			}
			break
		} else if at >= 0 {
			rest = rest[at+len(part.Text):]
		}
	}
	return whole
}

// SameCommand reports whether two shell lines run the same, whatever goes before it and
// wherever its output goes.
func SameCommand(a, b string) bool { return bare(a) == bare(b) }

// bare is what a shell line is about, without redirections and filters.
func bare(command string) string {
	if _, docs := shell.Heredocs(command); slices.ContainsFunc(docs, func(d shell.Heredoc) bool { return d.File == "" }) {
		return strings.Join(strings.Fields(command), " ")
	}
	return strings.Join(shell.Fields(mainOf(actions(command)).text), " ")
}

func newAction(text string) (action, bool) {
	fields := shell.Fields(text)
	for len(fields) > 0 && (assignment().MatchString(fields[0]) || wrappers[fields[0]]) {
		fields = fields[1:]
	}
	if len(fields) > 2 && fields[0] == "timeout" {
		fields = fields[2:]
	}
	if len(fields) == 0 {
		return action{}, false
	}
	a := action{program: path.Base(fields[0]), text: text, words: map[string]bool{}}
	rest := fields[1:]
	if m := interpreter().FindStringSubmatch(a.program); m != nil {
		a.program = m[1]
		for len(rest) > 1 && interpreterFlag().MatchString(rest[0]) {
			rest = rest[1:]
		}
		switch {
		case len(rest) > 1 && rest[0] == "-m":
			a.program, rest = rest[1], rest[2:]
		case len(rest) > 1 && (rest[0] == "-c" || rest[0] == "-e"):
			a.inline = true
		case len(rest) > 0 && !strings.HasPrefix(rest[0], "-"):
			a.program, a.script, rest = path.Base(rest[0]), true, rest[1:]
		}
	}
	if verbs[a.program] && len(rest) > 0 {
		named := 1
		if packageScripts[a.program] && rest[0] == "run" && len(rest) > 1 {
			named = 2
		}
		a.program += " " + strings.Join(rest[:named], " ")
		rest = rest[named:]
	}
	for _, f := range rest {
		if !strings.HasPrefix(f, "-") && strings.ContainsAny(f, "/.") && !strings.ContainsAny(f, " \n") {
			a.args = append(a.args, f)
			a.paths = append(a.paths, path.Base(nodeID().ReplaceAllString(f, "")))
		}
	}
	for _, w := range edit.Words(text) {
		a.words[w] = true
	}
	return a, true
}

// family groups commands whose failures are alike: scripts that an interpreter
// runs are one family.
func (a action) family() string {
	if a.script {
		return "script"
	}
	return a.program
}

// nearShare is the share of words that two commands of one program must have
// in common where no file says that they are about the same.
const nearShare = 0.1

// inlineShare is the share of words that two programs in the command line must have in
// common. Other programs there are mostly another question.
const inlineShare = 0.6

// OtherProgram reports whether two commands are about different programs.
func OtherProgram(a, b string) bool {
	return !strings.EqualFold(mainOf(actions(a)).program, mainOf(actions(b)).program)
}

// near reports whether b is a with other options, another test of the same
// file, or the same file given to another program where a's could not start.
func near(a, b action, unstarted bool) bool {
	shared := slices.ContainsFunc(a.paths, func(p string) bool { return slices.Contains(b.paths, p) })
	if !strings.EqualFold(a.program, b.program) {
		name, _, _ := strings.Cut(b.program, " ")
		return unstarted && shared && !readers[name]
	}
	if edit.SedInPlace().MatchString(a.text) != edit.SedInPlace().MatchString(b.text) {
		return false // one edits, the other looks
	}
	if a.inline && b.inline {
		return edit.Overlap(a.words, b.words) >= inlineShare
	}
	if !unstarted && !shared && len(a.paths) > 0 && len(b.paths) > 0 && testRunner().MatchString(a.program) {
		return false // other tests
	}
	if !unstarted && strings.Contains(a.program, "test") && otherTargets(a, b) {
		return false
	}
	return a.script && b.script || shared || len(a.words)+len(b.words) == 0 || edit.Overlap(a.words, b.words) >= nearShare
}

// otherTargets reports whether two runs of tests name targets, none of which begins alike.
func otherTargets(a, b action) bool {
	targets := func(of action) (out []string) {
		for _, f := range shell.Fields(of.text)[1:] {
			if begins, _, _ := strings.Cut(f, "."); begins != "" && f != of.program && f[0] != '-' && !strings.ContainsAny(f, "/=<>") {
				out = append(out, begins)
			}
		}
		return out
	}
	as, bs := targets(a), targets(b)
	return len(as) > 0 && len(bs) > 0 && !slices.ContainsFunc(as, func(t string) bool { return slices.Contains(bs, t) })
}

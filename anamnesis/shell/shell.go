// Package shell parses shell command lines, without running any: which programs would run, with
// which words, in which order ([Parse]), and whether what they print may come from outside the
// world. Rules about commands use its result, never the text.
package shell

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// systemDirs hold the system's programs and what is created for each command;
// naming one of their files brings no text of others into the evidence.
var systemDirs = []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/dev/", "/proc/", "/tmp/"}

// ShowsOutside reports whether text from outside dir, the world's directory,
// may be in what a shell command printed. An isolated command had no network; it
// shows the outside only where it names a file there.
func ShowsOutside(command, dir string, isolated bool) bool {
	if !isolated {
		return !Local(command, dir) && !OwnWork(command, dir)
	}
	return slices.ContainsFunc(Words(command), func(w string) bool {
		return strings.HasPrefix(w, "$HOME") || strings.HasPrefix(w, "${HOME") ||
			Outside(w, dir) && !inSystem(w)
	})
}

// Words splits a command at the ends of words, within quotes as well.
func Words(command string) []string {
	ends := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";|&<>()'\"=", r) }
	return strings.FieldsFunc(command, ends)
}

// Command returns the command in the arguments of a call; empty if there is none.
func Command(args string) string {
	var a struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal([]byte(args), &a) // arguments of another form hold none
	return a.Command
}

// Local reports whether a shell command is known to show nothing but
// the world itself: every simple command of it is on a list of programs
// that neither use the network nor read outside dir, the world's directory
// (absolute; empty when unknown). Whatever is unclear – a variable, a
// substitution, an unknown program, an option that runs something, a path
// that leads out – is not local.
func Local(command, dir string) bool {
	simple, ok := sequence(command)
	leaves := func(words []string) bool { return !localSimple(words, dir) }
	return ok && len(simple) > 0 && !slices.ContainsFunc(simple, leaves)
}

// sequence returns the words of a line that only runs commands one after another or piped, with the
// files that they are redirected to. ok is false if the line is anything else: a loop, a group, a
// variable, a substitution, a here document, or a command in the background.
func sequence(line string) (simple [][]string, ok bool) {
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, false
	}
	// Parse lists the commands of a line without its structure, so the structure is checked before.
	ok = true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			ok = ok && !n.Background
		case *syntax.Redirect:
			ok = ok && n.Hdoc == nil
		case nil, *syntax.File, *syntax.CallExpr, *syntax.BinaryCmd, *syntax.Word, *syntax.Lit,
			*syntax.SglQuoted, *syntax.DblQuoted, *syntax.Comment:
		default:
			ok = false
		}
		return ok
	})
	commands, err := Parse(line)
	if !ok || err != nil {
		return nil, false
	}
	for _, s := range commands {
		words, ok := s.literal()
		if !ok || len(s.Words) == 0 || len(s.Assigns) > 0 {
			return nil, false
		}
		for _, r := range s.Redirects {
			to, ok := r.File.literal()
			if !ok {
				return nil, false
			}
			words = append(words, to)
		}
		simple = append(simple, words)
	}
	return simple, true
}

// locals are the programs that neither use the network nor read outside the world, each with those of its
// subcommands that do not; none: all.
const locals = `ls cat head tail wc grep egrep fgrep pwd echo printf true false test [ stat file du diff cmp uniq cut tr
nl date basename dirname realpath tree mkdir touch cp mv rm rmdir ln chmod md5sum sha1sum sha256sum od xxd hexdump comm
paste fold jq cd sleep gofmt rg sort find pytest
go: test build vet list fmt doc env version
git: status diff log show add commit branch blame rev-parse ls-files grep
cargo: test check clippy fmt
npm: test`

// starting matches one of these programs and an option by which it runs another program.
var starting = Pattern(`^(rg --(pre|hostname-bin)|sort --compress-program|find -(exec|ok)|` +
	`(go|git|cargo|npm) (--?exec|-toolexec|-vettool))`)

// Listed reports whether a list has a program with its subcommand. Each line names programs, and behind a colon those
// of their subcommands that count; none: all.
func Listed(list, program string, args []string) bool {
	for line := range strings.Lines(list) {
		programs, subs, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if InList(programs, program) {
			return subs == "" || len(args) > 0 && InList(subs, args[0])
		}
	}
	return false
}

// InList reports whether a list separated by blanks has a word.
func InList(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// sedPrint matches a sed script that only prints lines.
var sedPrint = regexp.MustCompile(`^[0-9,$; p]+$`)

func localSimple(words []string, dir string) bool {
	program, args := words[0], words[1:]
	for _, w := range args {
		if outsideWord(w, dir) || starting().MatchString(program+" "+w) {
			return false
		}
	}
	switch program {
	case "python", "python3":
		return len(args) > 1 && args[0] == "-m" && (args[1] == "pytest" || args[1] == "unittest")
	case "sed":
		return len(args) > 1 && args[0] == "-n" && sedPrint.MatchString(args[1])
	}
	return Listed(locals, program, args)
}

// outsideWord reports whether a word, or what an option in it is given, leads
// out of the world. /dev/null is nowhere.
func outsideWord(w, dir string) bool {
	if w == "/dev/null" {
		return false
	}
	if _, value, ok := strings.Cut(w, "="); ok && Outside(value, dir) {
		return true
	}
	return strings.Contains(w, "://") || Outside(w, dir)
}

// readers are programs that change nothing, each with those of its subcommands that do not; none: all.
const readers = `ls cat head tail wc grep egrep fgrep pwd echo printf stat cd cut nl tr comm diff cmp jq du od basename
dirname realpath which uname true false test [ find sed sort tree rg
git: status diff log show blame ls-files ls-tree rev-parse shortlog describe
go: doc list version`

// writing matches a reader and a word by which it changes something or runs a program. Long options may be shortened,
// and one letter may follow others.
var writing = Pattern(`^(find -(exec|ok|delete|fprint|fls)|sort -(\w*[oT]|-[oct])|tree -(\w*[oR]|-output)|` +
	`rg -(\w*z|-pre|-hostname|-search-zip)|git --(ou|ext|textconv)|` +
	`go -+(mod|C|overlay|export|toolexec|exec|compiled))`)

// sedReads matches a sed script that only prints, deletes or substitutes what it prints, sedOption an option that
// changes no file.
var (
	sedReads = Pattern(`^(([0-9]+|\$|/[^/\\\n]*/)(,\+?([0-9]+|\$|/[^/\\\n]*/))?)? *!?` + // the lines
		`([pdq=]|s(/[^/\\\n]*/[^/\\\n]*/|\|[^|\\\n]*\|[^|\\\n]*\|)[gIip0-9]*)(; *[0-9$,]*[pdq])?$`)
	sedOption = Pattern(`^-[nErsuz]*e?$`)
)

// ReadsOnly reports whether a shell command certainly changes nothing, whatever files there are: it lists or pipes
// known programs with known words.
func ReadsOnly(command string) bool {
	simple, ok := sequence(command)
	writes := func(words []string) bool { return !reads(words[0], words[1:]) }
	if !ok || len(simple) == 0 || slices.ContainsFunc(simple, writes) {
		return false
	}
	commands, err := Parse(command)
	return err == nil && !slices.ContainsFunc(commands, func(s Simple) bool {
		if s.Via != "" || slices.ContainsFunc(s.Redirects, Redirect.Writes) {
			return true
		}
		// A file that a pattern matches may have the name of an option.
		option := func(w Word) bool { return w.Dynamic && strings.IndexAny(w.Text, "*?[-") == 0 }
		return optionWrites[s.Program()] && slices.ContainsFunc(s.Words, option)
	})
}

// optionWrites are the readers that an option can make write.
var optionWrites = Set("find sed sort tree rg git go")

// reads reports whether a program changes nothing with some words.
func reads(program string, args []string) bool {
	if program == "git" && len(args) > 0 && args[0] == "--no-pager" {
		args = args[1:]
	}
	if program == "sed" {
		for len(args) > 0 && strings.HasPrefix(args[0], "-") {
			if !sedOption().MatchString(args[0]) {
				return false
			}
			args = args[1:]
		}
		option := func(w string) bool { return strings.HasPrefix(w, "-") }
		if len(args) == 0 || !sedReads().MatchString(args[0]) || slices.ContainsFunc(args, option) {
			return false
		}
	}
	if slices.ContainsFunc(args, func(w string) bool { return writing().MatchString(program + " " + w) }) {
		return false
	}
	return Listed(readers, program, args)
}

// Outside reports whether a path, relative to the world or absolute, lies
// outside the world's directory dir.
func Outside(p, dir string) bool {
	if strings.HasPrefix(p, "~") {
		return true
	}
	if path.IsAbs(p) {
		clean := path.Clean(p)
		return dir == "" || clean != dir && !strings.HasPrefix(clean, strings.TrimSuffix(dir, "/")+"/")
	}
	clean := path.Clean(p)
	return clean == ".." || strings.HasPrefix(clean, "../")
}

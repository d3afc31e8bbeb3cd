// Package shell reads shell commands: whether what one printed may come from outside the
// world, whether it only looks at files, and whether it checks the work.
package shell

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
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
			Outside(w, dir) && !slices.ContainsFunc(systemDirs, func(d string) bool { return strings.HasPrefix(path.Clean(w)+"/", d) })
	})
}

// Words splits a command at the ends of words, within quotes as well.
func Words(command string) []string {
	return strings.FieldsFunc(command, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";|&<>()'\"=", r) })
}

// Command returns the command in the arguments of a call; empty if there is none.
func Command(args string) string {
	var a struct {
		Command string `json:"command"`
	}
	if json.Unmarshal([]byte(args), &a) != nil {
		return ""
	}
	return a.Command
}

// Local reports whether a shell command is known to show nothing but
// the world itself: every simple command of it is on a list of programs
// that neither use the network nor read outside dir, the world's directory
// (absolute; empty when unknown). Whatever is unclear – a variable, a
// substitution, an unknown program, an option that runs something, a path
// that leads out – is not local.
func Local(command, dir string) bool {
	simple, ok := split(command)
	if !ok || len(simple) == 0 {
		return false
	}
	for _, words := range simple {
		if !localSimple(words, dir) {
			return false
		}
	}
	return true
}

// localPrograms lists programs that are local with any arguments but those
// that begin with one of the options given.
func localPrograms(name string) (refused []string, ok bool) {
	switch name {
	case "ls", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "pwd", "echo", "printf", "true", "false", "test", "[", "stat", "file",
		"du", "diff", "cmp", "uniq", "cut", "tr", "nl", "date", "basename", "dirname", "realpath", "tree", "mkdir", "touch", "cp", "mv", "rm",
		"rmdir", "ln", "chmod", "md5sum", "sha1sum", "sha256sum", "od", "xxd", "hexdump", "comm", "paste", "fold", "jq", "cd", "sleep", "gofmt":
		return nil, true
	case "rg":
		return []string{"--pre", "--hostname-bin"}, true
	case "sort":
		return []string{"--compress-program"}, true
	case "find":
		return []string{"-exec", "-ok"}, true
	}
	return nil, false
}

// localSubcommand lists local subcommands of programs that can do more.
func localSubcommand(name, sub string) bool {
	switch name {
	case "go":
		return slices.Contains([]string{"test", "build", "vet", "list", "fmt", "doc", "env", "version"}, sub)
	case "git":
		return slices.Contains([]string{"status", "diff", "log", "show", "add", "commit", "branch", "blame", "rev-parse", "ls-files", "grep"}, sub)
	case "cargo":
		return slices.Contains([]string{"test", "check", "clippy", "fmt"}, sub)
	case "npm":
		return sub == "test"
	}
	return false
}

// sedPrint matches a sed script that only prints lines.
var sedPrint = regexp.MustCompile(`^[0-9,$; p]+$`)

func localSimple(words []string, dir string) bool {
	name := words[0]
	for _, w := range words[1:] {
		if outsideWord(w, dir) {
			return false
		}
	}
	if refused, ok := localPrograms(name); ok {
		for _, w := range words[1:] {
			if slices.ContainsFunc(refused, func(opt string) bool { return strings.HasPrefix(w, opt) }) {
				return false
			}
		}
		return true
	}
	switch {
	case name == "pytest":
		return true
	case name == "python" || name == "python3":
		return len(words) > 2 && words[1] == "-m" && (words[2] == "pytest" || words[2] == "unittest")
	case name == "sed":
		return len(words) > 2 && words[1] == "-n" && sedPrint.MatchString(words[2])
	}
	if len(words) < 2 || !localSubcommand(name, words[1]) {
		return false
	}
	return !slices.ContainsFunc(words[2:], func(w string) bool {
		return strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "--exec") || strings.HasPrefix(w, "-toolexec") || strings.HasPrefix(w, "-vettool")
	})
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

// split splits a shell command at |, ||, &&, ; and line ends into the
// words of its simple commands. It knows quotes, escapes and redirections;
// if only a real shell could understand the command, ok is false.
func split(command string) (simple [][]string, ok bool) {
	s := &splitter{}
	for i := 0; i < len(command); i++ {
		switch ch := command[i]; ch {
		case '\'', '"':
			end := strings.IndexByte(command[i+1:], ch)
			if end < 0 {
				return nil, false
			}
			quoted := command[i+1 : i+1+end]
			if ch == '"' && strings.ContainsAny(quoted, "$`\\") {
				return nil, false
			}
			s.word.WriteString(quoted)
			s.inWord = true
			i += end + 1
		case ' ', '\t':
			s.endWord()
		case '\n', ';':
			s.endCommand()
		case '|':
			if strings.HasPrefix(command[i:], "||") {
				i++
			} else if strings.HasPrefix(command[i:], "|&") {
				i++
			}
			s.endCommand()
		case '&':
			if !strings.HasPrefix(command[i:], "&&") {
				return nil, false // in the background
			}
			i++
			s.endCommand()
		case '>', '<':
			n, fine := s.redirect(command[i:])
			if !fine {
				return nil, false
			}
			i += n - 1
		case '$', '`', '(', ')', '{', '}', '\\', '#', '!', '*', '?':
			if ch == '*' || ch == '?' {
				s.word.WriteByte(ch) // a file name pattern stays within its directory
				s.inWord = true
				continue
			}
			return nil, false
		default:
			s.word.WriteByte(ch)
			s.inWord = true
		}
	}
	s.endCommand()
	return s.simple, !s.assigned
}

// splitter collects words and commands.
type splitter struct {
	word     strings.Builder
	inWord   bool
	words    []string
	simple   [][]string
	assigned bool // a variable is set: what follows may mean anything
}

func (s *splitter) endWord() {
	if s.inWord {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.inWord = false
}

func (s *splitter) endCommand() {
	s.endWord()
	if len(s.words) > 0 {
		s.assigned = s.assigned || strings.Contains(s.words[0], "=")
		s.simple = append(s.simple, s.words)
	}
	s.words = nil
}

// redirect takes a redirection operator and returns its length. The file after
// it becomes a word, so that it is checked like one.
func (s *splitter) redirect(rest string) (n int, ok bool) {
	switch digits := strings.Trim(s.word.String(), "0123456789"); {
	case s.inWord && digits == "":
		s.word.Reset()
		s.inWord = false
	default:
		s.endWord()
	}
	if len(s.words) == 0 { // the program's name comes after its redirection
		return 0, false
	}
	for _, op := range []string{">>", ">&1", ">&2", ">"} {
		if strings.HasPrefix(rest, op) {
			return len(op), true
		}
	}
	if strings.HasPrefix(rest, "<<") || strings.HasPrefix(rest, "<(") {
		return 0, false
	}
	return 1, true
}

// LooksOnly reports whether a shell command consists of commands that only
// show something.
func LooksOnly(command string) bool {
	simple, ok := split(command)
	return ok && !slices.ContainsFunc(simple, func(words []string) bool {
		switch words[0] {
		case "ls", "cat", "head", "tail", "wc", "grep", "egrep", "rg", "find", "pwd", "echo", "printf", "stat", "file", "tree", "sed", "cd", "sort", "uniq", "cut", "nl", "true":
			return false
		case "git":
			return len(words) < 2 || !slices.Contains([]string{"status", "diff", "log", "show", "blame"}, words[1])
		}
		return true
	})
}

// outside reports whether a path, relative to the world or absolute, lies
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

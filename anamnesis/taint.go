package anamnesis

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"anamnesis/opstream/op"
)

// tainter follows what came from outside the world through a span: network
// results, files outside the world, and the files that tainted calls wrote.
type tainter struct {
	dir   string
	now   uint64            // the operation that is looked at
	files map[string]uint64 // relative to the world, with the operation since which; anyFile stands for all
}

// anyFile is the path of files whose names are not known.
const anyFile = ""

func newTainter(dir string, before []string) *tainter {
	t := &tainter{dir: dir, files: make(map[string]uint64, len(before))}
	for _, p := range before {
		t.mark(p)
	}
	return t
}

// mark notes that a file holds text from outside from now on.
func (t *tainter) mark(p string) {
	if _, ok := t.files[p]; !ok {
		t.files[p] = t.now
	}
}

func (t *tainter) holds(p string) bool {
	_, ok := t.files[p]
	return ok
}

// see judges one finished call and remembers the files it wrote. A call
// refused before it ran showed nothing of the outside.
func (t *tainter) see(r *record, network bool) bool {
	tainted := network
	if r.tool == bashTool && !r.refused {
		command := commandOf(r.args)
		local := LocalCommand(command, t.dir)
		// What an unknown program reads of the world is not known.
		tainted = tainted || CommandShowsOutside(command, t.dir, r.isolated) || !local && len(t.files) > 0 || t.mayRead(command)
	}
	for _, p := range r.reads {
		tainted = tainted || outside(p, t.dir) || t.holds(p) || t.holds(anyFile)
	}
	for _, p := range r.writes {
		if tainted {
			t.mark(p)
		}
	}
	return tainted
}

// mayRead reports whether a command names a tainted file, a folder above one,
// or everything below a folder.
func (t *tainter) mayRead(command string) bool {
	if len(t.files) == 0 {
		return false
	}
	if strings.ContainsAny(command, "*?[{") || strings.Contains(command, "...") {
		return true
	}
	words := shellWords(command)
	for p := range t.files {
		if p == anyFile {
			return true
		}
		for dir := p; dir != "." && dir != "/"; dir = path.Dir(dir) {
			if slices.ContainsFunc(words, func(w string) bool { return path.Base(path.Clean(w)) == path.Base(dir) }) {
				return true
			}
		}
	}
	// A walk over the whole world may name nothing at all.
	return slices.ContainsFunc(words, func(w string) bool {
		return path.Clean(w) == "." || path.Clean(w) == path.Clean(t.dir) || strings.HasPrefix(w, "-") && strings.ContainsAny(w, "rR") || w == "grep" || w == "rg" || w == "git"
	})
}

// wrote remembers what a step changed when one of its calls showed text from
// outside: a command does not say which files it writes.
func (t *tainter) wrote(changed []string, all bool) {
	for _, p := range changed {
		t.mark(p)
	}
	if !all {
		t.mark(anyFile)
	}
}

// TaintLog follows, operation by operation, which files hold text from outside
// the world. It remembers files and not operations, so that a long task is not
// read again for every pass. It is not safe for concurrent use.
type TaintLog struct {
	c *recorder
}

// NewTaintLog begins with the first operation of a task on the world in dir
// (absolute).
func NewTaintLog(dir string) *TaintLog {
	return &TaintLog{newRecorder(&Request{WorldDir: dir})}
}

// Last is the operation added last, 0 where there is none.
func (l *TaintLog) Last() uint64 { return l.c.taint.now }

// Add takes the next operation.
func (l *TaintLog) Add(o *op.Op) {
	l.c.add(o)
	if _, ended := o.Body.(*op.WorldSaved); ended { // what a step asked for ends with it
		l.c.out, l.c.stepFrom = nil, 0
		clear(l.c.open)
		clear(l.c.asked)
	}
}

// Before lists the files, relative to the world, that held text from outside
// before operation seq, sorted. An empty name stands for files whose names were
// not recorded.
func (l *TaintLog) Before(seq uint64) []string {
	var out []string
	for p, since := range l.c.taint.files {
		if since < seq {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

const bashTool = "Bash"

// systemDirs hold the system's programs and what is made anew for each command;
// naming one of their files brings no text of others into the evidence.
var systemDirs = []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/dev/", "/proc/", "/tmp/"}

// CommandShowsOutside reports whether text from outside dir, the world's directory,
// may be in what a shell command printed. An isolated command had no network; it
// shows the outside only where it names a file there.
func CommandShowsOutside(command, dir string, isolated bool) bool {
	if !isolated {
		return !LocalCommand(command, dir)
	}
	return slices.ContainsFunc(shellWords(command), func(w string) bool {
		return strings.HasPrefix(w, "$HOME") || strings.HasPrefix(w, "${HOME") ||
			outside(w, dir) && !slices.ContainsFunc(systemDirs, func(d string) bool { return strings.HasPrefix(path.Clean(w)+"/", d) })
	})
}

// shellWords splits a command where words end, quotes or not.
func shellWords(command string) []string {
	return strings.FieldsFunc(command, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";|&<>()'\"=", r) })
}

// commandOf takes the command out of a Bash call's arguments; empty when they
// are not what they should be.
func commandOf(args string) string {
	var a struct {
		Command string `json:"command"`
	}
	if json.Unmarshal([]byte(args), &a) != nil {
		return ""
	}
	return a.Command
}

// LocalCommand reports whether a shell command is known to show nothing but
// the world itself: every simple command of it stands on a list of programs
// that neither use the network nor read outside dir, the world's directory
// (absolute; empty when unknown). Whatever is unclear – a variable, a
// substitution, an unknown program, an option that runs something, a path
// that leads out – is not local.
func LocalCommand(command, dir string) bool {
	simple, ok := splitCommand(command)
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
	if _, value, ok := strings.Cut(w, "="); ok && outside(value, dir) {
		return true
	}
	return strings.Contains(w, "://") || outside(w, dir)
}

// splitCommand splits a shell command at |, ||, &&, ; and line ends into the
// words of its simple commands. It knows quotes, escapes and redirections;
// everything that would need a real shell to understand gives ok false.
func splitCommand(command string) (simple [][]string, ok bool) {
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

// redirect takes a redirection operator and gives its length. The file after
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

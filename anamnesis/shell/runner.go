package shell

import (
	"regexp"
	"slices"
	"strings"
)

// running is what a command runs: words, or a shell script.
type running struct {
	words   []Word
	assigns []Assign
	script  *Word
}

// runner describes how programs take the command they run. Lists are separated by blanks.
type runner struct {
	programs   string
	valued     string // their short options that take the next word
	valuedLong string // their long ones
	skip       int    // their own words before the command
	assigns    bool   // NAME=VALUE may come before it
}

// runners returns the programs whose arguments are another command.
func runners() []runner {
	return []runner{
		{programs: "sudo", valued: "ughpCTUDRrt", assigns: true,
			valuedLong: "user group host prompt chdir chroot role type"},
		{programs: "doas", valued: "uC"},
		{programs: "env", valued: "uC", valuedLong: "unset chdir", assigns: true},
		{programs: "nohup setsid builtin command"},
		{programs: "exec", valued: "a"},
		{programs: "time", valued: "fo", valuedLong: "format output"},
		{programs: "nice", valued: "n", valuedLong: "adjustment"},
		{programs: "ionice", valued: "cnpPu", valuedLong: "class classdata"},
		{programs: "stdbuf", valued: "ioe", valuedLong: "input output error"},
		{programs: "timeout", valued: "ks", valuedLong: "kill-after signal", skip: 1},
		{programs: "xargs", valued: "nPIdLaEs", valuedLong: "max-args max-procs delimiter arg-file max-chars"},
		{programs: "flock", valued: "wEc", valuedLong: "timeout wait conflict-exit-code command", skip: 1},
		{programs: "watch", valued: "nq", valuedLong: "interval equexit"},
		{programs: "taskset", skip: 1},
		{programs: "chrt", valued: "TPD", valuedLong: "sched-runtime sched-period sched-deadline", skip: 1},
		{programs: "fakeroot unbuffer chronic linux32 linux64", valued: "lisb"},
		{programs: "strace ltrace", valued: "eosapuESIXbP"},
	}
}

// runs returns the command that a command runs, if any.
func runs(s Simple) running {
	program, args := s.Program(), s.Args()
	switch program {
	case "sh", "bash", "rbash", "dash", "zsh", "ksh", "mksh", "ash", "yash":
		return running{script: shellScript(s)}
	case "eval":
		return running{script: joined(args)}
	case "su", "sg", "script":
		return running{script: optionValue(args, "c", "command")}
	case "find":
		return running{words: findExec(args)}
	}
	all := runners()
	i := slices.IndexFunc(all, func(r runner) bool { return InList(r.programs, program) })
	if i < 0 {
		return running{}
	}
	if program == "command" && len(args) > 0 && (args[0].Text == "-v" || args[0].Text == "-V") {
		return running{} // it only queries
	}
	if program == "env" {
		if script := optionValue(args, "S", "split-string"); script != nil {
			return running{script: script}
		}
	}
	if program == "flock" {
		if script := optionValue(args, "c", "command"); script != nil {
			return running{script: script}
		}
	}
	out := all[i].command(args)
	if program == "watch" {
		return running{script: joined(out.words)}
	}
	return out
}

// command skips a runner's own words.
func (r runner) command(args []Word) running {
	var out running
	for i := 0; i < len(args); i++ {
		w := args[i].Text
		switch {
		case w == "--":
			if i += 1 + r.skip; i < len(args) {
				out.words = args[i:]
			}
			return out
		case strings.HasPrefix(w, "--"):
			named := func(option string) bool { return strings.HasPrefix(option, w[2:]) } // it may be shortened
			if slices.ContainsFunc(strings.Fields(r.valuedLong), named) {
				i++
			}
		case strings.HasPrefix(w, "-") && len(w) > 1:
			// -u name and -iu name take the next word, -uname does not.
			if strings.IndexAny(w[1:], r.valued) == len(w)-2 {
				i++
			}
		case w == "-" && r.assigns: // env's abbreviation of -i
		case r.assigns && assignment.MatchString(w):
			name, value, _ := strings.Cut(w, "=")
			out.assigns = append(out.assigns, Assign{Name: name, Value: Word{Text: value, Dynamic: args[i].Dynamic}})
		case r.skip > 0:
			r.skip--
		default:
			out.words = args[i:]
			return out
		}
	}
	return out
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// shellScript returns what a shell runs: the text after -c, or its standard input if the line
// has it. A script file is not read.
func shellScript(s Simple) *Word {
	args := s.Args()
	option := func(w string) bool { return strings.HasPrefix(w, "-") || strings.HasPrefix(w, "+") }
	for i := 0; i < len(args); i++ {
		switch w := args[i].Text; {
		case w == "--rcfile" || w == "--init-file":
			i++
		case strings.HasPrefix(w, "--"):
		case !option(w):
			return nil // a file
		case strings.HasPrefix(w, "-") && strings.Contains(w, "c"):
			rest := args[i+1:]
			if at := slices.IndexFunc(rest, func(w Word) bool { return !option(w.Text) }); at >= 0 {
				return &rest[at]
			}
			return nil
		case strings.HasSuffix(w, "o") || strings.HasSuffix(w, "O"):
			i++ // an option's name
		}
	}
	for _, r := range s.Redirects {
		if strings.HasPrefix(r.Op, "<<") {
			return &r.File
		}
	}
	return nil
}

// optionValue returns the value of a short or long option, nil if it is absent.
func optionValue(args []Word, short, long string) *Word {
	for i, w := range args {
		if value, ok := strings.CutPrefix(w.Text, "--"+long+"="); ok {
			return &Word{Text: value, Dynamic: w.Dynamic}
		}
		letters, ok := strings.CutPrefix(w.Text, "-") // such as xc, which ends with -c
		clustered := ok && !strings.HasPrefix(letters, "-") && strings.HasSuffix(letters, short)
		if (clustered || w.Text == "--"+long) && i+1 < len(args) {
			return &args[i+1]
		}
	}
	return nil
}

// findExec returns the command that find runs.
func findExec(args []Word) []Word {
	at := slices.IndexFunc(args, func(w Word) bool {
		return slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, w.Text)
	})
	if at < 0 {
		return nil
	}
	rest := args[at+1:]
	if end := slices.IndexFunc(rest, func(w Word) bool { return w.Text == ";" || w.Text == "+" }); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// joined makes one script of words.
func joined(words []Word) *Word {
	var out Word
	var texts []string
	for _, w := range words {
		texts = append(texts, w.Text)
		out.Dynamic = out.Dynamic || w.Dynamic
	}
	out.Text = strings.Join(texts, " ")
	return &out
}

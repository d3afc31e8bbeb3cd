package approval

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// alwaysAsked are the programs that run their arguments, or change the meaning of later words
// of the line: no rule about commands allows them.
const alwaysAsked = "eval sudo su doas pkexec runuser source . exec trap alias unalias enable hash shopt set bind " +
	"complete compgen read mapfile readarray getopts declare typeset local export readonly let unset wait coproc " +
	"watch script parallel chroot unshare nsenter busybox toybox setpriv capsh gdb strace ltrace flock ed ex vi vim " +
	"nvim emacs expect at batch crontab systemd-run"

// shells run their standard input, or the text after -c.
const shells = "sh bash rbash dash posh zsh ksh mksh ash yash fish csh tcsh pwsh nu elvish xonsh"

// interpreters run their standard input, or a text among their arguments.
const interpreters = "python pypy perl ruby node nodejs deno bun php lua luajit Rscript osascript tclsh tsx ts-node " +
	"julia groovy guile racket elixir"

// IsShell reports whether a program is a shell, with any version suffix: ksh93.
func IsShell(program string) bool {
	return shell.InList(shells, strings.TrimRight(program, "0123456789.-"))
}

// Interprets reports whether a program is an interpreter, with any version suffix: python3.12,
// perl5.36.
func Interprets(program string) bool {
	return shell.InList(interpreters, strings.TrimRight(program, "0123456789.-"))
}

// risky are the options with which programs run other programs, or write to places that their other arguments do
// not show, in lines that begin with programs: prefixes, or with "!" whole words.
const risky = `
git: -c --config-env --exec-path --git-dir --work-tree -C -O --open-files-in-pager --ext-diff --textconv
git: --upload-pack --receive-pack -u -x --exec --output --extcmd --tool -i !bisect !filter-branch !submodule !config
git: !difftool !mergetool !rebase !alias !hook !maintenance !daemon !credential !remote-ext !help !instaweb
git: !send-email --sendmail-cmd !for-each-repo !p4 !svn !gui !citool
find: -exec -ok -delete -fprint -fls
tar bsdtar: --checkpoint-action --to-command -I --use-compress-program --info-script --new-volume-script -F
tar bsdtar: --rsh-command -P --absolute-names
rsync: -e --rsh --rsync-path
ssh scp sftp: -o -F -S -D
rg: --pre --hostname-bin
sort: --compress-program -o --output -T
man less more: -P --pager -H --html + -o -O -k --lesskey
go: -exec --exec -toolexec --toolexec -vettool --vettool -C !generate !env !tool
env: -S --split-string -C --chdir
xargs: -a --arg-file
printf test [: -v -R
make gmake: SHELL= -f --file --makefile --eval -C --directory -I
npm npx pnpm yarn: --script-shell --node-options --prefix -C
curl wget: -K --config -o -O --output --remote-name -T --upload-file --use-askpass -i --input-file -P -e --execute`

// riskyOptions returns those of a program; nil: none is known.
func riskyOptions(program string) (options []string) {
	for line := range strings.Lines(risky) {
		if programs, list, _ := strings.Cut(line, ": "); shell.InList(programs, program) {
			options = append(options, strings.Fields(list)...)
		}
	}
	return options
}

// plainSed is a script that only prints or deletes; plainFlags are those of an s command that
// neither runs nor writes.
var (
	plainSed   = shell.Pattern(`^[0-9,$!]*[pdq=]?$`)
	plainFlags = shell.Pattern(`^[gpiIM0-9]*$`)
)

// replaces reports whether a sed script is a single s command: after its third delimiter, the
// first that no backslash escapes, are only flags that replace.
func replaces(script string) bool {
	if len(script) < 2 || script[0] != 's' || !strings.ContainsRune("/#,|", rune(script[1])) ||
		strings.ContainsAny(script, "\n;{}") {
		return false
	}
	delimiters := 0
	for i := 1; i < len(script); i++ {
		switch script[i] {
		case '\\':
			i++
		case script[1]:
			if delimiters++; delimiters == 3 {
				return plainFlags().MatchString(script[i+1:])
			}
		}
	}
	return false
}

// opaque returns why a command may do more than it shows, empty if it does not.
func opaque(s shell.Simple) string {
	for _, r := range s.Redirects {
		if strings.HasPrefix(r.File.Text, "/dev/tcp/") || strings.HasPrefix(r.File.Text, "/dev/udp/") {
			return "it redirects to the network"
		}
	}
	if len(s.Words) == 0 {
		return ""
	}
	if s.Words[0].Dynamic {
		return "the program's name is only known when it runs"
	}
	program := s.Program()
	dynamic := slices.ContainsFunc(s.Args(), func(w shell.Word) bool { return w.Dynamic })
	switch {
	case shell.InList(alwaysAsked, program):
		return program + " runs or changes something that its text does not show"
	case IsShell(program):
		return shellReads(s)
	case Interprets(program):
		return interpreterReads(s)
	case shell.InList(awks, program):
		if dynamic || slices.ContainsFunc(s.Args(), func(w shell.Word) bool {
			return strings.ContainsAny(w.Text, "|>@") || strings.Contains(w.Text, "system") ||
				strings.Contains(w.Text, "getline") || strings.HasPrefix(w.Text, "-")
		}) {
			return "awk's program may run others"
		}
	case program == "sed":
		return sedScript(s, dynamic)
	}
	options := riskyOptions(program)
	if options != nil && dynamic {
		return program + " has options that run programs, and one of its words is only known when it runs"
	}
	for i, w := range s.Args() {
		text := w.Text
		if i == 0 && strings.HasSuffix(program, "tar") && !strings.HasPrefix(text, "-") {
			text = "-" + text // the oldest form of its options
		}
		for _, option := range options {
			if alone, ok := strings.CutPrefix(option, "!"); ok && text == alone || !ok && begins(text, option) {
				return program + " " + w.Text + " runs other programs or reaches other places"
			}
		}
	}
	return ""
}

// begins reports whether a word is an option: with a joined value, among other short ones, or,
// of a long one, shortened.
func begins(word, option string) bool {
	switch {
	case strings.HasPrefix(word, option):
		return true
	case strings.HasPrefix(option, "--"):
		name, _, _ := strings.Cut(word, "=")
		return len(name) > 2 && strings.HasPrefix(option, name)
	case len(option) == 2:
		return len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.Contains(word[1:], option[1:])
	}
	return false
}

// shellReads returns why what a shell reads is hidden. A named script file is judged by its
// name; rules about commands do not cover other texts.
func shellReads(s shell.Simple) string {
	args := s.Args()
	if len(args) == 0 || strings.IndexAny(args[0].Text, "-+") == 0 || args[0].Dynamic {
		return s.Program() + " runs a text"
	}
	return ""
}

// textModules are modules of Python that run their arguments, or their input.
const textModules = "timeit code asyncio pdb"

// interpreterReads is shellReads for interpreters, which also take modules.
func interpreterReads(s shell.Simple) string {
	args := s.Args()
	if len(args) > 1 && args[0].Text == "-m" && shell.InList(textModules, args[1].Text) {
		return s.Program() + " -m " + args[1].Text + " runs a text"
	}
	if len(args) == 0 || args[0].Dynamic || s.Program() == "deno" && args[0].Text == "eval" ||
		strings.HasPrefix(args[0].Text, "-") && !shell.InList("-m --version --test", args[0].Text) {
		return s.Program() + " runs a text"
	}
	return ""
}

// sedScript judges a word that may be sed's script.
func sedScript(s shell.Simple, dynamic bool) string {
	if dynamic {
		return "sed's script is only known when it runs"
	}
	scripts := 0
	for _, w := range s.Args() {
		switch {
		case w.Text == "-n" || w.Text == "-E" || w.Text == "-r":
		case strings.HasPrefix(w.Text, "-"):
			return "sed " + w.Text + " reads or writes something that its text does not show"
		case scripts == 0:
			scripts++
			if !plainSed().MatchString(w.Text) && !replaces(w.Text) {
				return "sed's script may run or write"
			}
		}
	}
	return ""
}

// harmlessVariables change the output of a program, not its effects.
const harmlessVariables = "LANG LC_ALL LC_CTYPE LC_MESSAGES TZ NO_COLOR FORCE_COLOR COLUMNS CI GOOS GOARCH CGO_ENABLED"

// free commands need no rule: they change nothing but the shell's directory, to one below.
func free(s shell.Simple) bool {
	plain := !slices.ContainsFunc(s.Args(), func(w shell.Word) bool { return w.Dynamic })
	switch s.Words[0].Text {
	case "true", "false", ":", "pwd", "echo", "exit", "break", "continue":
		return true
	case "test", "[":
		return plain
	case "cd":
		return plain && len(s.Words) == 2 && s.Words[1].Text != "" && strings.IndexAny(s.Words[1].Text, "-/") != 0 &&
			!climbs(s.Words[1].Text)
	}
	return false
}

// fed returns why words that xargs reads may become more than arguments of what it runs:
// programs, scripts or options that run programs. at is the index of xargs.
func fed(commands []shell.Simple, at int) string {
	own := commands[at].Args()
	via, i := "xargs", at+1
	for ; i < len(commands) && commands[i].Via == via; i++ {
		program := commands[i].Program()
		if via == "xargs" {
			// The last words of xargs are those of the command that it runs; the ones before are its options.
			own = own[:max(0, len(own)-len(commands[i].Words))]
		}
		if !shell.InList(wrappers, program) {
			if riskyOptions(program) != nil || Interprets(program) || IsShell(program) ||
				shell.InList("sed "+awks, program) {
				return program + " gets words from xargs"
			}
			via = ""
			break
		}
		via = program
	}
	if via != "" && i > at+1 {
		return via + " gets words from xargs"
	}
	for i, w := range own {
		text := ""
		if m := replaceOption().FindStringSubmatch(w.Text); m == nil {
			continue
		} else if text = m[1]; text == "" && strings.HasSuffix(w.Text, "I") && i+1 < len(own) {
			text = own[i+1].Text
		}
		if strings.Trim(text, "{}%@=") != "" {
			return "xargs puts words in place of others"
		}
	}
	return ""
}

// replaceOption is an option of xargs that names the text to be replaced.
var replaceOption = shell.Pattern(`^(?:-[a-zA-Z0-9]*?[Ii]|--rep[a-z]*=?)(.*)$`)

// awks run a program of their own language.
const awks = "awk gawk mawk nawk"

// wrappers run a command and do nothing else.
const wrappers = "timeout nice nohup time stdbuf ionice setsid env command builtin xargs"

// wraps reports whether a command only runs the next one, without own options that change
// that.
func wraps(s, next shell.Simple) bool {
	program := s.Program()
	if program != s.Words[0].Text || next.Via != program || !shell.InList(wrappers, program) || len(next.Words) == 0 {
		return false
	}
	own := s.Args()[:max(0, len(s.Args())-len(next.Words))]
	return !slices.ContainsFunc(own, func(w shell.Word) bool { return w.Dynamic || strings.HasPrefix(w.Text, "-") })
}

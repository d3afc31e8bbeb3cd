package approval

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// launchers start a program, or run a text, given among their arguments: on this machine, in a
// container or on another machine. Their option syntax decides where, so any of their words
// may begin a command.
const launchers = "setarch i386 i686 x86_64 uname26 prlimit numactl runcon bwrap firejail dbus-run-session " +
	"dbus-launch xvfb-run start-stop-daemon valgrind perf hyperfine entr screen tmux direnv rlwrap socat nc ncat " +
	"netcat zip split sqlite3 psql mysql mariadb dc newgrp ifne mispipe pee fakechroot proot cgexec cpulimit " +
	"torsocks torify tsocks proxychains proxychains4 eatmydata faketime catchsegv sem logsave watchexec nodemon " +
	"concurrently cross-env dotenv ssh-agent gpg-agent ansible cmake ssh rsh mosh docker podman nerdctl kubectl lxc " +
	"vagrant npx bunx pnpx npm pnpm yarn bun uv uvx pipx poetry pipenv pdm hatch rye conda mamba micromamba bundle " +
	"nix nix-shell mise asdf rbenv pyenv volta corepack"

// launches reports whether a command starts programs that its words name.
func launches(s shell.Simple) bool {
	program := s.Program()
	return shell.InList(launchers, program) || strings.HasPrefix(program, "ld-") || program == "ld.so"
}

// mayLaunch reports whether a rule is about a command that a launcher may start: its words
// from any of them on, or the text of one.
func mayLaunch(rule Rule, s shell.Simple) bool {
	if !launches(s) {
		return false
	}
	separates := func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>`$!:=,'\"\\", r) }
	lists := [][]shell.Word{s.Args()}
	for _, w := range s.Args() {
		var inner []shell.Word
		for text := range strings.FieldsFuncSeq(w.Text, separates) {
			inner = append(inner, shell.Word{Text: text})
		}
		lists = append(lists, inner)
	}
	return slices.ContainsFunc(lists, func(words []shell.Word) bool {
		for i := range words {
			if names(rule, shell.Simple{Words: words[i:]}, true) {
				return true
			}
		}
		return false
	})
}

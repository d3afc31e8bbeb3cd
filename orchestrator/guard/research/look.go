package research

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// Looks reports whether a shell call certainly only reads, so that its result can be cited.
func Looks(args string) bool {
	simple, err := shell.Parse(shell.Command(args))
	if err != nil {
		return false
	}
	looked := false
	for _, s := range simple {
		if shell.InList("cd pwd echo true", s.Program()) && !slices.ContainsFunc(s.Redirects, shell.Redirect.Writes) {
			continue // neither harm nor evidence
		}
		if !looks(s) {
			return false
		}
		looked = true
	}
	return looked
}

func looks(s shell.Simple) bool {
	if len(s.Words) == 0 || slices.ContainsFunc(s.Redirects, shell.Redirect.Writes) {
		return false
	}
	args := s.Args()
	sub := ""
	if len(args) > 0 {
		sub = args[0].Text
		if last := args[len(args)-1].Text; last == "--help" || last == "--version" {
			return true
		}
	}
	acts := func(options ...string) bool { // one of them makes a program of the list do more than look
		return slices.ContainsFunc(args, func(w shell.Word) bool {
			return slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(w.Text, o) })
		})
	}
	switch program := s.Program(); {
	case program == "find":
		return !acts("-exec", "-ok", "-delete", "-f")
	case program == "curl":
		return !slices.ContainsFunc(args, curlActs)
	case program == "go" && acts("-w", "-u"):
		return false
	}
	return shell.Listed(lookups, s.Program(), []string{sub})
}

// lookups are the programs that only look; see shell.Listed.
const lookups = `cat head tail less ls tree stat file wc grep egrep fgrep rg jq diff cmp cut which type whatis man
apropos info
apt-cache dig host nslookup whois du df uname
command: -v -V
npm pnpm yarn: view info show search ls list outdated why explain
pip pip3: show list index freeze check
go: doc list version env
cargo: search info tree metadata
gem: info search list
brew dnf yum apk zypper composer conda mamba apt: info show search list policy
git: log show diff status blame ls-files ls-remote grep rev-parse`

// curlActs reports whether an option makes curl do more than fetch and show.
func curlActs(w shell.Word) bool {
	t := w.Text
	if strings.HasPrefix(t, "--") {
		name, _, _ := strings.Cut(t[2:], "=")
		return !shell.InList("silent location fail show-error head header max-time compressed user-agent include "+
			"retry connect-timeout fail-with-body", name)
	}
	return strings.HasPrefix(t, "-") && strings.Trim(t[1:], "sSLfIiHAm0123456789") != ""
}

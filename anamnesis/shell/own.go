package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// network matches what a program text uses to read from a network.
	network = regexp.MustCompile(`(?i)\b(?:urllib\d*|urlopen|requests|httpx|aiohttp|https?|socket|ftplib|smtplib|` +
		`fetch|curl|wget|ssh|axios)\b`)
	// interpreter matches programs whose arguments or input may be a program text.
	interpreter = regexp.MustCompile(`^(?:python[\d.]*|node|deno|bun|ruby|perl|php|bash|sh|zsh|java|[gm]?awk)$`)
	sedRuns     = regexp.MustCompile(`(?:^|[;{}0-9$/\s])e(?:\s|$)|\b[rR]\s*[/~]|/[gipI0-9]*e[gipI0-9]*(?:[;}\s]|$)`)
	// fetchers are programs that print what others wrote elsewhere.
	fetchers = Set(`curl wget aria2c http https xh lynx w3m links elinks ssh scp sftp ftp lftp rsync nc ncat netcat
		socat telnet openssl dig nslookup host whois gh glab hub aws gcloud az kubectl docker podman psql mysql mongosh
		redis-cli mail mutt`)
	// scripted are programs whose first word that is no option is a script or a pattern and no file.
	scripted = Set("sed awk gawk mawk grep egrep fgrep rg ag ack jq")
)

// fetches lists the subcommands of a program that print what others wrote elsewhere.
func fetches(program string) string {
	switch program {
	case "git":
		return "clone fetch pull ls-remote remote submodule"
	case "npm", "pnpm", "yarn", "pip", "pip3", "cargo", "gem", "composer",
		"brew", "apt", "apt-get", "apt-cache", "conda":
		return "view info search index outdated audit download policy madison"
	}
	return ""
}

// OwnWork reports whether what a shell command prints comes from programs that the agent chose to run, such as
// tests, builds and installers, and not from text that others wrote: a network, or a file outside dir, the
// world's directory. What cannot be determined, such as a program named by a variable, is not the agent's own.
func OwnWork(command, dir string) bool {
	commands, err := Parse(command)
	foreign := func(s Simple) bool { return !ownSimple(s, dir) }
	return err == nil && len(commands) > 0 && !slices.ContainsFunc(commands, foreign)
}

func ownSimple(s Simple, dir string) bool {
	var input string // what a here document holds
	for _, r := range s.Redirects {
		to, ok := r.File.literal()
		switch {
		case r.Op == "<<" || r.Op == "<<-" || r.Op == "<<<":
			input += r.File.Text
		case strings.Contains(to, "/dev/tcp/") || strings.Contains(to, "/dev/udp/"):
			return false
		case !r.Writes() && (!ok || outsideWord(to, dir)):
			return false
		}
	}
	for _, a := range s.Assigns {
		if outsideWord(a.Value.Text, dir) && !inSystem(a.Value.Text) {
			return false
		}
	}
	if len(s.Words) == 0 || s.Declares {
		return true
	}
	words := make([]string, len(s.Words))
	for i, w := range s.Words {
		words[i] = w.Text
		if w.Dynamic && (i == 0 || strings.Contains(w.Text, "~") || strings.Contains(w.Text, "HOME")) {
			return false
		}
	}
	return ownCall(words, input, dir)
}

// inSystem reports whether a path lies in a folder of the system.
func inSystem(p string) bool {
	return slices.ContainsFunc(systemDirs, func(d string) bool { return strings.HasPrefix(path.Clean(p)+"/", d) })
}

func ownCall(words []string, input, dir string) bool {
	if localSimple(words, dir) {
		return true
	}
	name := path.Base(words[0])
	if outsideWord(words[0], dir) && !inSystem(words[0]) {
		return false
	}
	text := scripted[name] // the next word is a script, a pattern or a program text
	for _, w := range words[1:] {
		option := len(w) > 1 && w[0] == '-'
		if !text && outsideWord(w, dir) {
			return false
		}
		// The script may follow options (sed -n 1p FILE), and -c and -e announce one at any place.
		text = w == "-c" || w == "-e" || text && option
	}
	args := words[1:]
	if interpreter.MatchString(name) {
		if len(args) > 1 && args[0] == "-m" && args[1] == "pip" {
			return ownCall(args[1:], "", dir)
		}
		return !network.MatchString(strings.Join(args, " ") + " " + input)
	}
	sub := Set(fetches(name))
	return !fetchers[name] && !slices.ContainsFunc(args, func(w string) bool { return fetchers[w] }) &&
		(len(args) == 0 || !sub[args[0]]) && (name != "sed" || !slices.ContainsFunc(args, sedRuns.MatchString))
}

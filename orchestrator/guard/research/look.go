package research

import (
	"encoding/json"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// Looks reports whether a shell call certainly only reads, so that its result can be cited.
func Looks(args string) bool {
	var a struct {
		Command string `json:"command"`
	}
	if json.Unmarshal([]byte(args), &a) != nil {
		return false
	}
	simple, err := shell.Parse(a.Command)
	if err != nil || len(simple) == 0 {
		return false
	}
	looked := false
	for _, s := range simple {
		if oneOf("cd pwd echo true", s.Program()) && !slices.ContainsFunc(s.Redirects, shell.Redirect.Writes) {
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
	two := sub
	if len(args) > 1 {
		two += " " + args[1].Text
	}
	switch s.Program() {
	case "cat", "head", "tail", "less", "ls", "tree", "stat", "file", "wc", "grep", "egrep", "fgrep", "rg", "jq", "diff", "cmp", "cut",
		"which", "type", "whatis", "man", "apropos", "info", "apt-cache", "dig", "host", "nslookup", "whois", "du", "df", "uname":
		return true
	case "command":
		return sub == "-v" || sub == "-V"
	case "find":
		return !slices.ContainsFunc(args, func(w shell.Word) bool {
			return strings.HasPrefix(w.Text, "-exec") || strings.HasPrefix(w.Text, "-ok") || strings.HasPrefix(w.Text, "-delete") || strings.HasPrefix(w.Text, "-f")
		})
	case "npm", "pnpm", "yarn":
		return oneOf("view info show search ls list outdated why explain", sub)
	case "pip", "pip3":
		return oneOf("show list index freeze check", sub)
	case "go":
		return oneOf("doc list version env", sub) && !slices.ContainsFunc(args, func(w shell.Word) bool { return w.Text == "-w" || w.Text == "-u" })
	case "cargo":
		return oneOf("search info tree metadata", sub)
	case "gem":
		return oneOf("info search list", sub)
	case "brew", "dnf", "yum", "apk", "zypper", "composer", "conda", "mamba", "apt":
		return oneOf("info show search list policy", sub)
	case "git":
		return oneOf("log show diff status blame ls-files ls-remote grep rev-parse", sub) || two == "remote -v"
	case "curl":
		return !slices.ContainsFunc(args, curlActs)
	}
	return false
}

// curlActs reports whether an option makes curl do more than fetch and show.
func curlActs(w shell.Word) bool {
	t := w.Text
	if strings.HasPrefix(t, "--") {
		name, _, _ := strings.Cut(t[2:], "=")
		return !oneOf("silent location fail show-error head header max-time compressed user-agent include retry connect-timeout fail-with-body", name)
	}
	return strings.HasPrefix(t, "-") && strings.Trim(t[1:], "sSLfIiHAm0123456789") != ""
}

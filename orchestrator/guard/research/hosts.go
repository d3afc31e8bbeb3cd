package research

import (
	"net"
	"regexp"
	"strings"

	"anamnesis/orchestrator/guard/command"
)

// address finds the host of an address with a scheme, behind a user's name.
var address = regexp.MustCompile(`(?i)\b(?:https?|git|ssh|ftps?|sftp|wss?|rsync|svn)(?:\+[a-z]+)?://(?:[^\s/@'"<>]*@)?(\[[0-9a-f:]+\]|[a-z0-9._-]+)`)

// remote finds the host of user@host:path, as git and scp write it.
var remote = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)([A-Za-z0-9.-]+)(?::.*)?$`)

// bareHost is a host, or an address without its scheme.
var bareHost = regexp.MustCompile(`^([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}|\d+\.\d+\.\d+\.\d+)(?::\d+)?(?:[/?#].*)?$`)

// HostsIn lists the hosts of the addresses in a text, lower case, each once for
// every time it occurs.
func HostsIn(text string) []string {
	var out []string
	for _, m := range address.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.ToLower(strings.Trim(m[1], "[].")))
	}
	return out
}

// hosts finds what a command reaches. Only programs that use the network for
// what they are given are asked.
func (f *finder) hosts(s command.Simple) {
	bare, remotes := false, false
	switch s.Program() {
	case "curl", "wget", "http", "https", "xh", "aria2c":
		bare = true
	case "ssh", "scp", "sftp", "rsync", "nc", "telnet", "ping":
		bare, remotes = true, true
	case "git":
		remotes = true
		if !gitReaches(s.Args()) {
			return
		}
	case "npm", "pnpm", "yarn", "bun", "npx", "bunx", "pip", "pip3", "pipx", "uv", "uvx", "go", "cargo", "gem", "docker", "podman", "svn", "hg":
	default:
		return
	}
	values := false // the word before was an option that takes a value
	for _, w := range s.Args() {
		skip := values
		values = bare && oneOf("-o -O -H -d -A -e -u -X -T -F -b -c -i -p --output --header --data --user-agent --user --request --form --identity", w.Text)
		for _, host := range hostsOf(w.Text, bare && !skip, remotes) {
			f.host(host)
		}
	}
}

// gitReaches reports whether a git command uses the address it is given.
func gitReaches(args []command.Word) bool {
	for i := 0; i < len(args); i++ {
		w := args[i].Text
		if w == "-C" || w == "-c" {
			i++
			continue
		}
		if !strings.HasPrefix(w, "-") {
			return oneOf("clone fetch pull push remote submodule ls-remote archive", w)
		}
	}
	return false
}

func hostsOf(w string, bare, remotes bool) []string {
	if hosts := HostsIn(w); len(hosts) > 0 || strings.HasPrefix(w, "-") {
		return hosts
	}
	if m := remote.FindStringSubmatch(w); remotes && m != nil {
		return []string{strings.ToLower(m[1])}
	}
	if m := bareHost.FindStringSubmatch(w); bare && m != nil {
		return []string{strings.ToLower(m[1])}
	}
	return nil
}

func (f *finder) host(host string) {
	if local(host) || f.rules.KnownHost != nil && f.rules.KnownHost(host) {
		return
	}
	f.add(Subject{Kind: Host, ID: "host:" + host})
}

// local reports whether a host is this machine.
func local(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// HostsNamed lists the hosts that a person's words name, as addresses or bare.
func HostsNamed(text string) []string {
	out := HostsIn(text)
	for _, w := range strings.Fields(text) {
		if m := bareHost.FindStringSubmatch(strings.Trim(w, `.,;:!?()[]"'<>`+"`")); m != nil {
			out = append(out, strings.ToLower(m[1]))
		}
	}
	return out
}

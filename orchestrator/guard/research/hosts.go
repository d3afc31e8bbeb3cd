package research

import (
	"net/netip"
	"strings"

	"anamnesis/anamnesis/shell"
)

// address finds the host of an address with a scheme, after an optional user name.
var address = shell.Pattern(`(?i)\b(?:https?|git|ssh|ftps?|sftp|wss?|rsync|svn)(?:\+[a-z]+)?://(?:[^\s/@'"<>]*@)?(\[[0-9a-f:]+\]|[a-z0-9._-]+)`)

// remote finds the host of [user@]host:path, as scp, rsync and git write it, but not after a
// path.
var remote = shell.Pattern(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+):`)

// userAt finds the host of user@host, with or without a path.
var userAt = shell.Pattern(`^[A-Za-z0-9._-]+@([A-Za-z0-9.-]+)(?::.*)?$`)

// bareHost is a host, or an address without its scheme.
var bareHost = shell.Pattern(`^([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}|\d+\.\d+\.\d+\.\d+)(?::\d+)?(?:[/?#].*)?$`)

// HostsIn lists the hosts of the addresses in a text, lower case, once for every occurrence.
func HostsIn(text string) []string {
	var out []string
	for _, m := range address().FindAllStringSubmatch(text, -1) {
		out = append(out, strings.ToLower(strings.Trim(m[1], "[].")))
	}
	return out
}

// caller describes how a program takes the hosts to reach.
type caller struct {
	short  string // its short options that take a value
	long   string // its long ones, separated by blanks
	bare   bool   // a host may be a word of its own
	user   bool   // user@host names one
	remote bool   // host:path does
	first  bool   // only the first word does; later words only as addresses
}

const (
	curlLong = "--output --header --data --data-binary --data-raw --data-ascii --data-urlencode --json --user-agent --user --request --form --form-string " +
		"--upload-file --cookie --cookie-jar --cacert --capath --cert --key --write-out --config --max-time --connect-timeout --retry --retry-delay --referer " +
		"--range --netrc-file --dump-header --trace --trace-ascii --output-dir --stderr --ciphers --limit-rate"
	wgetLong = "--output-document --output-file --append-output --header --user-agent --post-data --post-file --body-data --body-file --input-file " +
		"--directory-prefix --timeout --tries --wait --load-cookies --save-cookies --ca-certificate --certificate --private-key --user --password --accept --reject --referer"
)

// callerOf returns the programs that use the network for their arguments.
func callerOf(program string) (caller, bool) {
	switch program {
	case "curl":
		return caller{short: "oHdAeuXTFbcrmwKCDEUyYzPQt", long: curlLong, bare: true}, true
	case "wget":
		return caller{short: "OoaeilBPUtTwQARDIX", long: wgetLong, bare: true}, true
	case "http", "https", "xh":
		return caller{short: "oaA", long: "--output --auth --auth-type", bare: true}, true
	case "aria2c":
		return caller{short: "odisxjk", long: "--out --dir --input-file", bare: true}, true
	case "ssh":
		return caller{short: "bcDEeFIiJLlmOopQRSWw", bare: true, user: true, first: true}, true
	case "nc", "telnet", "ping":
		return caller{short: "ceiIlmpqsWwxX", bare: true, first: true}, true
	case "sftp":
		return caller{short: "bcDFilJoPRSsX", bare: true, user: true, remote: true, first: true}, true
	case "scp":
		return caller{short: "cFiJloPSX", user: true, remote: true}, true
	case "rsync":
		return caller{short: "efBT", long: "--rsh --exclude --include --filter --exclude-from --include-from --files-from --log-file --port", user: true, remote: true}, true
	case "git", "npm", "pnpm", "yarn", "bun", "npx", "bunx", "pip", "pip3", "pipx", "uv", "uvx", "go", "cargo", "gem", "docker", "podman", "svn", "hg":
		return caller{}, true
	}
	return caller{}, false
}

// takes reports whether an option's value is the next word: in a cluster of short ones (-sSLo)
// the first that takes a value has the rest as its value.
func (c caller) takes(w string) bool {
	if strings.HasPrefix(w, "--") || !strings.HasPrefix(w, "-") {
		return oneOf(c.long, w)
	}
	at := strings.IndexAny(w[1:], c.short)
	return at >= 0 && at == len(w)-2
}

// hosts finds what a command reaches, for programs that use the network for their arguments.
func (f *finder) hosts(s shell.Simple) {
	program := s.Program()
	c, ok := callerOf(program)
	if !ok {
		return
	}
	if program == "git" {
		sub := gitSub(s.Args())
		if !oneOf("clone fetch pull push remote submodule ls-remote archive", sub) {
			return
		}
		c.user = true
		c.remote = oneOf("clone remote submodule ls-remote", sub) // elsewhere a:b may be two branches
	}
	values, named := false, false // the previous word takes a value; the one word that names a host was seen
	for _, w := range s.Args() {
		value := values || named
		values = c.takes(w.Text)
		for _, host := range c.hostsOf(w.Text, value) {
			f.host(host)
		}
		named = named || c.first && !value && !strings.HasPrefix(w.Text, "-")
	}
}

// gitSub returns the subcommand of a git command.
func gitSub(args []shell.Word) string {
	for i := 0; i < len(args); i++ {
		switch w := args[i].Text; {
		case oneOf("-C -c --git-dir --work-tree --namespace --exec-path", w):
			i++
		case !strings.HasPrefix(w, "-"):
			return w
		}
	}
	return ""
}

func (c caller) hostsOf(w string, value bool) []string {
	if hosts := HostsIn(w); len(hosts) > 0 || strings.HasPrefix(w, "-") || value {
		return hosts
	}
	if m := userAt().FindStringSubmatch(w); c.user && m != nil {
		return []string{strings.ToLower(m[1])}
	}
	if m := remote().FindStringSubmatch(w); c.remote && m != nil {
		return []string{strings.ToLower(m[1])}
	}
	if m := bareHost().FindStringSubmatch(w); c.bare && m != nil {
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
	ip, err := netip.ParseAddr(host)
	ip = ip.Unmap()
	return err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// HostsNamed lists the hosts that a user's words name, as addresses or bare.
func HostsNamed(text string) []string {
	out := HostsIn(text)
	for _, w := range strings.Fields(text) {
		if m := bareHost().FindStringSubmatch(strings.Trim(w, `.,;:!?()[]"'<>`+"`")); m != nil {
			out = append(out, strings.ToLower(m[1]))
		}
	}
	return out
}

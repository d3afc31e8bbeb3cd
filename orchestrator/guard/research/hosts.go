package research

import (
	"net/netip"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// address finds the host of an address with a scheme, after an optional user name.
var address = shell.Pattern(`(?i)\b(?:https?|git|ssh|ftps?|sftp|wss?|rsync|svn)(?:\+[a-z]+)?://` +
	`(?:[^\s/@'"<>]*@)?(\[[0-9a-f:]+\]|[a-z0-9._-]+)`)

// remote finds the host of [user@]host:path, as scp, rsync and git write it, but not after a
// path.
var remote = shell.Pattern(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+):`)

// userAt finds the host of user@host, with or without a path.
var userAt = shell.Pattern(`^[A-Za-z0-9._-]+@([A-Za-z0-9.-]+)(?::.*)?$`)

// bareHost is a host, or an address without its scheme.
var bareHost = shell.Pattern(`^([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}|\d+\.\d+\.\d+\.\d+)` +
	`(?::\d+)?(?:[/?#].*)?$`)

// hostsIn lists the hosts of the addresses in a text, lower case, once for every occurrence.
func hostsIn(text string) []string {
	var out []string
	for _, m := range address().FindAllStringSubmatch(text, -1) {
		out = append(out, strings.ToLower(strings.Trim(m[1], "[].")))
	}
	return out
}

// caller describes how programs take the hosts to reach. Lists are separated by blanks.
type caller struct {
	programs string
	short    string // their short options that take a value
	long     string // their long ones
	bare     bool   // a host may be a word of its own
	user     bool   // user@host names one
	remote   bool   // host:path does
	first    bool   // only the first word does; later words only as addresses
}

func callers() []caller {
	return []caller{
		{programs: "curl", short: "oHdAeuXTFbcrmwKCDEUyYzPQt", bare: true,
			long: "--output --header --data --data-binary --data-raw --data-ascii --data-urlencode --json " +
				"--user-agent --user --request --form --form-string --upload-file --cookie --cookie-jar --cacert " +
				"--capath --cert --key --write-out --config --max-time --connect-timeout --retry --retry-delay " +
				"--referer --range --netrc-file --dump-header --trace --trace-ascii --output-dir --stderr --ciphers " +
				"--limit-rate"},
		{programs: "wget", short: "OoaeilBPUtTwQARDIX", bare: true,
			long: "--output-document --output-file --append-output --header --user-agent --post-data --post-file " +
				"--body-data --body-file --input-file --directory-prefix --timeout --tries --wait --load-cookies " +
				"--save-cookies --ca-certificate --certificate --private-key --user --password --accept --reject " +
				"--referer"},
		{programs: "http https xh", short: "oaA", long: "--output --auth --auth-type", bare: true},
		{programs: "aria2c", short: "odisxjk", long: "--out --dir --input-file", bare: true},
		{programs: "ssh", short: "bcDEeFIiJLlmOopQRSWw", bare: true, user: true, first: true},
		{programs: "nc telnet ping", short: "ceiIlmpqsWwxX", bare: true, first: true},
		{programs: "sftp", short: "bcDFilJoPRSsX", bare: true, user: true, remote: true, first: true},
		{programs: "scp", short: "cFiJloPSX", user: true, remote: true},
		{programs: "rsync", short: "efBT", user: true, remote: true,
			long: "--rsh --exclude --include --filter --exclude-from --include-from --files-from --log-file --port"},
		{programs: "git npm pnpm yarn bun npx bunx pip pip3 pipx uv uvx go cargo gem docker podman svn hg"},
	}
}

// takes reports whether an option's value is the next word: in a cluster of short ones (-sSLo)
// the first that takes a value has the rest as its value.
func (c caller) takes(w string) bool {
	if strings.HasPrefix(w, "--") || !strings.HasPrefix(w, "-") {
		return shell.InList(c.long, w)
	}
	at := strings.IndexAny(w[1:], c.short)
	return at >= 0 && at == len(w)-2
}

// hosts finds what a command reaches, for programs that use the network for their arguments.
func (f *finder) hosts(s shell.Simple) {
	program := s.Program()
	all := callers()
	i := slices.IndexFunc(all, func(c caller) bool { return shell.InList(c.programs, program) })
	if i < 0 {
		return
	}
	c := all[i]
	if program == "git" {
		sub := gitSub(s.Args())
		if !shell.InList("clone fetch pull push remote submodule ls-remote archive", sub) {
			return
		}
		c.user = true
		c.remote = shell.InList("clone remote submodule ls-remote", sub) // elsewhere a:b may be two branches
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

func gitSub(args []shell.Word) string {
	for i := 0; i < len(args); i++ {
		switch w := args[i].Text; {
		case shell.InList("-C -c --git-dir --work-tree --namespace --exec-path", w):
			i++
		case !strings.HasPrefix(w, "-"):
			return w
		}
	}
	return ""
}

func (c caller) hostsOf(w string, value bool) []string {
	if hosts := hostsIn(w); len(hosts) > 0 || strings.HasPrefix(w, "-") || value {
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
	out := hostsIn(text)
	for w := range strings.FieldsSeq(text) {
		if m := bareHost().FindStringSubmatch(strings.Trim(w, `.,;:!?()[]"'<>`+"`")); m != nil {
			out = append(out, strings.ToLower(m[1]))
		}
	}
	return out
}

package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/orchestrator/guard/quarantine"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/remedy"
)

// Grants are a user's permissions for a program of a project beyond the sandbox of such
// programs. They are stored with the approval, never in the project's files.
type Grants struct {
	// Network is the whole network, including this machine's loopback: a list of hosts could
	// not be enforced.
	Network bool     `json:"network,omitempty"`
	Read    []string `json:"read,omitempty"`    // directories and files outside the world
	Write   []string `json:"write,omitempty"`   // directories outside the world
	Env     []string `json:"env,omitempty"`     // names of the user's variables
	Sockets []string `json:"sockets,omitempty"` // paths of Unix sockets
}

// Resolve checks the grants and returns them in the recorded form: absolute paths without
// links.
func (g Grants) Resolve() (Grants, error) {
	out := Grants{Network: g.Network, Env: slices.Clone(g.Env)}
	readable := func(m os.FileMode) bool { return m.IsDir() || m.IsRegular() }
	for _, list := range []struct {
		what     string
		from     []string
		to       *[]string
		fits     func(os.FileMode) bool
		expected string
	}{
		{"read", g.Read, &out.Read, readable, "a directory or file"},
		{"write", g.Write, &out.Write, os.FileMode.IsDir, "a directory"},
		{"socket", g.Sockets, &out.Sockets, func(m os.FileMode) bool { return m&os.ModeSocket != 0 }, "a Unix socket"},
	} {
		for _, path := range list.from {
			real, err := filepath.Abs(path)
			if err == nil {
				real, err = filepath.EvalSymlinks(real) // a link could lead elsewhere after the approval
			}
			if err != nil {
				return Grants{}, fmt.Errorf("grant to %s %s: %w", list.what, path, err)
			}
			if info, err := os.Stat(real); err != nil || !list.fits(info.Mode()) {
				return Grants{}, fmt.Errorf("grant to %s %s: not %s", list.what, path, list.expected)
			}
			if real == "/" {
				return Grants{}, fmt.Errorf("grant to %s /: name the directories", list.what)
			}
			*list.to = append(*list.to, real)
		}
	}
	for _, name := range g.Env {
		if name == "" || strings.ContainsAny(name, "= \t\n") {
			return Grants{}, fmt.Errorf("grant of the variable %q: want a name", name)
		}
	}
	return out, nil
}

// Lines describes the grants, one line each; none: nothing.
func (g Grants) Lines() []string {
	var out []string
	if g.Network {
		out = append(out, "the network, all of it, this machine's own services included")
	}
	for _, list := range []struct {
		what  string
		items []string
	}{{"read ", g.Read}, {"read and write ", g.Write}, {"your variable ", g.Env}, {"the Unix socket ", g.Sockets}} {
		for _, item := range list.items {
			out = append(out, list.what+item)
		}
	}
	return out
}

// Beyond describes the confinement of a project's program and its grants, for the user who is
// to approve it. more are further lines.
func (g Grants) Beyond(more []string) string {
	lines := append(g.Lines(), more...)
	text := "It runs in a sandbox: it reads and writes the project as Bash does, with no network, nothing of your " +
		"home and a cache of its own."
	if len(lines) == 0 {
		return text + " Beyond that it gets nothing."
	}
	return text + " Beyond that it gets:\n  " + strings.Join(lines, "\n  ")
}

// Secrets returns the values of the granted variables that look like secrets.
func (g Grants) Secrets(getenv func(string) string) []redact.Secret {
	var out []redact.Secret
	for _, name := range g.Env {
		out = append(out, redact.FromSetting(name, getenv(name))...)
	}
	return out
}

// runDirs are where services keep their sockets.
const runDirs = "/run /var/run"

// ForProject returns the sandbox for a program that a project brings: without the network, the
// user's home and the hidden directories, with a cache and a home directory of its own under
// the given name, and with its grants. A nil one stays nil. The error names what this machine
// cannot confine.
func (s *Sandbox) ForProject(g Grants, name string) (*Sandbox, error) {
	if s == nil {
		return nil, nil
	}
	switch p := s.parts; {
	case !p.Namespaces && p.Landlock == 0:
		return nil, remedy.With(errors.New("this system has neither namespaces nor Landlock to hold it in with"),
			remedy.SandboxOff, "")
	case !p.Namespaces && !p.Seccomp && !g.Network:
		return nil, remedy.With(errors.New("this system has nothing to keep it from the network with, so it needs a "+
			"grant of the network"), remedy.SandboxOff, "")
	case !p.Namespaces && len(g.Sockets) > 0:
		return nil, remedy.With(errors.New("sockets cannot be granted one by one where there are no namespaces"),
			remedy.SandboxOff, "")
	}
	with := *s
	with.net, with.unix = g.Network, len(g.Sockets) > 0
	o := &with.o
	o.Hidden = slices.Clone(s.o.Hidden)
	granted := slices.Concat(g.Read, g.Write, g.Sockets)
	for _, path := range granted {
		if quarantine.WithinAny(path, s.o.Hidden) {
			return nil, fmt.Errorf("%s is in the program's own state, which is never granted", path)
		}
	}
	for _, dir := range g.Write {
		if err := CheckWritable(dir, s.o.Hidden); err != nil {
			return nil, err
		}
	}
	hide := func(dir string) {
		if !slices.Contains(o.Hidden, dir) && !quarantine.WithinAny(dir, granted) {
			o.Hidden = append(o.Hidden, dir)
		}
	}
	for _, home := range s.o.Homes {
		hide(home)
	}
	o.Writable = slices.Concat(s.o.Writable, g.Write)
	o.Readable, o.Sockets = slices.Clone(g.Read), g.Sockets
	if with.unix { // hide what is not granted
		for dir := range strings.FieldsSeq(runDirs) {
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				hide(real)
			}
		}
		if real, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && g.Network {
			o.Readable = append(o.Readable, real)
		}
	}
	o.Cache, with.home = "", ""
	if s.o.Projects != "" {
		o.Cache = filepath.Join(s.o.Projects, name)
		with.home = filepath.Join(o.Cache, "home")
	}
	return &with, nil
}

// plainVariables are what a project's program gets of the user's environment without a grant,
// beside LC_*. networkVariables come with the network: proxies without a password, and
// certificates.
const (
	plainVariables   = "PATH LANG LANGUAGE TZ SHELL USER LOGNAME"
	networkVariables = "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS " +
		"REQUESTS_CA_BUNDLE CURL_CA_BUNDLE"
)

// ProjectEnviron returns the environment of a project's program: the variables of every
// command, harmless ones about place and language, and the granted ones. Without a sandbox it
// is that of a command and the granted ones.
func (s *Sandbox) ProjectEnviron(env []string, g Grants) []string {
	kept := Environ(env)
	fixed := strings.Fields(fixed)
	plain := strings.Fields(plainVariables)
	if g.Network {
		plain = append(plain, strings.Fields(networkVariables+" "+strings.ToLower(networkVariables))...)
	}
	if s != nil {
		kept = slices.DeleteFunc(kept, func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return !slices.Contains(fixed, kv) && !strings.HasPrefix(name, "LC_") && !slices.Contains(plain, name)
		})
	}
	for _, kv := range env {
		if name, _, ok := strings.Cut(kv, "="); ok && slices.Contains(g.Env, name) {
			kept = append(kept, kv)
		}
	}
	return kept
}

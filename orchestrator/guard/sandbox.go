package guard

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/guard/confine"
	"anamnesis/orchestrator/guard/quarantine"
)

// Confinement is how much of the machine a command may change.
type Confinement string

// The confinements.
const (
	// ConfineWorld lets a command write only in the world's directory, in private caches and
	// in a private /tmp. It has no network but its own loopback, unless it was asked for.
	ConfineWorld Confinement = "world"
	// ConfineReadOnly is ConfineWorld with a read-only world.
	ConfineReadOnly Confinement = "read-only"
	// ConfineOff runs a command with the program's own permissions.
	ConfineOff Confinement = "off"
)

// ParseConfinement reads a confinement's name. The error lists the valid names.
func ParseConfinement(s string) (Confinement, error) {
	switch c := Confinement(s); c {
	case ConfineWorld, ConfineReadOnly, ConfineOff:
		return c, nil
	}
	return "", fmt.Errorf("sandbox %q: want world, read-only or off", s)
}

// StricterConfinement returns the stricter of two confinements; an empty one is ConfineWorld.
func StricterConfinement(a, b Confinement) Confinement {
	list := []Confinement{ConfineOff, ConfineWorld, ConfineReadOnly}
	at := func(c Confinement) int { return slices.Index(list, cmp.Or(c, ConfineWorld)) }
	return list[max(at(a), at(b), 0)]
}

// SandboxOptions configure a sandbox. Directories are absolute and without links.
type SandboxOptions struct {
	Confine Confinement // "": ConfineWorld
	// World is the directory commands work in.
	World string
	// Writable are further directories commands may write.
	Writable []string
	// Protected are files and directories within the world that stay read-only if they exist
	// when a command starts, unless they are in one of Writable.
	Protected []string
	// Hidden are directories that commands cannot see: the program's own state.
	Hidden []string
	// Cache is where the private caches are, Temp is the commands' /tmp. Both are created on
	// first use; either may be in a hidden directory.
	Cache, Temp string
	// Quarantine is where files in the world are moved with which a command could make git run
	// programs outside the sandbox; empty: they stay.
	Quarantine string
	// Untried: no command is to run, only Examine. What this machine has is not tried.
	Untried bool
	// Runs is where running commands are recorded; see quarantine.Recover.
	Runs string
	// Readable are directories and files that commands see, read-only, although they are in a
	// hidden directory. Sockets are Unix sockets that they see although they are in one.
	Readable, Sockets []string
	// Homes are users' directories, which only ForProject hides. Projects is where it keeps
	// private caches.
	Homes    []string
	Projects string
	// Fork takes the place of World; see InFork.
	Fork *confine.Fork `json:",omitempty"`
	// Writes records what commands change in the world; nil: nothing does.
	Writes *Writes
}

// CheckWritable returns why commands cannot be given a directory to write: it is in a hidden one, or
// contains one. Paths are absolute and without links.
func CheckWritable(dir string, hidden []string) error {
	for _, h := range hidden {
		if quarantine.Within(h, dir) || quarantine.Within(dir, h) {
			return fmt.Errorf("%s cannot be writable for commands: the program's own state is in %s, and a command "+
				"that writes there decides what is recorded and approved; name the directories that commands need",
				dir, h)
		}
	}
	return nil
}

// Sandbox confines commands. A nil Sandbox confines nothing. It is constant and safe for
// concurrent use.
type Sandbox struct {
	o     SandboxOptions
	parts confine.Parts
	net   bool                   // commands may use the network
	unix  bool                   // commands may open Unix sockets
	git   *quarantine.Quarantine // of what git would run; nil: none
	home  string                 // $HOME of commands; empty: the user's own
	procs int                    // processes and threads that a command has at most
}

// missing lists what a sandbox of these parts cannot confine, one sentence each.
func missing(p confine.Parts) []string {
	var out []string
	say := func(text string) { out = append(out, text) }
	if !p.Namespaces {
		switch {
		case p.Landlock > 0:
			say("sandbox without namespaces (the kernel does not let this user make them): Landlock keeps commands " +
				"from writing outside the world and from reading the program's state, though not from listing its " +
				"names; commands have no network at all, not even a loopback of their own, no private /tmp, and can " +
				"change modes and owners of this user's files outside the world, and write the world's .anamnesis; " +
				"git hooks and git configuration are set back after a command has changed them")
		case p.Seccomp:
			say("sandbox with neither namespaces nor Landlock: commands can read and write wherever this user can, " +
				"the program's state included; only the network is held back")
		default:
			say("no sandbox: this system has neither namespaces nor Landlock nor filters of system calls; commands " +
				"can do what this user can")
		}
	}
	if !p.PIDs && p.Landlock < confine.LandlockSignals && (p.Namespaces || p.Landlock > 0 || p.Seccomp) {
		say("sandbox without a PID namespace: commands can see and signal this user's other processes")
	}
	if p.Landlock == 0 && p.Namespaces {
		say("sandbox without Landlock: files are held back by mounts alone")
	}
	if !p.Seccomp && p.Namespaces {
		say("sandbox without a filter of system calls: commands can reach Unix sockets outside the world")
	}
	return out
}

// Missing lists what the sandbox cannot confine on this machine, one sentence each; nothing
// for a nil one.
func (s *Sandbox) Missing() []string {
	if s == nil {
		return nil
	}
	out := missing(s.parts)
	if !s.parts.Namespaces && s.parts.Landlock > 0 {
		for _, dir := range s.o.Hidden {
			if dir != s.o.World && quarantine.Within(dir, s.o.World) {
				out = append(out, fmt.Sprintf("sandbox without namespaces in a world around the program's state "+
					"(%s): commands make no new files in the directories above that state", dir))
			}
		}
	}
	return out
}

// Earlier reports what was quarantined of a command whose program died; usually empty. The
// next command's Outcome reports it, too.
func (s *Sandbox) Earlier() string {
	if s == nil || s.git == nil {
		return ""
	}
	return s.git.Earlier()
}

// Exposes lists the hidden directories that commands can read, because this system has neither
// namespaces nor Landlock.
func (s *Sandbox) Exposes() []string {
	if s == nil || s.parts.Namespaces || s.parts.Landlock > 0 {
		return nil
	}
	return confine.Existing(s.o.Hidden)
}

// String names the active parts, for users.
func (s *Sandbox) String() string {
	if s == nil {
		return "off"
	}
	var with []string
	if s.parts.Namespaces {
		with = append(with, "namespaces")
	}
	if s.parts.PIDs {
		with = append(with, "PID namespace")
	}
	if s.parts.Landlock > 0 {
		with = append(with, fmt.Sprintf("Landlock %d", s.parts.Landlock))
	}
	if s.parts.Seccomp {
		with = append(with, "seccomp")
	}
	if len(with) == 0 {
		return string(s.o.Confine) + " (no means to confine commands)"
	}
	return string(s.o.Confine) + " (" + strings.Join(with, ", ") + ")"
}

// HoldsNetwork reports whether commands are without a network unless WithNetwork permits it.
func (s *Sandbox) HoldsNetwork() bool {
	return s != nil && !s.net && (s.parts.Namespaces || s.parts.Seccomp)
}

// Isolates reports whether commands reach neither the network nor the Unix sockets
// of other programs.
func (s *Sandbox) Isolates() bool { return s.HoldsNetwork() && s.parts.Seccomp && !s.unix }

// WithNetwork returns the same sandbox with the network, including Unix sockets.
func (s *Sandbox) WithNetwork() *Sandbox {
	if s == nil {
		return nil
	}
	with := *s
	with.net, with.unix = true, true
	return &with
}

// ReadOnly returns the same sandbox with a read-only world.
func (s *Sandbox) ReadOnly() *Sandbox {
	if s == nil {
		return nil
	}
	with := *s
	with.o.Confine = ConfineReadOnly
	return &with
}

// InFork returns the same sandbox in which a copy takes the place of the world. ok is false where this
// system cannot do that.
func (s *Sandbox) InFork(f confine.Fork) (forked *Sandbox, ok bool) {
	if s == nil || !s.parts.Namespaces {
		return nil, false
	}
	with := *s
	with.o.Fork, with.o.Writes, with.git = &f, nil, nil // nothing of the world itself can change
	return &with, true
}

// Hides reports whether a path, given without links, is hidden from commands.
func (s *Sandbox) Hides(path string) bool {
	if s == nil || !s.parts.Namespaces && s.parts.Landlock == 0 {
		return false
	}
	deepest := func(dirs ...string) int {
		n := -1
		for _, dir := range dirs {
			if quarantine.Within(path, dir) {
				n = max(n, len(dir))
			}
		}
		return n
	}
	shown := slices.Concat(s.o.Writable, s.o.Readable, s.o.Sockets, []string{s.o.World, s.o.Cache})
	return deepest(s.o.Hidden...) > deepest(shown...)
}

// ready makes the directories a command needs.
func (s *Sandbox) ready() error {
	if s == nil {
		return nil
	}
	for _, dir := range confine.NonEmpty(s.o.Cache, s.o.Temp, s.home) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("prepare the sandbox: %w", err)
		}
	}
	return nil
}

// privateCaches are variables that name caches, each with its place beneath
// SandboxOptions.Cache.
const privateCaches = "XDG_CACHE_HOME=xdg GOCACHE=go-build GOMODCACHE=go-mod npm_config_cache=npm " +
	"YARN_CACHE_FOLDER=yarn PIP_CACHE_DIR=pip UV_CACHE_DIR=uv CARGO_HOME=cargo GRADLE_USER_HOME=gradle"

// Environ points an environment's caches and temporary files at directories that commands may
// write. A cache in a writable directory stays. The user's own Go modules are read as a proxy,
// so that they need no network.
func (s *Sandbox) Environ(env []string) []string {
	if s == nil {
		return env
	}
	out := slices.Clone(env)
	set := func(name, v string) { out = SetVariable(out, name, v) }
	if s.home != "" {
		set("HOME", s.home)
	}
	if s.o.Cache != "" {
		for kv := range strings.FieldsSeq(privateCaches) {
			name, place, _ := strings.Cut(kv, "=")
			if v := cacheOf(env, name); v != "" && s.mayWrite(v) {
				set(name, v)
			} else {
				set(name, filepath.Join(s.o.Cache, place))
			}
		}
		if mods := goModules(env); mods != "" && !s.mayWrite(mods) {
			proxy := cmp.Or(Variable(env, "GOPROXY"), "https://proxy.golang.org,direct")
			set("GOPROXY", "file://"+filepath.ToSlash(filepath.Join(mods, "cache", "download"))+","+proxy)
		}
	}
	if s.o.Temp == "" {
		return out
	}
	temp := "/tmp"
	if !s.parts.Namespaces { // nothing can be mounted there
		temp = s.o.Temp
	}
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		set(name, temp)
	}
	return out
}

// filling are programs with the variables of privateCaches that they fill.
const filling = "go=GOCACHE cargo=CARGO_HOME npm=npm_config_cache yarn=YARN_CACHE_FOLDER pip=PIP_CACHE_DIR " +
	"pip3=PIP_CACHE_DIR uv=UV_CACHE_DIR gradle=GRADLE_USER_HOME"

// FillsCache returns a program of a command line that builds, tests or installs, and whose private cache is empty yet;
// "" if there is none.
func (s *Sandbox) FillsCache(line string, env []string) string {
	if s == nil || s.o.Cache == "" {
		return ""
	}
	commands, _ := shell.Parse(line) // bash says what is wrong with it
	env = s.Environ(env)
	for _, c := range commands {
		_, rest, _ := strings.Cut(" "+filling, " "+c.Program()+"=")
		variable, _, _ := strings.Cut(rest, " ")
		fills := len(c.Args()) > 0 && shell.InList("build test vet run install i ci add sync check", c.Args()[0].Text)
		if variable != "" && fills && len(confine.Existing([]string{Variable(env, variable)})) == 0 {
			return c.Program()
		}
	}
	return ""
}

// cacheOf returns where a cache is, set or by default.
func cacheOf(env []string, name string) string {
	v := Variable(env, name)
	switch {
	case v != "" || name != "GOCACHE" && name != "GOMODCACHE":
		return v
	case name == "GOMODCACHE":
		return goModules(env)
	}
	if dir := Variable(env, "XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "go-build")
	}
	if home := Variable(env, "HOME"); home != "" {
		return filepath.Join(home, ".cache", "go-build")
	}
	return ""
}

// goModules returns where the user's Go modules are; empty if unknown.
func goModules(env []string) string {
	if dir := Variable(env, "GOMODCACHE"); dir != "" {
		return dir
	}
	if path := Variable(env, "GOPATH"); path != "" {
		return filepath.Join(filepath.SplitList(path)[0], "pkg", "mod")
	}
	if home := Variable(env, "HOME"); home != "" {
		return filepath.Join(home, "go", "pkg", "mod")
	}
	return ""
}

func (s *Sandbox) mayWrite(dir string) bool {
	places := append([]string{s.o.Cache}, s.o.Writable...)
	if s.o.Confine == ConfineWorld {
		places = append(places, s.o.World)
	}
	return quarantine.WithinAny(dir, places)
}

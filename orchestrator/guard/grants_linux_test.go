package guard

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/orchestrator/guard/confine"
)

// projectBox is a box whose base is the user's home, with directories beside the
// world to be granted, and the sandbox of a project's program in it.
func projectBox(t *testing.T, p *confine.Parts, grants func(b box) Grants) box {
	t.Helper()
	b := newBox(t, SandboxOptions{})
	if p != nil {
		b.parts = *p
	}
	for path, text := range map[string]string{"/read/file": "readable", "/write/file": "writable", "/home/projects/x/file": "of another"} {
		if err := os.MkdirAll(filepath.Dir(b.base+path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(b.base+path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.o.Homes, b.o.Projects = []string{b.base}, b.home+"/projects"
	var err error
	if b.Sandbox, err = b.ForProject(grants(b), "name"); err != nil {
		t.Fatal(err)
	}
	return b
}

// withParts runs a test with all parts of this machine, and with those that are
// left where namespaces are forbidden.
func withParts(t *testing.T, f func(t *testing.T, p confine.Parts)) {
	all := newBox(t, SandboxOptions{}).parts
	needs(t, all.Namespaces && all.PIDs, "user namespaces")
	needs(t, all.Landlock > 0, "Landlock")
	for name, p := range map[string]confine.Parts{"everything": all, "without namespaces": {Landlock: all.Landlock, Seccomp: true}} {
		t.Run(name, func(t *testing.T) { f(t, p) })
	}
}

// A project's program reads and writes the world, which lies in the user's home,
// and nothing else of it, but for what was granted.
func TestForProject(t *testing.T) {
	withParts(t, func(t *testing.T, p confine.Parts) {
		tcp := listenOutside(t, "tcp", "127.0.0.1:0")
		none := projectBox(t, &p, func(box) Grants { return Grants{} })
		some := projectBox(t, &p, func(b box) Grants {
			return Grants{Network: true, Read: []string{b.base + "/read"}, Write: []string{b.base + "/write"}}
		})
		for _, row := range []struct {
			what, command string
			none, some    bool
		}{
			{"write the world", "echo x > new && cat new", true, true},
			{"its home", `echo x > "$HOME/x" && cat "$HOME/x" && [ "$HOME" != ` + os.Getenv("HOME") + ` ]`, true, true},
			{"its cache", `mkdir -p "$npm_config_cache" && echo x > "$npm_config_cache/x"`, true, true},
			{"read the home", "cat ../ws-secrets/secret", false, false},
			{"read the home by a link", "cat link/secret", false, false},
			{"write the home", "echo x > ../ws-secrets/secret", false, false},
			{"the state", "cat ../home/vault.jsonl", false, false},
			{"another's cache", "cat ../home/projects/x/file", false, false},
			{"the cache of commands", "ls ../home/cache && echo x > ../home/cache/x", false, false},
			{"git's configuration", "echo x > .git/config", false, false},
			{"a directory to read", "cat ../read/file", false, true},
			{"a directory to read, written", "echo x > ../read/file", false, false},
			{"a directory to write", "cat ../write/file && echo x > ../write/new", false, true},
			{"the network", "echo x > /dev/tcp/127.0.0.1/" + tcp.port(), false, true},
			{"a Unix socket of any kind", `perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0) or exit 1'`, false, false},
		} {
			for name, try := range map[string]struct {
				b    box
				want bool
			}{"nothing granted": {none, row.none}, "granted": {some, row.some}} {
				if row.what == "git's configuration" && !p.Namespaces {
					continue // Missing says so
				}
				if out, o := try.b.run(t, row.command); (o.Exit == 0) != try.want {
					t.Errorf("%s, %s: exit %d, want success %v\n%s", row.what, name, o.Exit, try.want, out)
				}
			}
		}
	})
}

// A grant of a directory around the state does not show the state.
func TestForProjectAroundState(t *testing.T) {
	withParts(t, func(t *testing.T, p confine.Parts) {
		b := projectBox(t, &p, func(b box) Grants { return Grants{Read: []string{b.base}} })
		if out, o := b.run(t, "cat ../ws-secrets/secret && echo x > new"); o.Exit != 0 {
			t.Errorf("what was granted: exit %d\n%s", o.Exit, out)
		}
		if out, _ := b.run(t, "cat ../home/vault.jsonl; echo x > ../ws-secrets/new"); strings.Contains(out, "the vault") {
			t.Errorf("the vault was read: %s", out)
		}
		if _, err := os.Stat(b.outside + "/new"); err == nil {
			t.Error("a directory granted for reading was written")
		}
		if _, err := b.ForProject(Grants{Read: []string{b.home + "/kb"}}, "name"); err == nil {
			t.Error("a directory of the state was granted")
		}
	})
}

// A tool that changes nothing reads the world, which lies in a hidden home.
func TestForProjectReadOnly(t *testing.T) {
	withParts(t, func(t *testing.T, p confine.Parts) {
		b := projectBox(t, &p, func(b box) Grants { return Grants{Write: []string{b.base + "/write"}} })
		b.Sandbox = b.ReadOnly()
		if out, o := b.run(t, "cat .anamnesis/rules.yaml && echo x > ../write/new"); o.Exit != 0 {
			t.Errorf("exit %d\n%s", o.Exit, out)
		}
		if out, o := b.run(t, "echo x > new"); o.Exit == 0 {
			t.Errorf("the world was written: %s", out)
		}
	})
}

// A granted Unix socket is reached; another in the home and the machine's
// services are not.
func TestForProjectSocket(t *testing.T) {
	needs(t, newBox(t, SandboxOptions{}).parts.Namespaces, "user namespaces")
	var own, other *outsider
	b := projectBox(t, nil, func(b box) Grants {
		// A socket's path is short; the box's may not be.
		dir, err := os.MkdirTemp(filepath.Dir(b.base), "s")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		own, other = listenOutside(t, "unix", dir+"/own"), listenOutside(t, "unix", dir+"/other")
		return Grants{Sockets: []string{dir + "/own"}}
	})
	b.o.Hidden = append(b.o.Hidden, filepath.Dir(own.address))
	connect := func(address string) string {
		return `perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0) && connect(S,sockaddr_un("` + address +
			`")) or die "$!"'`
	}
	if out, o := b.run(t, connect(own.address)); o.Exit != 0 {
		t.Errorf("the granted one: %s", out)
	}
	if out, o := b.run(t, connect(other.address)); o.Exit == 0 || other.reached() {
		t.Errorf("another was reached: %s", out)
	}
	if out, o := b.run(t, "test -z \"$(ls -A /run)\""); o.Exit != 0 {
		t.Errorf("the machine's services are in sight: %s", out)
	}
	b.parts = confine.Parts{Landlock: b.parts.Landlock, Seccomp: true}
	if _, err := b.ForProject(Grants{Sockets: []string{own.address}}, "name"); err == nil {
		t.Error("a socket was granted where it cannot be told from others")
	}
	b.parts = confine.Parts{Seccomp: true}
	if _, err := b.ForProject(Grants{}, "name"); err == nil ||
		!strings.Contains(err.Error(), "neither namespaces nor Landlock") {
		t.Errorf("with nothing to hold it in with: %v", err)
	}
}

func TestProjectEnviron(t *testing.T) {
	s := &Sandbox{}
	env := []string{
		"PATH=/w/bin:/usr/bin:.:bin::/usr/local/bin", "LC_ALL=C", "HOME=/home/u", "EDITOR=vi", "GITHUB_TOKEN=ghp_x",
		"OTHER=1",
	}
	got := s.ProjectEnviron(env, Grants{Env: []string{"GITHUB_TOKEN"}})
	for _, want := range []string{"PATH=/w/bin:/usr/bin:.:bin::/usr/local/bin", "LC_ALL=C", "GITHUB_TOKEN=ghp_x", "TERM=dumb"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q lacks %s", got, want)
		}
	}
	if with := s.ProjectEnviron([]string{"https_proxy=http://p:1"}, Grants{Network: true}); !slices.Contains(with, "https_proxy=http://p:1") {
		t.Errorf("with the network: %q", with)
	}
	for _, name := range []string{"HOME=", "EDITOR=", "OTHER="} {
		if slices.ContainsFunc(got, func(kv string) bool { return strings.HasPrefix(kv, name) }) {
			t.Errorf("%q has %s", got, name)
		}
	}
}

func TestGrantsResolve(t *testing.T) {
	dir := t.TempDir()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g, err := Grants{Read: []string{dir + "/link"}, Sockets: []string{dir + "/s"}, Env: []string{"X"}}.Resolve()
	if err != nil || g.Read[0] != real || g.Sockets[0] != real+"/s" || len(g.Lines()) != 3 {
		t.Errorf("%+v, %v", g, err)
	}
	for name, bad := range map[string]Grants{
		"nothing there": {Read: []string{dir + "/none"}}, "a socket to write": {Write: []string{dir + "/s"}}, "no socket": {Sockets: []string{dir}},
		"everything": {Write: []string{"/"}}, "a value": {Env: []string{"A=b"}},
	} {
		if _, err := bad.Resolve(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

package guard

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/orchestrator/guard/confine"
)

// box is a place to try a sandbox in: a world, and things beside it that
// commands must not reach.
type box struct {
	*Sandbox
	base, world, home, outside string
}

func newBox(t *testing.T, o SandboxOptions) box {
	t.Helper()
	// Not beneath /tmp, which commands have a private one of: what is beside the
	// world would be out of sight.
	cache, err := os.UserCacheDir()
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp(cache, "anamnesis-sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if base, err = filepath.EvalSymlinks(base); err != nil {
		t.Fatal(err)
	}
	b := box{base: base, world: base + "/ws", home: base + "/home", outside: base + "/ws-secrets"}
	for _, dir := range []string{b.world + "/.anamnesis", b.world + "/.git/hooks", b.home + "/kb", b.outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		b.home + "/vault.jsonl": "the vault", b.outside + "/secret": "outside",
		b.world + "/.anamnesis/rules.yaml": "deny: [Bash]",
		b.world + "/.git/config":           "[core]\n", b.world + "/.git/hooks/pre-commit": "exit 0\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(b.outside, b.world+"/link"); err != nil {
		t.Fatal(err)
	}
	o.World, o.Hidden = b.world, []string{b.home}
	o.Protected = []string{b.world + "/.anamnesis", b.world + "/.git/hooks", b.world + "/.git/config"}
	o.Cache, o.Temp = b.home+"/cache", b.home+"/tmp"
	if b.Sandbox, err = NewSandbox(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs a shell text in the sandbox and returns its output.
func (b box) run(t *testing.T, text string) (string, Outcome) {
	t.Helper()
	var out strings.Builder
	o, err := Run(t.Context(), Command{
		Path: "/bin/bash", Args: []string{"bash", "-c", text}, Dir: b.world, Env: os.Environ(), Timeout: time.Minute,
		Sandbox: b.Sandbox, Output: func(_ Stream, p []byte) { out.Write(p) },
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out.String(), o
}

// needs fails, or skips outside CI, where this kernel lacks what a test is
// about.
func needs(t *testing.T, ok bool, what string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("ANAMNESIS_CI") != "":
		// A runner without user namespaces must not pass for one that was tested.
		t.Fatalf("this machine has no %s", what)
	default:
		t.Skipf("SKIPPED: this machine has no %s", what)
	}
}

// confined runs a test in every combination of parts that this machine has:
// all it has, and what is left where namespaces are forbidden, as they are in
// most containers.
func confined(t *testing.T, o SandboxOptions, f func(*testing.T, box)) {
	b := newBox(t, o)
	needs(t, b.parts.Namespaces && b.parts.PIDs, "user namespaces")
	needs(t, b.parts.Landlock > 0, "Landlock")
	for name, p := range map[string]confine.Parts{
		"everything":         b.parts,
		"without namespaces": {Landlock: b.parts.Landlock, Seccomp: true},
		"without Landlock":   {Namespaces: true, PIDs: true, Seccomp: true},
		"without PIDs":       {Namespaces: true, Landlock: b.parts.Landlock, Seccomp: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, o)
			b.parts = p
			f(t, b)
		})
	}
}

// attack is a way to get out of a sandbox.
type attack struct{ name, command string }

// together makes one command of all attacks, but where all parts of the sandbox
// are in force: there each stands alone.
func together(t *testing.T, rows []attack) []attack {
	if strings.HasSuffix(t.Name(), "/everything") {
		return rows
	}
	var one attack
	for _, row := range rows {
		one.name += row.name + "; "
		one.command += "( " + row.command + " )\n"
	}
	return []attack{one}
}

// byMounts ends the names of the rows that only mounts hold back.
const byMounts = ", by mounts"

// TestSandboxEscapes tries to get out. Each row says what must not come about.
func TestSandboxEscapes(t *testing.T) {
	confined(t, SandboxOptions{}, func(t *testing.T, b box) {
		tcp := listenOutside(t, "tcp", "127.0.0.1:0")
		sock := listenOutside(t, "unix", b.outside+"/sock")
		udp := receiveOutside(t)
		parent := strconv.Itoa(os.Getpid())
		before := tree(t, b.base)
		var rows []attack
		for _, row := range []attack{
			{"the world's rules" + byMounts, "echo x > .anamnesis/rules.yaml; rm -rf .anamnesis; mv .anamnesis a"},
			{"what git runs" + byMounts, "echo x > .git/hooks/pre-commit; echo x > .git/hooks/new; git config core.fsmonitor x; echo x > .git/config; ln -sf x .git/config; rm -rf .git; " +
				`perl -e 'rename(".git/hooks", "h"); rename(".git/config", "c"); rename(".git", "g")'`},
			{"permissions outside" + byMounts, "chmod 777 ../ws-secrets/secret; chown 1 ../ws-secrets/secret; touch ../ws-secrets/secret"},
			{"write beside the world", "echo x > ../ws-secrets/new"},
			{"write over a file outside", "echo x > " + b.outside + "/secret"},
			{"truncate", "truncate -s 0 ../ws-secrets/secret"},
			{"through a link", "echo x > link/new; rm link/secret"},
			{"through a new link", "ln -s ../ws-secrets l2; echo x > l2/secret; rm l2"},
			{"move out", "touch m; mv m ../ws-secrets/; rm -f m"},
			{"hard link in", "ln ../ws-secrets/secret hard && echo x > hard; rm -f hard"},
			{"make a directory above", "mkdir ../new"},
			{"the program's own state", "echo x > ../home/vault.jsonl; rm -rf ../home/kb; touch ../home/new"},
			{"the sources of this test", "touch " + wd(t) + "/escaped"},
			{"mount", "mount --bind ../ws-secrets link; mount -t tmpfs none ../ws-secrets; mount -o remount,rw /; umount -a"},
			{"mount in namespaces of its own", "unshare -Urm sh -c 'mount -o remount,rw,bind /; echo x > ../ws-secrets/new'"},
			{"leave by chroot", "chroot /proc/1/root sh -c 'echo x > " + b.outside + "/new'; echo x > /proc/1/root" + b.outside + "/new"},
			{"through the parent's files", "echo x > /proc/" + parent + "/cwd/escaped; echo x > /proc/" + parent + "/root" + b.outside + "/new"},
			{"through the parent's memory", "echo x | dd of=/proc/" + parent + "/mem bs=1 seek=4096 conv=notrunc"},
			{"trace the parent", "timeout 5 strace -p " + parent + " & sleep 0.1"},
			{"kernel settings", "echo 1 > /proc/sys/kernel/sysrq; echo x > /proc/sys/kernel/hostname; echo x > /sys/power/state"},
			{"a device of its own", "mknod disk b 254 0; mknod mem c 1 1; rm -f disk mem"},
			{"TCP", "echo x > /dev/tcp/127.0.0.1/" + tcp.port()},
			{"UDP", "echo x > /dev/udp/127.0.0.1/" + udp},
			{"a Unix socket", `perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0) && connect(S,sockaddr_un("` + sock.address + `"))'`},
			{"a Unix datagram of a pair", `perl -MSocket -e 'socketpair(A,B,AF_UNIX,SOCK_DGRAM,0) && send(A,"x",0,sockaddr_un("` + sock.address + `"))'`},
			{"persistent memory", "echo x > /dev/shm/anamnesis-escape"},
		} {
			if strings.HasSuffix(row.name, byMounts) && !b.parts.Namespaces {
				continue // Missing says so
			}
			rows = append(rows, row)
		}
		for _, row := range together(t, rows) {
			out, _ := b.run(t, row.command)
			if after := tree(t, b.base); after != before {
				t.Errorf("%s: something changed\n%s\nbefore:\n%s\nafter:\n%s", row.name, out, before, after)
				before = after
			}
			if tcp.reached() || sock.reached() {
				t.Errorf("%s: the command reached a socket outside\n%s", row.name, out)
			}
		}
		for _, path := range []string{wd(t) + "/escaped", "/dev/shm/anamnesis-escape"} {
			if _, err := os.Stat(path); err == nil {
				os.Remove(path)
				t.Errorf("a command wrote %s", path)
			}
		}
		if out, _ := b.run(t, "cat ../home/vault.jsonl; cp ../home/vault.jsonl v; grep -r vault ../home"); strings.Contains(out, "the vault") {
			t.Errorf("a command read the vault: %s", out)
		}
	})
}

func wd(t *testing.T) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tree is everything beneath a directory but what commands may change: names,
// modes and contents.
func tree(t *testing.T, base string) string {
	t.Helper()
	out, err := exec.Command("bash", "-c",
		`cd "$1" && find . \( -path ./home/cache -o -path ./home/tmp \) -prune -o -path ./home -o -printf '%p %m %u %y\n' | sort && find . -path ./home/cache -prune -o -path ./home/tmp -prune -o -type f -exec sha256sum {} + | sort`, "tree", base).CombinedOutput()
	if err != nil {
		t.Fatalf("list %s: %v %s", base, err, out)
	}
	return string(out)
}

// outsider is a listener that no command may reach.
type outsider struct {
	net.Listener
	address string
	came    chan struct{}
}

func listenOutside(t *testing.T, network, address string) *outsider {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	o := &outsider{Listener: l, address: l.Addr().String(), came: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			notify(o.came)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return o
}

func (o *outsider) port() string {
	_, port, _ := net.SplitHostPort(o.address)
	return port
}

// reached reports whether somebody came since it was asked last.
func (o *outsider) reached() bool {
	select {
	case <-o.came:
		return true
	default:
		return false
	}
}

// receiveOutside returns the port of a UDP socket; what comes there by the end of
// the test fails it.
func receiveOutside(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer c.Close()
		// What a command sent is here: sending to a socket of the same machine is
		// done when the call returns.
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if n, from, err := c.ReadFrom(make([]byte, 16)); err == nil {
			t.Errorf("a datagram of %d bytes came from %v", n, from)
		}
	})
	_, port, _ := net.SplitHostPort(c.LocalAddr().String())
	return port
}

// TestSandboxParent: a command ends neither its parent nor a bystander.
func TestSandboxParent(t *testing.T) {
	confined(t, SandboxOptions{}, func(t *testing.T, b box) {
		if !b.parts.PIDs && b.parts.Landlock < confine.LandlockSignals {
			t.Skip("SKIPPED: neither part that holds signals back")
		}
		bystander := exec.Command("sleep", "600")
		if err := bystander.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { bystander.Process.Kill(); bystander.Wait() }()
		out, _ := b.run(t, fmt.Sprintf("kill -9 %d %d; kill -STOP %d", bystander.Process.Pid, os.Getpid(), os.Getpid()))
		if err := unix.Kill(bystander.Process.Pid, 0); err != nil {
			t.Errorf("the bystander is gone: %v\n%s", err, out)
		}
		if p, err := readProc(bystander.Process.Pid); err != nil || p.dead() {
			t.Errorf("the bystander was killed: %s", out)
		}
	})
}

// TestSandboxSupervisor: the supervisor is not held in as its command is, so its
// memory and its files are out of the command's reach. Who may not look into a
// process may not trace it either.
func TestSandboxSupervisor(t *testing.T) {
	confined(t, SandboxOptions{}, func(t *testing.T, b box) {
		out, o := b.run(t,
			`for f in /proc/$PPID/{maps,environ,mem} /proc/$PPID/task/*/mem; do head -c 1 $f 2>&1 | grep -q Permission || echo $f; done; readlink /proc/$PPID/fd/*`)
		if out != "" || o.NLeft > 0 {
			t.Errorf("a command looked into its supervisor: %s", out)
		}
		if out, o := b.run(t, "grep CapPrm /proc/self/status | grep -E ':.00000000000004ff|:.0000000000000000'"); o.Exit != 0 {
			t.Errorf("a command has capabilities: %s", out)
		}
		if out, o := b.run(t, "unshare -U true"); b.parts.Namespaces && b.parts.PIDs && o.Exit == 0 {
			t.Errorf("a command made a user namespace: %s", out)
		}
	})
}

// TestSandboxAllows: what must work in it.
func TestSandboxAllows(t *testing.T) {
	confined(t, SandboxOptions{}, func(t *testing.T, b box) {
		for _, row := range []struct {
			name, command string
			namespaces    bool // works with these only
		}{
			{"write in the world", "mkdir -p d/e && echo x > d/e/f && mv d/e/f d/g && rm -r d", false},
			{"git", "git init -q g && git -C g -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && rm -rf g && touch .git/index && rm .git/index", false},
			{"temporary files", `f=$(mktemp) && echo x > "$f" && cat "$f"`, false},
			{"caches", `mkdir -p "$GOCACHE" && touch "$GOCACHE/x" && touch "$npm_config_cache" && rm -f "$npm_config_cache"`, false},
			{"read outside", "cat ../ws-secrets/secret && ls / && head -c1 /etc/passwd", false},
			{"devices", "echo x > /dev/null && head -c1 /dev/urandom > /dev/null && echo x > /dev/stdout", false},
			{"process substitution", "echo x > >(cat) && diff <(echo a) <(echo a)", false},
			{"/tmp", "echo x > /tmp/x && cat /tmp/x", true},
			{"a loopback of its own", `perl -MSocket -e 'socket(S,AF_INET,SOCK_STREAM,0) or die; bind(S,sockaddr_in(0,INADDR_LOOPBACK)) or die; listen(S,1); ($p)=sockaddr_in(getsockname(S)); socket(C,AF_INET,SOCK_STREAM,0); connect(C,sockaddr_in($p,INADDR_LOOPBACK)) or die'`, true},
		} {
			if row.namespaces && !b.parts.Namespaces {
				continue
			}
			if out, o := b.run(t, row.command); o.Exit != 0 {
				t.Errorf("%s: exit %d\n%s", row.name, o.Exit, out)
			}
		}
	})
}

// TestSandboxProtectedLink: what is protected may be a link. Commands run, and do
// not write what it leads to in the world; what lies in a writable place is given.
func TestSandboxProtectedLink(t *testing.T) {
	b := newBox(t, SandboxOptions{})
	needs(t, b.parts.Namespaces, "user namespaces")
	b.o.Protected = append(b.o.Protected, b.world+"/to-in", b.world+"/to-out", b.world+"/to-nothing")
	if out, o := b.run(t, "mkdir in && echo x > in/f && ln -s in to-in && ln -s ../ws-secrets to-out && ln -s none to-nothing"); o.Exit != 0 {
		t.Fatal(out)
	}
	if out, o := b.run(t, "echo x > own && ! echo y > in/f && ! echo y > to-in/g"); o.Exit != 0 {
		t.Errorf("beside links that are protected: %s", out)
	}
	b.o.Writable = []string{b.world + "/.git"}
	if out, o := b.run(t, "echo x > .git/hooks/new && ! echo x > .anamnesis/new"); o.Exit != 0 {
		t.Errorf("in a writable place: %s", out)
	}
}

// TestSandboxReadOnly: nothing of the world changes, temporary files do.
func TestSandboxReadOnly(t *testing.T) {
	confined(t, SandboxOptions{Confine: ConfineReadOnly}, func(t *testing.T, b box) {
		before := tree(t, b.base)
		out, o := b.run(t,
			`touch "$(mktemp)" || exit 9; echo x > new; rm -rf link; mkdir d; echo x >> .anamnesis/rules.yaml`)
		if after := tree(t, b.base); after != before || o.Exit == 9 {
			t.Errorf("exit %d, before:\n%s\nafter:\n%s\n%s", o.Exit, before, after, out)
		}
	})
}

// TestSandboxNetwork: what was asked for is there, and files stay held back.
func TestSandboxNetwork(t *testing.T) {
	confined(t, SandboxOptions{}, func(t *testing.T, b box) {
		if !b.HoldsNetwork() {
			t.Error("the sandbox says it does not hold the network back")
		}
		b.Sandbox = b.WithNetwork()
		l := listenOutside(t, "tcp", "127.0.0.1:0")
		out, o := b.run(t, "echo x > /dev/tcp/127.0.0.1/"+l.port())
		if o.Exit != 0 {
			t.Errorf("exit %d: %s", o.Exit, out)
		}
		if _, o := b.run(t, "echo x > ../ws-secrets/new"); o.Exit == 0 {
			t.Error("with the network, the command writes outside")
		}
	})
}

// TestSandboxShapes: what gets away from its command ends with it, also in a
// PID namespace.
func TestSandboxShapes(t *testing.T) {
	b := newBox(t, SandboxOptions{})
	needs(t, b.parts.PIDs, "PID namespaces")
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			line := long(t)
			text := strings.ReplaceAll(shape.text, "$LONG", line)
			_, _ = b.run(t, text+"; "+untilRuns(line))
			if left := running(t, line); len(left) > 0 {
				t.Errorf("still alive: %v", left)
			}
		})
	}
}

// running lists the processes of this exact command line, seen from outside.
func running(t *testing.T, line string) []int {
	t.Helper()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, p := range all {
		if !p.dead() && p.name() == line {
			found = append(found, p.pid)
		}
	}
	return found
}

func TestSandboxOff(t *testing.T) {
	s, err := NewSandbox(t.Context(), SandboxOptions{Confine: ConfineOff})
	if s != nil || err != nil || s.String() != "off" || s.Missing() != nil || s.WithNetwork() != nil ||
		s.HoldsNetwork() {
		t.Errorf("NewSandbox off = %v, %v", s, err)
	}
	if env := []string{"GOCACHE=/x"}; !slices.Equal(s.Environ(env), env) {
		t.Error("the environment changed without a sandbox")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewSandbox(ctx, SandboxOptions{World: t.TempDir()}); err == nil {
		t.Error("a cancelled try gives a sandbox")
	}
}

func TestParseConfinement(t *testing.T) {
	for _, c := range []Confinement{ConfineWorld, ConfineReadOnly, ConfineOff} {
		if got, err := ParseConfinement(string(c)); err != nil || got != c {
			t.Errorf("ParseConfinement(%q) = %q, %v", c, got, err)
		}
	}
	if _, err := ParseConfinement("jail"); err == nil || !strings.Contains(err.Error(), "world, read-only or off") {
		t.Errorf("ParseConfinement(jail): %v", err)
	}
}

// TestSandboxCaches: caches are private, but for one that commands may write
// already, named or by default.
func TestSandboxCaches(t *testing.T) {
	s := &Sandbox{
		o: SandboxOptions{Confine: ConfineWorld, World: "/w", Cache: "/c", Writable: []string{"/h/.cache/go-build"}},
	}
	for _, row := range []struct{ name, env, want string }{
		{"by default writable", "HOME=/h", "GOCACHE=/h/.cache/go-build"},
		{"by default elsewhere", "HOME=/x", "GOCACHE=/c/go-build"},
		{"named in the world", "GOCACHE=/w/cache", "GOCACHE=/w/cache"},
		{"named elsewhere", "npm_config_cache=/x", "npm_config_cache=/c/npm"},
		{"own modules as a proxy", "GOPATH=/p:/q", "GOPROXY=file:///p/pkg/mod/cache/download,https://proxy.golang.org,direct"},
		{"with a proxy", "GOMODCACHE=/m,GOPROXY=off", "GOPROXY=file:///m/cache/download,off"},
	} {
		if got := s.Environ(strings.Split(row.env, ",")); !slices.Contains(got, row.want) {
			t.Errorf("%s: %q lacks %s", row.name, got, row.want)
		}
	}
}

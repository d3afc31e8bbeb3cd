package confine

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// verdict runs a filter on a system call as the kernel does. The machine reads words in network order.
func verdict(t *testing.T, prog []unix.SockFilter, arch, nr uint32, args ...uint32) uint32 {
	t.Helper()
	var ins []bpf.Instruction
	for _, p := range prog {
		ins = append(ins, bpf.RawInstruction{Op: p.Code, Jt: p.Jt, Jf: p.Jf, K: p.K}.Disassemble())
	}
	vm, err := bpf.NewVM(ins)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64) // struct seccomp_data
	binary.BigEndian.PutUint32(data[seccompNumber:], nr)
	binary.BigEndian.PutUint32(data[seccompArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[seccompFirstArg+8*i:], a)
	}
	out, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(out)
}

// TestSocketFilter: which sockets a command may open by what its sandbox has, and what is refused in any.
func TestSocketFilter(t *testing.T) {
	arch, ok := nativeArch()
	if !ok {
		t.Skip("no filter for this architecture")
	}
	const allow = uint32(unix.SECCOMP_RET_ALLOW)
	refuse := func(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }
	inside, outside := Spec{Parts: Parts{Namespaces: true}}, Spec{}
	network, local := Spec{Network: true}, Spec{Unix: true}
	for _, tt := range []struct {
		name string
		spec Spec
		nr   uint32
		args []uint32
		want uint32
	}{
		{"netlink", outside, unix.SYS_SOCKET, []uint32{unix.AF_NETLINK}, allow},
		{"IP without a network namespace", outside, unix.SYS_SOCKET, []uint32{unix.AF_INET}, refuse(unix.EACCES)},
		{"IPv6 without a network namespace", outside, unix.SYS_SOCKET, []uint32{unix.AF_INET6}, refuse(unix.EACCES)},
		{"IP in one", inside, unix.SYS_SOCKET, []uint32{unix.AF_INET}, allow},
		{"IPv6 in one", inside, unix.SYS_SOCKET, []uint32{unix.AF_INET6}, allow},
		{"IP with the network", network, unix.SYS_SOCKET, []uint32{unix.AF_INET}, allow},
		{"Unix", inside, unix.SYS_SOCKET, []uint32{unix.AF_UNIX}, refuse(unix.EACCES)},
		{"Unix where it may be", local, unix.SYS_SOCKET, []uint32{unix.AF_UNIX}, allow},
		{"packets", network, unix.SYS_SOCKET, []uint32{unix.AF_PACKET}, refuse(unix.EACCES)},
		{"vsock", network, unix.SYS_SOCKET, []uint32{unix.AF_VSOCK}, refuse(unix.EACCES)},
		{"a pair of streams", outside, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_STREAM}, allow},
		{"a pair of datagrams", local, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM}, refuse(unix.EACCES)},
		{"a pair of datagrams, with flags", local, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK}, refuse(unix.EACCES)},
		{"io_uring", network, unix.SYS_IO_URING_SETUP, nil, refuse(unix.ENOSYS)},
		{"keyrings", network, unix.SYS_KEYCTL, nil, refuse(unix.ENOSYS)},
		{"add a key", network, unix.SYS_ADD_KEY, nil, refuse(unix.ENOSYS)},
		{"ask for a key", network, unix.SYS_REQUEST_KEY, nil, refuse(unix.ENOSYS)},
		{"anything else", outside, unix.SYS_GETPID, nil, allow},
	} {
		prog := socketFilter(arch, families(&tt.spec))
		if got := verdict(t, prog, arch, tt.nr, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
		if got := verdict(t, prog, arch+1, tt.nr, tt.args...); got != refuse(unix.EPERM) {
			t.Errorf("%s, of another architecture: %#x", tt.name, got)
		}
	}
	if arch == unix.AUDIT_ARCH_X86_64 {
		for _, nr := range []uint32{x32Bit, x32Bit | unix.SYS_SOCKET} {
			if got := verdict(t, socketFilter(arch, families(&network)), arch, nr, unix.AF_INET); got != refuse(unix.ENOSYS) {
				t.Errorf("x32 call %#x: %#x", nr, got)
			}
		}
	}
}

// TestObserveFilter: calls that change a name or open for writing are reported, those that read are not.
func TestObserveFilter(t *testing.T) {
	arch, ok := nativeArch()
	if !ok {
		t.Skip("no filter for this architecture")
	}
	const report, allow = uint32(unix.SECCOMP_RET_USER_NOTIF), uint32(unix.SECCOMP_RET_ALLOW)
	prog := observeFilter(arch, observedCalls())
	for _, tt := range []struct {
		name string
		nr   uint32
		args []uint32
		want uint32
	}{
		{"read", unix.SYS_OPENAT, []uint32{0, 0, unix.O_RDONLY | unix.O_CLOEXEC}, allow},
		{"write", unix.SYS_OPENAT, []uint32{0, 0, unix.O_WRONLY}, report},
		{"read and write", unix.SYS_OPENAT, []uint32{0, 0, unix.O_RDWR | unix.O_APPEND}, report},
		{"create", unix.SYS_OPENAT, []uint32{0, 0, unix.O_RDONLY | unix.O_CREAT}, report},
		{"truncate by opening", unix.SYS_OPENAT, []uint32{0, 0, unix.O_RDONLY | unix.O_TRUNC}, report},
		{"open with a struct", unix.SYS_OPENAT2, nil, report},
		{"remove", unix.SYS_UNLINKAT, nil, report}, {"rename", unix.SYS_RENAMEAT2, nil, report}, {"mkdir", unix.SYS_MKDIRAT, nil, report},
		{"link", unix.SYS_LINKAT, nil, report}, {"symlink", unix.SYS_SYMLINKAT, nil, report}, {"truncate", unix.SYS_TRUNCATE, nil, report},
		{"mode", unix.SYS_FCHMODAT, nil, report}, {"mode of a descriptor", unix.SYS_FCHMOD, nil, report},
		{"write bytes", unix.SYS_WRITE, []uint32{1}, allow},
	} {
		if got := verdict(t, prog, arch, tt.nr, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
		if got := verdict(t, prog, arch+1, tt.nr, tt.args...); got != allow {
			t.Errorf("%s, of another architecture, which the other filter refuses: %#x", tt.name, got)
		}
	}
}

// TestParseMounts: the table of mounts is read with its optional fields and escapes; a line of another form is an
// error.
func TestParseMounts(t *testing.T) {
	const table = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n" +
		"37 35 0:5 / /a\\040b\\134\\011c rw - tmpfs tmpfs rw\n"
	got, err := ParseMounts(table)
	want := []Mount{{36, "98:0", "/mnt1", "/mnt2", "ext3", "rw,errors=continue"},
		{37, "0:5", "/", "/a b\\\tc", "tmpfs", "rw"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, line := range []string{
		"x 35 98:0 /mnt1 /mnt2 rw - ext3 /dev/root rw", "36 35 98:0 /mnt1 - ext3 /dev/root rw", "36 35 98:0 /mnt1 /mnt2 rw - ext3", "36 35 98:0 /mnt1 /mnt2 rw ext3 /dev/root rw",
	} {
		if got, err := ParseMounts(table + line + "\n"); err == nil ||
			!strings.Contains(err.Error(), "unexpected line") {
			t.Errorf("%q: %+v, %v", line, got, err)
		}
	}
	if all, err := Mounts(); err != nil || len(all) == 0 {
		t.Errorf("this process's: %+v, %v", all, err)
	}
}

// TestAllBut: a directory without some of its directories is covered by their siblings, whatever name they are given.
func TestAllBut(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a/x", "a/y", "b", "c"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a/x", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, but, want string }{
		{"", "", "."}, {"", "b", "a c link"}, {"", "a/x", "a/y b c link"}, {"", "link", "a/y b c link"}, {"", "a b c", "link"}, {"", "gone", "a b c link"},
		{"a", "a/x", "a/y"}, {"a", "b", "a"}, {"a", "a", ""}, {"a/x", "a", ""}, {"a/x", "a/y", "a/x"}, {"c", "c", ""},
	} {
		var but []string
		for b := range strings.FieldsSeq(tt.but) {
			but = append(but, filepath.Join(root, b))
		}
		var got []string
		for _, p := range allBut(filepath.Join(root, tt.dir), but) {
			rel, _ := filepath.Rel(root, p)
			got = append(got, rel)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q without %q: %q, want %q", tt.dir, tt.but, got, tt.want)
		}
	}
	if got := inside([]string{"/a", "/a/b", "/ab", "/a/b/c", "/"}, "/a"); !slices.Equal(got, []string{"/a/b", "/a/b/c"}) {
		t.Errorf("inside: %q", got)
	}
}

// TestHidden: a hidden directory around something shown is covered before that is attached, the outer ones first.
func TestHidden(t *testing.T) {
	c := Spec{World: "/home/me/w", Writable: []string{"/var/cache/x"}, Readable: []string{"/opt/k/pub"},
		Sockets: []string{"/run/u/agent"},
		Hidden:  []string{"/run/u", "/home/me/.ssh", "/home/me", "/opt/k", "/var/cache", "/home/me/w", "/opt/key"}}
	around, rest := c.hidden()
	if want := []string{"/home/me", "/opt/k", "/run/u", "/var/cache"}; !slices.Equal(around, want) {
		t.Errorf("around: %q, want %q", around, want)
	}
	if want := []string{"/home/me/.ssh", "/home/me/w", "/opt/key"}; !slices.Equal(rest, want) {
		t.Errorf("rest: %q, want %q", rest, want)
	}
}

// TestThroughLinks: a change through links counts at the place that it reaches, and that of a link itself, too.
func TestThroughLinks(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	if err := os.Mkdir(at("d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at("d/f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"ld": "d", "lf": "d/f", "gone": "d/none"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]string{
		"d/f": {"d/f"}, "ld/f": {"d/f"}, "lf": {"lf", "d/f"}, "d/new": {"d/new"}, "ld/new": {"d/new"}, "ld/": {"ld", "d"}, "gone": {"gone"}, "none/f": nil,
	} {
		var full []string
		for _, w := range want {
			full = append(full, at(w))
		}
		if got := throughLinks(root + "/" + path); !slices.Equal(got, full) {
			t.Errorf("%s: %q, want %q", path, got, full)
		}
	}
}

// TestLandlockPlaces: with namespaces mounts hide what is hidden, and rules only bar writing; without, rules hide it,
// too.
func TestLandlockPlaces(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	for _, dir := range []string{"w/secret", "w/src", "out", "cache", "tmp"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespaces := range []bool{true, false} {
		for _, readOnly := range []bool{false, true} {
			c := Spec{
				Parts: Parts{Namespaces: namespaces}, World: at("w"), ReadOnly: readOnly,
				Writable: []string{at("out"), at("gone")}, Hidden: []string{at("w/secret")}, Cache: at("cache"),
				Temp: at("tmp"),
			}
			readable, writable, err := landlockPlaces(&c)
			if err != nil {
				t.Fatal(err)
			}
			world := at("w") // as rules name it
			if !namespaces {
				world = at("w/src")
			}
			for path, want := range map[string]bool{
				world: !readOnly, at("out"): true, at("cache"): true, at("gone"): false, at("tmp"): !namespaces,
				at("w/secret"): false, "/dev/null": true,
			} {
				if got := slices.Contains(writable, path); got != want {
					t.Errorf("namespaces %v, read-only %v: %s is writable: %v", namespaces, readOnly, path, got)
				}
			}
			if got := slices.Contains(readable, "/"); got != namespaces {
				t.Errorf("namespaces %v: everything is readable: %v", namespaces, got)
			}
			if !namespaces &&
				(slices.Contains(readable, at("w")) || slices.Contains(readable, at("w/secret")) ||
					!slices.Contains(readable, at("w/src"))) {
				t.Errorf("readable: %q", readable)
			}
		}
	}
}

package guard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stageMark makes the test binary play a stage, given as JSON.
const stageMark = "ANAMNESIS_TEST_STAGE"

// stage is a machine unlike this one: a process in user and mount namespaces of
// its own that arranges them, runs a command in a sandbox and prints its output.
type stage struct {
	Bind                     [][2]string // directories, and where else they are mounted
	NoNamespaces, NoLandlock bool
	Options                  SandboxOptions
	Command                  string
	Processes                int // at most; 0: as always
	Seconds                  int // the command's time limit; 0: a minute
}

func (s stage) play() error {
	runtime.LockOSThread() // the filter holds for this thread and what it starts
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, b := range s.Bind {
		if err := unix.Mount(b[0], b[1], "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %v: %w", b, err)
		}
	}
	if s.NoNamespaces { // those of this user namespace, not of the machine
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
			return err
		}
	}
	if s.NoLandlock {
		if err := refuseLandlock(); err != nil {
			return err
		}
	}
	box, err := NewSandbox(context.Background(), s.Options)
	if err != nil {
		return err
	}
	fmt.Println("sandbox:", box)
	for _, m := range box.Missing() {
		fmt.Println("missing:", m)
	}
	if s.Processes > 0 {
		box.procs = s.Processes
	}
	for _, dir := range box.Exposes() {
		fmt.Println("exposed:", dir)
	}
	o, err := Run(context.Background(), Command{
		Path: "/bin/bash", Args: []string{"bash", "-c", s.Command}, Dir: s.Options.World, Env: os.Environ(),
		Timeout: cmp.Or(time.Duration(s.Seconds)*time.Second, time.Minute),
		Sandbox: box, Output: func(_ Stream, p []byte) { os.Stdout.Write(p) },
	})
	fmt.Println("exit:", o.Exit, o.Note)
	if len(o.Alive) > 0 {
		fmt.Println("alive:", o.Alive)
	}
	return err
}

// refuseLandlock makes the kernel say that it has no Landlock.
func refuseLandlock() error {
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0)
}

func playStage(text string) {
	var s stage
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.play()
	}
	if err != nil {
		fmt.Println("stage:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// onStages runs a test as each user that this process can be: root and an
// ordinary user. The directory belongs to that user; run plays a stage and gives
// its output.
func onStages(t *testing.T, f func(t *testing.T, dir string, run func(stage) string)) {
	needs(t, exec.Command("unshare", "--user", "--map-root-user", "--mount", "true").Run() == nil, "user namespaces")
	users := map[string]int{"user": os.Geteuid()}
	if os.Geteuid() == 0 {
		const nobody = 65534
		users = map[string]int{"root": 0, "user": nobody}
	}
	for name, uid := range users {
		t.Run(name, func(t *testing.T) {
			base := newBox(t, SandboxOptions{Confine: ConfineOff}).base
			for dir := filepath.Dir(base); uid != os.Geteuid() && dir != "/"; dir = filepath.Dir(dir) {
				if info, err := os.Stat(dir); err != nil || info.Mode()&1 == 0 {
					base = openDir(t) // below what only root may enter
					break
				}
			}
			err := filepath.WalkDir(base, func(path string, _ os.DirEntry, err error) error {
				if err == nil {
					err = os.Lchown(path, uid, uid)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			f(t, base, func(s stage) string { return playAs(t, uid, s) })
		})
	}
}

// openDir is a directory that every user may reach and no command has as its own.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var", "anamnesis-stage-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func playAs(t *testing.T, uid int, s stage) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Options.World, stageMark + "=" + string(text)}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE},
	}
	if uid != os.Geteuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid), NoSetGroups: true}
	} else {
		cmd.SysProcAttr.GidMappings[0].ContainerID, cmd.SysProcAttr.GidMappings[0].HostID = os.Getegid(), os.Getegid()
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("the stage failed: %v\n%s", err, out.String())
	}
	return out.String()
}

// hiddenState makes a world, the program's state with a vault in it, and other
// directories beneath a base.
func hiddenState(t *testing.T, dir string) SandboxOptions {
	t.Helper()
	for _, sub := range []string{"world", "state/tasks/t/tmp", "state/cache", "other", "part", "around/world"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/state/tasks/t/vault", []byte("the vault"), 0o644); err != nil {
		t.Fatal(err)
	}
	ownBy(t, dir)
	return SandboxOptions{
		World: dir + "/world", Hidden: []string{dir + "/state"}, Cache: dir + "/state/cache",
		Temp: dir + "/state/tasks/t/tmp",
	}
}

// ownBy returns all beneath a directory to its owner.
func ownBy(t *testing.T, dir string) {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	_ = filepath.WalkDir(dir,
		func(path string, _ os.DirEntry, err error) error { return os.Lchown(path, int(st.Uid), int(st.Gid)) })
}

// TestSandboxOtherNames: the program's state is hidden under every name that a
// mount gives it, or a part of it.
func TestSandboxOtherNames(t *testing.T) {
	onStages(t, func(t *testing.T, dir string, run func(stage) string) {
		o := hiddenState(t, dir)
		s := stage{Options: o,
			Bind:    [][2]string{{dir + "/state", dir + "/other"}, {dir + "/state/tasks", dir + "/part"}},
			Command: "cat ../other/tasks/t/vault ../part/t/vault ../state/tasks/t/vault; echo x > new && echo wrote"}
		for name, s := range map[string]stage{"mounts": s, "Landlock": {NoNamespaces: true, Bind: s.Bind, Options: s.Options, Command: s.Command}} {
			if out := run(s); strings.Contains(out, "the vault") || !strings.Contains(out, "wrote") {
				t.Errorf("%s: a command read the state under another name:\n%s", name, out)
			}
		}
	})
}

// TestSandboxAroundState: a world that lies around the program's state does not
// give it to commands, with mounts and with Landlock alone.
func TestSandboxAroundState(t *testing.T) {
	onStages(t, func(t *testing.T, dir string, run func(stage) string) {
		o := hiddenState(t, dir)
		o.World = dir
		for name, none := range map[string]bool{"mounts": false, "Landlock": true} {
			out := run(stage{
				NoNamespaces: none, Options: o,
				Command: "cat state/tasks/t/vault; mv state/tasks s; rm -r state; echo x > world/new && echo wrote",
			})
			if text, err := os.ReadFile(dir + "/state/tasks/t/vault"); string(text) != "the vault" {
				t.Errorf("%s: the vault: %q %v", name, text, err)
			}
			if strings.Contains(out, "the vault") || !strings.Contains(out, "wrote") {
				t.Errorf("%s: a command read the state in its world:\n%s", name, out)
			}
		}
	})
}

// TestSandboxExposes: where neither namespaces nor Landlock are there, the state
// is said to be exposed; with one of them it is not.
func TestSandboxExposes(t *testing.T) {
	onStages(t, func(t *testing.T, dir string, run func(stage) string) {
		o := hiddenState(t, dir)
		for _, row := range []struct{ noNamespaces, noLandlock bool }{{false, true}, {true, false}, {true, true}} {
			out := run(stage{
				NoNamespaces: row.noNamespaces, NoLandlock: row.noLandlock, Options: o,
				Command: "cat ../state/tasks/t/vault",
			})
			neither := row.noNamespaces && row.noLandlock
			if strings.Contains(out, "exposed: "+dir+"/state") != neither ||
				strings.Contains(out, "the vault") != neither {
				t.Errorf("%+v:\n%s", row, out)
			}
		}
	})
}

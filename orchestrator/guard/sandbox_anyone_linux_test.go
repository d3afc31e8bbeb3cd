package guard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"anamnesis/orchestrator/guard/confine"
)

// anyoneMark makes the test binary say what it has for a sandbox in a directory, and run a command in a copy of it.
const anyoneMark = "ANAMNESIS_TEST_ANYONE"

func anyone(dir string) {
	s, err := NewSandbox(context.Background(), SandboxOptions{World: dir, Cache: dir + "/cache", Temp: dir + "/temp"})
	fmt.Println(s, err)
	if err := os.WriteFile(dir+"/closed", []byte("closed"), 0); err != nil {
		fmt.Println(err)
	}
	if forked, ok := s.InFork(confine.Fork{Scratch: dir + "/scratch"}); ok {
		o, err := Run(context.Background(), Command{
			Path: "/bin/bash", Args: []string{
				"bash", "-c", "echo x >new && cat new; grep CapEff /proc/self/status; cat closed",
			}, Dir: dir, Env: os.Environ(), Timeout: time.Minute,
			Sandbox: forked, Output: func(_ Stream, p []byte) { fmt.Printf("%s", p) },
		})
		_, inWorld := os.Lstat(dir + "/new")
		fmt.Println(o.Exit, err, os.IsNotExist(inWorld))
	}
	os.Exit(0)
}

// TestSandboxOfAnyone: who is not root has the same sandbox. Where the tests
// are run by an ordinary user, the others show it.
func TestSandboxOfAnyone(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	as := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}
	needs(t, as("unshare", "--user", "--map-root-user", "--mount", "true").Run() == nil,
		"user namespaces for ordinary users")
	dir := t.TempDir()
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := as("/proc/self/exe")
	cmd.Env = append(os.Environ(), anyoneMark+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "world (namespaces, PID namespace, ") ||
		!strings.Contains(string(out), "x\nCapEff:\t0000000000000000\n") ||
		!strings.Contains(string(out), "closed: Permission denied\n1 <nil> true") {
		t.Errorf("the sandbox of an ordinary user: %s %v", out, err)
	}
}

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
)

// anyoneMark makes the test binary say what it has for a sandbox in a directory.
const anyoneMark = "ANAMNESIS_TEST_ANYONE"

func anyone(dir string) {
	s, err := NewSandbox(context.Background(), SandboxOptions{World: dir, Cache: dir + "/cache", Temp: dir + "/temp"})
	fmt.Println(s, err)
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
	needs(t, as("unshare", "--user", "--map-root-user", "--mount", "true").Run() == nil, "user namespaces for ordinary users")
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
	if err != nil || !strings.Contains(string(out), "world (namespaces, PID namespace, ") {
		t.Errorf("the sandbox of an ordinary user: %s %v", out, err)
	}
}

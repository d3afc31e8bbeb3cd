package opstream

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"anamnesis/opstream/durable"
)

// startWriter starts a process that appends to the stream forever, and waits
// until it is the writer.
func startWriter(t *testing.T, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the child said %q", lines.Text())
	}
	return cmd, lines
}

// TestTwoWriters opens a stream that another process writes: the opening is refused
// and names the writer's pid. The lock file of a killed writer refuses no one.
func TestTwoWriters(t *testing.T) {
	dir := t.TempDir()
	rounds := count(20, 500)
	for range rounds {
		cmd, _ := startWriter(t, dir)
		_, err := Open(dir, nil)
		var locked *durable.LockedError
		if !errors.As(err, &locked) || locked.PID != cmd.Process.Pid || !errors.Is(err, durable.ErrLocked) {
			t.Fatalf("a second writer got %v, want it refused naming %d", err, cmd.Process.Pid)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		content, err := os.ReadFile(filepath.Join(dir, LockName))
		if err != nil || len(content) == 0 {
			t.Fatalf("the killed writer left %q in its lock file, %v", content, err)
		}
		l, err := Open(dir, nil)
		if err != nil {
			t.Fatalf("after the writer's death: %v", err)
		}
		mustClose(t, l)
	}
}

// TestLockSameProcess: another Log of the same process is another writer, and
// one that waits gets the lock when its holder closes.
func TestLockSameProcess(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, nil)
	_, err := Open(dir, nil)
	var locked *durable.LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() || !errors.Is(err, durable.ErrLocked) {
		t.Fatalf("second Open = %v", err)
	}
	mustClose(t, l)
	second, err := Open(dir, nil)
	if err != nil {
		t.Fatalf("after the writer closed: %v", err)
	}
	mustClose(t, second)
}

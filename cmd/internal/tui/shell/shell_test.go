//go:build unix

package shell

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRunCanceled: the end of the context ends the shell's children, too.
func TestRunCanceled(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	held := filepath.Join(t.TempDir(), "held") // a pipe that ends with its last writer
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Run(ctx, filepath.Dir(held), "(sleep 1000; echo) > held; echo after", func([]byte) {})
		ended <- err
	}()
	f, err := os.Open(held) // waits for the writer
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cancel()
	if _, err := io.ReadAll(f); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the command ended by itself")
	}
}

// TestRunOutput: each piece is reported as it is written, and of a long output the two ends are
// returned.
func TestRunOutput(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	got := make(chan string, 1)
	wait := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(wait, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	go func() {
		out, _ := Run(t.Context(), filepath.Dir(wait),
			"echo first; cat go; head -c 3000000 /dev/zero | tr '\\0' x; echo last", func(p []byte) {
				select {
				case got <- string(p):
				default:
				}
			})
		ended <- out
	}()
	if first := <-got; first != "first\n" { // while the command waits
		t.Errorf("the first piece is %q", first)
	}
	if err := os.WriteFile(wait, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := <-ended
	if !strings.HasPrefix(out, "first\nxx") || !strings.HasSuffix(out, "xlast\n") ||
		!strings.Contains(out, " bytes …]") || len(out) > 3*endBytes+100 {
		t.Errorf("%d bytes: %.20q … %q", len(out), out, out[max(0, len(out)-20):])
	}
}

// TestRunBackground: a process that a command leaves behind is no fault of the command.
func TestRunBackground(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	held := filepath.Join(t.TempDir(), "held") // open until the test ends
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(held, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if out, err := Run(t.Context(), filepath.Dir(held), "cat held & echo begun", func([]byte) {}); out != "begun\n" ||
		err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

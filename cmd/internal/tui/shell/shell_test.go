//go:build unix

package shell

import (
	"context"
	"io"
	"os"
	"path/filepath"
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
		_, err := Run(ctx, filepath.Dir(held), "(sleep 1000; echo) > held; echo after")
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

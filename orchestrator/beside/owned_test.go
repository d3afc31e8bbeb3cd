package beside

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestOwned: a socket counts only if nobody else can reach it.
func TestOwned(t *testing.T) {
	dir, err := os.MkdirTemp("", "own") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, file, link := filepath.Join(dir, "s"), filepath.Join(dir, "f"), filepath.Join(dir, "l")
	l, err := net.Listen("unix", socket)
	if err = errors.Join(err, os.WriteFile(file, nil, 0o600), os.Symlink(socket, link)); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, tt := range []struct {
		path string
		mode fs.FileMode
		want bool
	}{
		{socket, 0o600, true}, {socket, 0o700, true}, {socket, 0o610, false}, {socket, 0o601, false},
		{file, 0o600, false},
	} {
		if err := os.Chmod(tt.path, tt.mode); err != nil {
			t.Fatal(err)
		}
		if err := owned(tt.path); (err == nil) != tt.want {
			t.Errorf("%s with mode %o: %v", filepath.Base(tt.path), tt.mode, err)
		}
	}
	if owned(link) == nil {
		t.Error("a link to a socket counts")
	}
	if err := owned(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing socket: %v", err)
	}
}

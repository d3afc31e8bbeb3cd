package session

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHomeFault: the remedy stands at an error of permission about the home's own folders only.
func TestHomeFault(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "tasks"), 0o700); err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string { return map[string]string{"ANAMNESIS_HOME": home}[name] }
	for _, tt := range []struct {
		path   string
		err    error
		remedy bool
	}{
		{home, syscall.EACCES, true}, {home + "/tasks/x", syscall.EPERM, true}, {home + "/tasks", syscall.EROFS, true},
		{home + "2/x", syscall.EACCES, false}, {home + "/tasks/x", syscall.ENOENT, false},
		{home, syscall.ENOTDIR, true}, {home + "/gone/x", syscall.ENOTDIR, true}, {home + "/tasks/x", syscall.ENOTDIR, false},
	} {
		err := HomeFault(getenv, &fs.PathError{Op: "open", Path: tt.path, Err: tt.err})
		if got := strings.HasSuffix(err.Error(), HomeRemedy); got != tt.remedy {
			t.Errorf("%s: %v", tt.path, err)
		}
	}
	for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		for path, want := range map[string]bool{home + "/tasks/x": true, home + "2/x": false} {
			err := HomeFault(getenv, &fs.PathError{Op: "write", Path: path, Err: full})
			if got := strings.HasSuffix(err.Error(), "; make room there, then try again"); got != want {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if err := HomeFault(getenv, fs.ErrPermission); err != fs.ErrPermission {
		t.Errorf("without a path: %v", err)
	}
	if err := HomeFault(func(string) string { return "" }, &fs.PathError{Path: home, Err: syscall.EACCES}); strings.Contains(err.Error(), HomeRemedy) {
		t.Errorf("without a home: %v", err)
	}
}

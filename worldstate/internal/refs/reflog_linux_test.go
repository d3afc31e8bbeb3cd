package refs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// inSmallDisk calls do in a mount namespace of its own, in which an empty file
// system with so many inodes stands at dir.
func inSmallDisk(t *testing.T, dir string, inodes int, do func() error) {
	t.Helper()
	ended := make(chan error, 1)
	var inside func()
	inside = func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine, and the namespace with it
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread() // the main thread's is the process's namespace
			go inside()
			ended <- <-ended
			return
		}
		err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = unix.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=1m,nr_inodes=%d", inodes))
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		} else {
			err = do()
		}
		ended <- err
	}
	go inside()
	err := <-ended
	if errors.Is(err, errors.ErrUnsupported) {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must be able to mount: %v", err)
		}
		t.Skipf("NOT CHECKED: a mount needs rights: %v", err)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestLockOfPackedRefsDiskFull: where the disk takes no lock of packed-refs, that
// is what is said, and nobody goes on as if it were locked.
func TestLockOfPackedRefsDiskFull(t *testing.T) {
	dir := t.TempDir()
	inSmallDisk(t, dir, 8, func() error {
		s := &Store{Dir: dir}
		if err := os.Mkdir(dir+"/"+fsys.StateDir, 0o700); err != nil {
			return err
		}
		var err error
		for i := 0; err == nil; i++ { // one inode stays, for the file that is to be linked
			err = os.WriteFile(fmt.Sprint(dir, "/filler", i), nil, 0o600)
		}
		if err := os.Remove(dir + "/filler0"); err != nil {
			return err
		}
		_, locked, err := s.lockPackedRefs(true)
		if locked || !errors.Is(err, unix.ENOSPC) || !strings.HasPrefix(err.Error(), "lock packed-refs: ") {
			return fmt.Errorf("a full disk: locked %v, %v; want ENOSPC", locked, err)
		}
		if err := s.Update(map[string]gitfmt.Hash{TaskPrefix + "t/1": refID(1)}); !errors.Is(err, unix.ENOSPC) || errors.Is(err, fsys.ErrLocked) {
			return fmt.Errorf("an update of refs on a full disk: %v", err)
		}
		if err := errors.Join(os.Remove(dir+"/filler1"), os.Remove(dir+"/filler2")); err != nil {
			return err
		}
		release, locked, err := s.lockPackedRefs(false)
		if !locked || err != nil {
			return fmt.Errorf("with room again: locked %v, %v", locked, err)
		}
		release()
		return nil
	})
}

// TestLockOfPackedRefsWithoutLinks: a file system without second names has the lock
// all the same, and git's is respected.
func TestLockOfPackedRefsWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	other, err := os.MkdirTemp("/dev/shm", "anamnesis-test")
	if err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must have a second file system at /dev/shm: %v", err)
		}
		t.Skipf("NOT CHECKED: no second file system at /dev/shm: %v", err)
	}
	defer os.RemoveAll(other)
	if err := os.Symlink(other, dir+"/"+fsys.StateDir); err != nil {
		t.Fatal(err)
	}
	s := &Store{Dir: dir}
	release, locked, err := s.lockPackedRefs(false)
	if !locked || err != nil {
		t.Fatalf("locked %v, %v", locked, err)
	}
	if data, err := os.ReadFile(s.PackedPath() + ".lock"); err != nil || string(data) != ourLock {
		t.Errorf("the lock holds %q, %v", data, err)
	}
	release()
	if err := os.WriteFile(s.PackedPath()+".lock", nil, 0o600); err != nil { // git's
		t.Fatal(err)
	}
	if _, locked, err := s.lockPackedRefs(false); locked || err != nil {
		t.Errorf("beside git's lock: locked %v, %v", locked, err)
	}
}

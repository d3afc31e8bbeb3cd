package worldstate

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// mount mounts an empty file system until the test ends or the given function
// is called.
func (b *bench) mount(dir string) (unmount func()) {
	b.Helper()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			b.Fatalf("CI must be able to mount: %v", err)
		}
		b.Skipf("NOT CHECKED: a mount needs rights: %v", err)
	}
	up := true
	unmount = func() {
		if up {
			up = false
			b.must(unix.Unmount(dir, unix.MNT_DETACH))
		}
	}
	b.Cleanup(unmount)
	return unmount
}

// TestMountInside: a save finds a file system that was mounted inside, or unmounted, since the
// last one.
func TestMountInside(t *testing.T) {
	b := newBench(t, nil)
	b.write("m/below", "1")
	b.agrees("before")
	unmount := b.mount(b.path("m"))
	if s := b.agrees("mounted"); s.Changed != 1 {
		t.Errorf("mounted: %+v", s)
	}
	b.write("m/above", "1")
	b.agrees("written")
	unmount()
	b.agrees("unmounted")
}

// TestMountBeforeRestore: a restore examines each path again, and so keeps what a file system
// shows or hides that was mounted since the last save.
func TestMountBeforeRestore(t *testing.T) {
	b := newBench(t, nil)
	b.write("m/below", "1")
	first := b.save()
	b.write("m/below", "2")
	b.write("f", "2")
	b.save()
	unmount := b.mount(b.path("m"))
	b.write("m/above", "a user's")
	p, err := b.w.Plan(context.Background(), first.ID, nil)
	b.must(err)
	_, err = b.w.Restore(context.Background(), p)
	b.must(err)
	if data, err := os.ReadFile(b.path("m/above")); err != nil || string(data) != "a user's" {
		t.Errorf("%q %v", data, err)
	}
	unmount()
	if data, err := os.ReadFile(b.path("m/below")); err != nil || string(data) != "2" {
		t.Errorf("a hidden file was changed: %q %v", data, err)
	}
}

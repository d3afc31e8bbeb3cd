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

// TestMountInside: a file system that is mounted or unmounted inside returns no
// event, and the next look sees it all the same; then it is looked at every time.
func TestMountInside(t *testing.T) {
	const name = "m with\nodd \\ name"
	b := watchedBench(t)
	b.write(name+"/below", "1")
	b.write("d/other", "1")
	b.agrees("before")
	for range 2 {
		unmount := b.mount(b.path(name))
		b.agrees("mounted")
		b.write(name+"/above", "1")
		b.agrees("something in it")
		b.write(name+"/above", "2")
		b.write(name+"/deep/er", "2")
		b.agrees("written")
		b.write(name+"/deep/er", "3")
		b.agrees("written again")
		unmount()
		b.agrees("unmounted")
		b.write(name+"/below", "2")
		b.agrees("written below")
	}
	if on, why := b.w.Watching(); !on {
		t.Error(why)
	}
}

// TestMountBeforeRestore: what a restore does rests on what is mounted then, not
// on what was there at the save before.
func TestMountBeforeRestore(t *testing.T) {
	b := watchedBench(t)
	b.write("m/below", "1")
	first := b.save()
	b.write("m/below", "2")
	b.write("f", "2")
	b.save()
	unmount := b.mount(b.path("m"))
	b.write("m/above", "a user's")
	p, err := b.w.Plan(context.Background(), first.ID, nil)
	b.must(err)
	kept := map[string]bool{}
	for _, k := range p.Keep {
		kept[k.Path] = k.Edited()
	}
	if !kept["m/above"] || !kept["m/below"] {
		t.Errorf("what was mounted since is no edit: %+v", p.Keep)
	}
	_, err = b.w.Restore(context.Background(), p)
	b.must(err)
	if data, err := os.ReadFile(b.path("m/above")); err != nil || string(data) != "a user's" {
		t.Errorf("%q %v", data, err)
	}
	unmount()
	if data, err := os.ReadFile(b.path("m/below")); err != nil || string(data) != "2" {
		t.Errorf("what was hidden was changed: %q %v", data, err)
	}
	b.agrees("unmounted")
}

// TestMountOutside: what is mounted elsewhere costs no look.
func TestMountOutside(t *testing.T) {
	b := watchedBench(t)
	b.write("d/f", "1")
	b.agrees("before")
	before := b.w.track.Watch.Epoch
	out := b.store + "-mount"
	b.must(os.Mkdir(out, 0o755))
	b.mount(out)()
	b.save()
	if now := b.w.track.Watch.Epoch; now != before {
		t.Errorf("%d whole scans", now-before)
	}
}

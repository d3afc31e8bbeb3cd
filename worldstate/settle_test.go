//go:build unix

package worldstate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
)

// TestSync: a restore that has returned is made durable before anything else
// is done with the world, and one that cannot be is told of and finished later.
func TestSync(t *testing.T) {
	var after func(point string)
	b := newBench(t, &Options{Hook: func(point string) {
		if after != nil {
			after(point)
		}
	}})
	b.write("a", "1")
	first := b.save()
	b.write("a", "2")
	b.save()
	going := make(chan struct{})
	after = func(point string) {
		if point == "synced" {
			<-going
		}
	}
	b.jump(first.ID)
	if _, err := os.Stat(b.journalPath()); err != nil {
		t.Errorf("the journal of a restore that is not durable: %v", err)
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // absent outside Linux
	j, err := restore.JournalOf(b.store, keyOf(b.dir)).Read()
	if b.must(err); j == nil || j.Boot != strings.TrimSpace(string(boot)) {
		t.Errorf("the journal is %+v; it must name the boot %q", j, boot)
	}
	close(going)
	b.must(b.w.Sync())
	if _, err := os.Stat(b.journalPath()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the journal of a restore that is: %v", err)
	}

	b.write("a", "3")
	refs := filepath.Join(b.store, "packed-refs")
	after = func(point string) {
		if point == "synced" { // the ref cannot be moved now
			b.must(errors.Join(os.Rename(refs, b.path("../kept")), os.MkdirAll(refs+"/in the way", 0o700)))
		}
	}
	res := b.jump(first.ID)
	if err := b.w.Sync(); err == nil || !res.Exact {
		t.Fatalf("%+v; a restore that could not be made durable is called so", res)
	}
	after = nil
	b.must(errors.Join(os.RemoveAll(refs), os.Rename(b.path("../kept"), refs)))
	if _, err := b.w.SaveNext(t.Context(), ""); !errors.Is(err, ErrUnfinished) {
		t.Errorf("a save over it: %v", err)
	}
	r, err := b.w.Recover(t.Context())
	b.must(err)
	if r == nil || !r.Finished {
		t.Errorf("recovered %+v", r)
	}
	b.must(b.w.Sync())
	if s := b.save(); s.Tree != first.Tree {
		t.Errorf("tree %s, want the target's %s", s.Tree, first.Tree)
	}
}

// TestPowerCutLeavesTorn: what a power cut may leave of a file that was renamed
// into place is finished; in the same run of the machine it is somebody's.
func TestPowerCutLeavesTorn(t *testing.T) {
	const whole = "#!/bin/sh\necho whole\n"
	for _, boot := range []string{"another-run", fsys.BootID()} {
		for _, torn := range []string{"", whole[:9], whole[:9] + "\x00\x00\x00", "#!/bin/sh\nrm -rf x"} {
			t.Run(fmt.Sprintf("%.7s %q", boot, torn), func(t *testing.T) {
				b := newBench(t, nil)
				b.write("old", whole)
				b.write("new", whole)
				b.must(errors.Join(os.Chmod(b.path("old"), 0o755), os.Chmod(b.path("new"), 0o755)))
				target := b.save()
				b.write("old", "short")
				b.must(os.Remove(b.path("new")))
				source := b.save()
				plan, err := b.w.Plan(t.Context(), target.ID, nil)
				b.must(err)
				to, _ := gitfmt.ParseHash(string(target.ID))
				from, _ := gitfmt.ParseHash(string(source.ID))
				b.must(restore.JournalOf(b.store, keyOf(b.dir)).Write(&restore.Journal{
					World: keyOf(b.dir), Source: from, Target: to, Head: to, Nonce: fsys.NewNonce(), Boot: boot,
					Actions: plan.Actions,
				}))
				for _, name := range []string{"old", "new"} {
					b.must(errors.Join(os.WriteFile(b.path(name), []byte(torn), 0o755), os.Chmod(b.path(name), 0o755)))
				}
				r, err := b.w.Recover(t.Context())
				b.must(err)
				ours := boot != fsys.BootID() && !strings.Contains(torn, "rm")
				if ours != (len(r.Kept) == 0) {
					t.Errorf("kept %v", r.Kept)
				}
				want := map[string]string{"new": torn}
				if ours {
					want["old"], want["new"] = whole, whole
				}
				for name, want := range want { // a kill alone may leave a half write of old
					if data, _ := os.ReadFile(b.path(name)); string(data) != want {
						t.Errorf("%s holds %q, want %q", name, data, want)
					}
				}
			})
		}
	}
}

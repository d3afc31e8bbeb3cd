package worldstate

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/tree"
)

// TestAbandon: a restore that fails at any step and can be rolled back at none is
// given up as the error says. That touches no file, and everything goes on.
func TestAbandon(t *testing.T) {
	b, first, second, one, two := messy(t)
	ctx := context.Background()
	for n := 1; ; n += 3 {
		left := n
		b.w.track.Before = func(op, _ string) error {
			if op == "read" || op == "readdir" || op == "reread" || op == "sync" {
				return nil
			}
			if left--; left < 0 {
				return errors.New("no space left")
			}
			return nil
		}
		_, err := b.w.RestoreTo(ctx, first, RestoreOptions{PlanOptions: PlanOptions{OverwriteEdits: true}})
		if err == nil {
			if n < 20 {
				t.Fatalf("only %d steps", n)
			}
			break
		}
		var re *RestoreError
		var unfinished *UnfinishedError
		if !errors.As(err, &re) || re.RolledBack || !errors.As(err, &unfinished) || unfinished.Dir != b.dir ||
			strings.Contains(err.Error(), "\n") {
			t.Fatalf("step %d: %v", n, err)
		}
		if _, err := b.w.Recover(ctx); !errors.As(err, &unfinished) {
			t.Fatalf("recover at step %d: %v", n, err)
		}
		b.w.track.Before = nil
		before := look(t, b.dir)
		if r, err := b.w.Abandon(ctx); err != nil || r == nil || !r.Abandoned || r.Target != first {
			t.Fatalf("%+v %v", r, err)
		}
		for path, what := range before {
			if strings.Contains(path, ".anamnesis-") {
				delete(before, path) // our own, half written
			} else if what == "" {
				t.Errorf("%s: nothing seen", path)
			}
		}
		sameWorld(t, look(t, b.dir), before, "abandoned")
		if r, err := b.w.Abandon(ctx); r != nil || err != nil {
			t.Errorf("again: %+v %v", r, err)
		}
		b.jump(first)
		sameWorld(t, look(t, b.dir), one, "restored")
		b.jump(second)
		sameWorld(t, look(t, b.dir), two, "and back")
		b.must(b.w.Sync())
	}
	b.fsck()
}

// TestAbandonUnreadable: so is one whose journal is damaged, and one whose
// directory is gone.
func TestAbandonUnreadable(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	b.save()
	ctx := context.Background()
	b.must(os.WriteFile(b.journalPath(), []byte("rubbish"), 0o600))
	for _, task := range []string{"", "t"} { // that of the options is named
		b.must(b.w.Close())
		b.open(&Options{Task: task})
		var e *UnfinishedError
		if _, err := b.w.Recover(ctx); !errors.Is(err, gitfmt.ErrCorrupt) || !errors.As(err, &e) || e.Task != task {
			t.Errorf("%+v, %v; want the task %q", e, err, task)
		}
	}
	if r, err := b.w.Abandon(ctx); err != nil || r == nil || !r.Abandoned {
		t.Fatalf("%+v %v", r, err)
	}
	b.save()
	b.must(os.WriteFile(b.journalPath(), []byte("rubbish"), 0o600))
	b.w.Close()
	b.must(os.RemoveAll(b.dir))
	b.open(&Options{StoreOnly: true})
	if r, err := b.w.Abandon(ctx); err != nil || r == nil {
		t.Fatalf("%+v %v", r, err)
	}
}

// TestSyncActions: where no call makes a file system durable, every file and
// directory of a restore is synced on its own, by whichever run it was written.
func TestSyncActions(t *testing.T) {
	b, first, _, _, _ := messy(t)
	ctx := context.Background()
	p, err := b.w.Plan(ctx, first, &PlanOptions{OverwriteEdits: true})
	b.must(err)
	want := make(map[string]bool)
	for _, a := range p.Actions {
		want[fsys.Dir(a.Path)] = true
		if a.After.Kind != tree.KindLink && !a.After.Absent() {
			want[a.Path] = true
		}
	}
	root, err := fsys.OpenRoot(b.w.dir)
	b.must(err)
	defer root.Close()
	synced := make(map[string]bool)
	b.w.track.Before = func(op, path string) error {
		if op == "sync" {
			synced[path] = true
		}
		return nil
	}
	x := restore.Resume(b.w.effects(), root.Fd, &restore.Journal{Nonce: fsys.NewNonce()})
	b.must(x.Run(p.Actions))
	clear(synced)
	b.must(x.SyncActions())
	for path := range want {
		if !synced[path] {
			t.Errorf("%q was not synced", path)
		}
	}
}

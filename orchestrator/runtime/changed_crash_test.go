package runtime

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"anamnesis/opstream/op"
)

// halfMoved returns a task at step 2 whose files a restore or a jump to step 1 had
// begun to move when its process died, and what the user changed then. Step 1 has
// t/a, t/b and v; step 2 has v and z.
func halfMoved(t *testing.T, intend func(from, to string) []op.Body) *Task {
	t.Helper()
	task, _ := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: "mkdir t; echo a >t/a; echo b >t/b; echo 1 >v"}}]
  - calls: [{name: Bash, arguments: {command: "rm -rf t; echo 2 >v; echo z >z"}}]
  - reply: Done.
`, Options{})
	if out := runOrDie(t, task); out.Answer != "Done." {
		t.Fatalf("Run = %+v", out)
	}
	writeFile(t, task.Place.Dir, "early", "theirs")
	snap, err := task.Place.SeeNow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	to, err := task.Place.WorldOf(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Ledger.Record(t.Context(), intend(string(snap.ID), string(to.Commit))...); err != nil {
		t.Fatal(err)
	}
	writeFile(t, task.Place.Dir, "t/a", "a\n")          // moved
	writeFile(t, task.Place.Dir, "mine", "theirs")      // not the restore's
	writeFile(t, task.Place.Dir, "t/mine", "theirs")    // in a directory that is the target's
	writeFile(t, task.Place.Dir, "v", "theirs of late") // the restore's path
	return task
}

func restoreTo1(overwrite bool) func(from, to string) []op.Body {
	return func(from, to string) []op.Body {
		return []op.Body{
			&op.RestoreIntended{FromCommit: from, ToCommit: to, ToStep: 1, By: op.ByUser, Overwrite: overwrite},
		}
	}
}

func jumpTo1(overwrite bool) func(from, to string) []op.Body {
	return func(from, to string) []op.Body {
		return []op.Body{
			&op.JumpRequested{To: 1, By: op.ByUser, Overwrite: overwrite},
			&op.JumpIntended{
				From: 2, To: 1, By: op.ByUser, FromCommit: from, ToCommit: to, Base: from, Backward: true,
				Overwrite: overwrite,
			},
		}
	}
}

// TestChangedAfterCrash: what the user changes after a restore or a jump was
// interrupted is theirs, whatever ends it, and what was moved is not.
func TestChangedAfterCrash(t *testing.T) {
	theirs := map[string]string{"mine": "theirs", "t/mine": "theirs", "v": "theirs of late"}
	for _, c := range []struct {
		name    string
		intend  func(from, to string) []op.Body
		abandon bool
		early   bool // what the user had made before stays
	}{
		{"restore", restoreTo1(false), false, true},
		{"restore overwrite", restoreTo1(true), false, false},
		{"restore abandoned", restoreTo1(false), true, true},
		{"restore overwrite abandoned", restoreTo1(true), true, true},
		{"jump", jumpTo1(false), false, true},
		{"jump overwrite", jumpTo1(true), false, false},
		{"jump abandoned", jumpTo1(false), true, true},
		{"jump overwrite abandoned", jumpTo1(true), true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := halfMoved(t, c.intend)
			if task.Place.Abandon = c.abandon; c.abandon {
				if _, err := task.AbandonRestore(t.Context(), &op.TaskResumed{}); err != nil {
					t.Fatal(err)
				}
				task.Place.Abandon = false
			}
			if _, err := task.JumpNow(t.Context(), op.JumpRequested{To: 0}, &op.TaskResumed{}); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			maps.Copy(want, theirs)
			if c.early {
				want["early"] = "theirs"
			}
			if got := filesOf(t, task.Place.Dir); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("after the jump to step 0: %q\nwant %q\nchanges: %q", got, want, changes(t, task))
			}
			if _, err := os.Stat(filepath.Join(task.Place.Dir, "t", "a")); err == nil {
				t.Error("what the restore moved counts as the user's")
			}
		})
	}
}

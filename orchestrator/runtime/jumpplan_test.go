package runtime

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
)

// TestPlannedAsJumped: a dry run says what the jump then does, whatever the user
// changed since the last snapshot.
func TestPlannedAsJumped(t *testing.T) {
	const words = `turns:
  - calls: [{name: Bash, arguments: {command: "mkdir -p d/e; echo 1 >d/e/f; echo 1 >g; echo 1 >d/h"}}]
  - calls: [{name: Bash, arguments: {command: "echo 2 >d/e/f; echo 2 >g; echo z >d/z; echo '*.tmp' >.gitignore"}}]
  - reply: Done.
`
	for name, user := range map[string]string{
		"directory for a file":   "rm -rf d && echo mine >d",
		"file for a directory":   "rm g && mkdir g && echo mine >g/x",
		"file in a directory":    "echo mine >d/e/mine",
		"directory gone":         "rm -rf d",
		"empty directory":        "mkdir -p new/sub",
		"rules":                  "echo mine >d/z; echo '*.log' >>.gitignore; echo x >a.log; echo y >b.tmp",
		"everything gone":        "rm -rf ./* .gitignore",
		"mode of a directory":    "chmod 700 d; echo mine >d/mine",
		"what no snapshot holds": "mkfifo pipe; echo mine >mine",
	} {
		for _, to := range []int{0, 1} {
			if to != len(name)%2 && !*soakNightly { // one of the two a day, both in the nightly run
				continue
			}
			t.Run(fmt.Sprintf("%s, to %d", name, to), func(t *testing.T) {
				task, h := newTask(t, words, Options{})
				writeFile(t, task.Place.Dir, "early", "theirs")
				if out := runOrDie(t, task); out.Answer != "Done." {
					t.Fatalf("Run = %+v", out)
				}
				sh := exec.Command("sh", "-c", user)
				sh.Dir = task.Place.Dir
				if out, err := sh.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				plan, err := inspect.PlanJump(t.Context(), h, "t", "", op.JumpRequested{To: to})
				if err != nil {
					t.Fatal(err)
				}
				done, err := task.JumpNow(t.Context(), op.JumpRequested{To: to}, &op.TaskResumed{})
				if err != nil {
					t.Fatal(err)
				}
				var planned, kept []string
				for _, k := range plan.World.Keep {
					planned = append(planned, k.Path+": "+k.Reason)
				}
				for _, k := range done.Kept {
					kept = append(kept, k.Path+": "+k.Reason)
				}
				if got, want := strings.Join(planned, "\n"), strings.Join(kept, "\n"); got != want {
					t.Errorf("the dry run keeps\n%s\nthe jump\n%s", got, want)
				}
				if got, want := fmt.Sprint(plan.World.Conflicts), fmt.Sprint(done.Conflicts); got != want {
					t.Errorf("the dry run has the conflicts %s, the jump %s", got, want)
				}
				moved := make(map[string]bool)
				for _, path := range append(plan.World.Write, plan.World.Delete...) {
					moved[path] = true
				}
				for _, path := range done.Reverted {
					if !moved[path] {
						t.Errorf("the jump changed %s, the dry run does not", path)
					}
				}
				for path := range moved {
					if !strings.HasSuffix(path, "/") && !strings.Contains(fmt.Sprintf(" %s ", done.Reverted), path) {
						t.Errorf("the dry run changes %s, the jump does not", path)
					}
				}
			})
		}
	}
}

// TestHiddenFile: a file of the user's that a rule of the agent's hides is changed
// by nobody.
func TestHiddenFile(t *testing.T) {
	task, h := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: "echo 1 >a"}}]
  - calls: [{name: WriteFile, arguments: {path: .gitignore, content: "notes.txt\n"}}]
  - reply: Done.
`, Options{})
	asked := 0
	task.opts.Callbacks.Op = func(o op.Op) {
		if _, ok := o.Body.(*op.ModelAsked); ok {
			if asked++; asked == 2 {
				writeFile(t, task.Place.Dir, "notes.txt", "theirs")
			}
		}
	}
	if out := runOrDie(t, task); out.Answer != "Done." {
		t.Fatalf("Run = %+v", out)
	}
	plan, err := inspect.PlanJump(t.Context(), h, "t", "", op.JumpRequested{To: 0})
	if err != nil || len(plan.World.Conflicts) > 0 {
		t.Errorf("the dry run has the conflicts %q, %v", plan.World.Conflicts, err)
	}
	done, err := task.JumpNow(t.Context(), op.JumpRequested{To: 0}, &op.TaskResumed{})
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Conflicts) > 0 || strings.Join(done.Reverted, " ") != ".gitignore a" {
		t.Errorf("conflicts %q, changed %q", done.Conflicts, done.Reverted)
	}
	if got := filesOf(t, task.Place.Dir); len(got) != 1 || got["notes.txt"] != "theirs" {
		t.Errorf("after the jump: %q", got)
	}
}

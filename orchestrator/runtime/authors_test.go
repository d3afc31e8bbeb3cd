package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
)

// during runs f in a call of the task that waits for it: the command "touch ready; until test
// -e go; do sleep .02; done".
func during(t *testing.T, dir string, f func()) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
			if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
				break
			} else if t.Context().Err() != nil {
				return
			}
		}
		f()
		writeFile(t, dir, "go", "")
	}()
}

func appendFile(t *testing.T, name, line string) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(line)
		f.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

const othersWords = `turns:
  - calls: [{name: WriteFile, arguments: {path: ours, content: one}}]
  - calls: [{name: Bash, arguments: {command: "echo two >ours; mkdir -p out; echo x >out/x; rm old; mv moved out/; touch ready; until test -e go; do sleep .02; done; echo three >>ours"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 1, reason: back}}]
  - reply: Done.
`

// TestOthersDuringCall has another program change files in every way while a command runs:
// a jump reverts the command's changes and keeps the other program's.
func TestOthersDuringCall(t *testing.T) {
	task, _ := newTask(t, othersWords, Options{})
	dir := task.Place.Dir
	for _, name := range []string{"log", "old", "moved", "edited", "deleted", "sub/deep/log", "mode"} {
		writeFile(t, dir, name, "at first\n")
	}
	during(t, dir, func() {
		appendFile(t, filepath.Join(dir, "log"), "row\n")
		appendFile(t, filepath.Join(dir, "sub/deep/log"), "row\n")
		writeFile(t, dir, "new/dir/file", "theirs")
		writeFile(t, dir, "out/theirs", "theirs") // in a directory that the command made
		writeFile(t, dir, ".edited.swp", "by an editor\n")
		if err := os.Rename(filepath.Join(dir, ".edited.swp"), filepath.Join(dir, "edited")); err != nil {
			t.Error(err)
		}
		if err := os.Remove(filepath.Join(dir, "deleted")); err != nil {
			t.Error(err)
		}
		if err := os.Chmod(filepath.Join(dir, "mode"), 0o700); err != nil {
			t.Error(err)
		}
	})
	if out := runOrDie(t, task); out.Answer != "Done." {
		t.Fatalf("Run = %+v", out)
	}
	got := filesOf(t, dir)
	for name, want := range map[string]string{
		"log": "at first\nrow\n", "sub/deep/log": "at first\nrow\n", "new/dir/file": "theirs", "out/theirs": "theirs", "edited": "by an editor\n",
		"deleted": "", "mode": "at first\n", // theirs
		"ours": "one", "out/x": "", "old": "at first\n", "moved": "at first\n", "out/moved": "", // the command's
	} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "mode")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode: %v, %v", info, err)
	}
	if said := changes(t, task); !slices.Contains(said, "user deleted edited go log mode new/dir/file out/theirs sub/deep/log") {
		t.Errorf("changes: %q", said)
	}
	if notice := lastJump(t, task).Notice; strings.Contains(notice, "is unknown") {
		t.Errorf("the notice calls an author unknown: %s", notice)
	}
}

// TestOthersUnobserved: without a sandbox nothing tells who wrote during a call. A path that
// others changed at another time is kept; of the rest the notice says that it is unknown, and
// names the snapshot.
func TestOthersUnobserved(t *testing.T) {
	task, _ := newTask(t, othersWords, Options{Guards: Guards{Sandbox: guard.ConfineOff, Approval: "auto"}})
	dir := task.Place.Dir
	for _, name := range []string{"log", "quiet", "old", "moved"} {
		writeFile(t, dir, name, "at first\n")
	}
	asked := 0
	task.opts.Callbacks.Op = func(o op.Op) {
		if _, ok := o.Body.(*op.ModelAsked); ok {
			if asked++; asked == 1 {
				appendFile(t, filepath.Join(dir, "log"), "between\n")
			}
		}
	}
	during(t, dir, func() {
		appendFile(t, filepath.Join(dir, "log"), "during\n")
		appendFile(t, filepath.Join(dir, "quiet"), "during\n")
	})
	if out := runOrDie(t, task); out.Answer != "Done." {
		t.Fatalf("Run = %+v", out)
	}
	got := filesOf(t, dir)
	if got["log"] != "at first\nbetween\nduring\n" || got["quiet"] != "at first\n" || got["ours"] != "one" {
		t.Errorf("files: %q", got)
	}
	done := lastJump(t, task)
	if !strings.Contains(done.Notice, "is unknown; snapshot "+intended(t, task).FromCommit[:12]) {
		t.Errorf("notice: %s", done.Notice)
	}
}

// TestBothAppend: a command and a server append to one log. The server's lines are kept, and
// with them the command's, since they cannot be told apart.
func TestBothAppend(t *testing.T) {
	task, _ := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: "touch ready; until test -e go; do sleep .02; done; rm ready go"}}]
  - calls: [{name: Bash, arguments: {command: "echo ours >>log; echo ours >own; touch ready; until test -e go; do sleep .02; done"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 1, reason: back}}]
  - reply: Done.
`, Options{})
	dir := task.Place.Dir
	writeFile(t, dir, "log", "")
	during(t, dir, func() { appendFile(t, filepath.Join(dir, "log"), "row 1\n") })
	task.opts.Callbacks.Op = func(o op.Op) {
		if b, ok := o.Body.(*op.WorldSaved); ok && o.Step == 1 && b.Error == "" {
			during(t, dir, func() { appendFile(t, filepath.Join(dir, "log"), "row 2\n") })
		}
	}
	if out := runOrDie(t, task); out.Answer != "Done." {
		t.Fatalf("Run = %+v", out)
	}
	got := filesOf(t, dir)
	if got["log"] != "row 1\nours\nrow 2\n" || got["own"] != "" {
		t.Errorf("files: %q", got)
	}
	if said := changes(t, task); !slices.Contains(said, "unknown log") {
		t.Errorf("changes: %q", said)
	}
}

func lastJump(t *testing.T, task *Task) (done *op.JumpDone) {
	t.Helper()
	for _, o := range allOps(t, task) {
		if b, ok := o.Body.(*op.JumpDone); ok {
			done = b
		}
	}
	if done == nil {
		t.Fatal("no jump")
	}
	return done
}

func intended(t *testing.T, task *Task) (b *op.JumpIntended) {
	t.Helper()
	for _, o := range allOps(t, task) {
		if i, ok := o.Body.(*op.JumpIntended); ok {
			b = i
		}
	}
	return b
}

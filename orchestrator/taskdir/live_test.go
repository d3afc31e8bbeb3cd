package taskdir

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/remedy"
	"anamnesis/worldstate"
)

func testHome(t *testing.T) Home {
	root := t.TempDir()
	return Home{User: filepath.Join(root, "user"), State: root, Data: root, Config: root}
}

// TestOneLiveTaskADirectory: a held directory is refused by any name, above
// and below it; its neighbours are free; letting go frees it.
func TestOneLiveTaskADirectory(t *testing.T) {
	h, root := testHome(t), t.TempDir()
	h.State = filepath.Join(h.State, "[odd]*") // no pattern
	held := filepath.Join(root, "a", "held")
	for _, dir := range []string{filepath.Join(held, "in", "side"), filepath.Join(root, "a", "held-too"), filepath.Join(root, "b")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(held, link); err != nil {
		t.Fatal(err)
	}
	hold, err := HoldDir(h, held, "first", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{held, link, root, filepath.Join(root, "a"), filepath.Join(held, "in"), filepath.Join(held, "in", "side"), filepath.Join(link, "in")} {
		_, err := HoldDir(h, dir, "second", "")
		var busy *BusyError
		if !errors.As(err, &busy) || busy.Task != "first" || busy.PID != os.Getpid() ||
			!strings.Contains(err.Error(), "task first (pid ") {
			t.Errorf("%s: %v, want busy with task first", dir, err)
		}
	}
	for i, dir := range []string{filepath.Join(root, "a", "held-too"), filepath.Join(root, "b")} {
		other, err := HoldDir(h, dir, "other"+string(rune('a'+i)), "")
		if err != nil {
			t.Errorf("%s: %v, want free", dir, err)
			continue
		}
		defer other.Release()
	}
	if pid := Live(h, "first"); pid != os.Getpid() {
		t.Errorf("Live = %d", pid)
	}
	if err := hold.Release(); err != nil {
		t.Fatal(err)
	}
	if pid := Live(h, "first"); pid != 0 {
		t.Errorf("Live = %d after release", pid)
	}
	again, err := HoldDir(h, link, "second", "")
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

// TestHoldAcrossHomes: homes share what directories are in use, by any path of the home; the error
// names the other home.
func TestHoldAcrossHomes(t *testing.T) {
	one, two, dir := testHome(t), testHome(t), t.TempDir()
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	hold, err := HoldDir(one, dir, "t", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, sub, filepath.Dir(dir)} {
		_, held := HoldDir(two, at, "t", "")
		for _, err := range []error{held, two.CheckFree(at)} {
			if busy := (*BusyError)(nil); !errors.As(err, &busy) || busy.Task != "t" ||
				!strings.Contains(err.Error(), "task t of another home, "+one.State) {
				t.Errorf("%s: %v, want busy with a task of %s", at, err, one.State)
			}
		}
	}
	if Live(two, "t") != 0 {
		t.Error("the refused task counts as live")
	}
	if err := hold.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := HoldDir(two, sub, "t", "")
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

// TestSubagentHold: who is refused because of a subagent is told of its parent,
// which users know and can steer.
func TestSubagentHold(t *testing.T) {
	h, dir := testHome(t), t.TempDir()
	for _, task := range []string{"t", "t.1"} {
		parent := ""
		if task != "t" {
			parent = "t"
		}
		hold, err := HoldDir(h, dir, task, parent)
		if err != nil {
			t.Fatal(err)
		}
		defer hold.Release()
	}
	_, err := HoldDir(h, dir, "other", "")
	if busy := (*BusyError)(nil); !errors.As(err, &busy) || busy.Task != "t" {
		t.Errorf("refused with %v, want one that names t", err)
	}
}

// TestDeadHold: the file of a process that is gone holds nothing, whatever is
// in it. It is removed with the socket that it names.
func TestDeadHold(t *testing.T) {
	h, dir := testHome(t), t.TempDir()
	live := filepath.Join(h.State, "live")
	if err := os.MkdirAll(live, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"dead.json": `{"task":"dead","dir":"` + dir + `","pid":1,"socket":"` + filepath.Join(live, "dead.1.sock") + `"}`, "torn.json": `{"ta`, "dead.1.sock": ""} {
		if err := os.WriteFile(filepath.Join(live, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hold, err := HoldDir(h, dir, "next", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Release(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(live)
	if err != nil || len(left) != 1 || left[0].Name() != "gate" {
		t.Errorf("%v is left (%v)", left, err)
	}
}

// TestNoAnswer: that a task said nothing is not that it did nothing.
func TestNoAnswer(t *testing.T) {
	h := Home{State: t.TempDir()}
	if err := os.MkdirAll(h.Task("t"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(h.Socket("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, _ = bufio.NewReader(c).ReadString('\n')
			err = c.Close()
		}
		done <- err
	}()
	err = Send(t.Context(), h, "t", Command{Verb: "jump", JumpRequested: op.JumpRequested{To: 1}})
	if want := "task t did not answer; it may have taken it, or take it yet"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestWorldDirMissing: the error names what the user wrote, once.
func TestWorldDirMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nowhere")
	_, err := WorldDir(dir)
	if want := "no such directory: " + dir; !errors.Is(err, worldstate.ErrNoDirectory) || err.Error() != want {
		t.Errorf("WorldDir = %v, want %s", err, want)
	}
}

func TestTaskIDs(t *testing.T) {
	for _, id := range []string{"task_1_fix", "a", "A-b.c"} {
		if err := CheckTaskID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", "..", "../x", "a/b", ".hidden", "a..b", "a.lock", "a.", strings.Repeat("x", 81), "a\nb", "名"} {
		if err := CheckTaskID(id); !errors.Is(err, ErrNoTask) {
			t.Errorf("%q: %v, want refused", id, err)
		}
	}
	h := testHome(t)
	for _, want := range []string{"task_1_fix_the_date_parser", "task_2_fix_the_date_parser"} {
		id, err := NewTaskID(h, "Fix the date parser, please!", "")
		if err != nil || id != want {
			t.Fatalf("NewTaskID = %q, %v; want %q", id, err, want)
		}
		for _, made := range []string{id, id + ".1", id + ".2"} { // subagents' do not count
			if err := os.MkdirAll(h.Task(made), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	if id, err := NewTaskID(h, "修复日期解析", ""); err != nil || id != "task_3" {
		t.Errorf("NewTaskID = %q, %v; want task_3", id, err)
	}
	// Requests that come at the same moment get numbers of their own.
	var mu sync.Mutex
	var wg sync.WaitGroup
	numbers := map[string]bool{}
	for i := range 32 {
		wg.Go(func() {
			id, err := NewTaskID(h, fmt.Sprintf("say hello %d", i/2), "")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			numbers[strings.Split(id, "_")[1]] = true
		})
	}
	if wg.Wait(); len(numbers) != 32 {
		t.Errorf("32 requests at the same moment: %d numbers", len(numbers))
	}
}

func TestFindHome(t *testing.T) {
	env := func(kv map[string]string) func(string) string { return func(k string) string { return kv[k] } }
	h, err := FindHome(env(map[string]string{"HOME": "/h"}))
	if err != nil || h.State != "/h/.local/state/anamnesis" || h.Data != "/h/.local/share/anamnesis" ||
		h.Config != "/h/.config/anamnesis" {
		t.Errorf("defaults: %+v, %v", h, err)
	}
	h, err = FindHome(env(map[string]string{"HOME": "/h", "XDG_STATE_HOME": "/s", "XDG_DATA_HOME": "relative"}))
	if err != nil || h.State != "/s/anamnesis" || h.Data != "/h/.local/share/anamnesis" {
		t.Errorf("XDG: %+v, %v", h, err)
	}
	h, err = FindHome(env(map[string]string{"HOME": "/h", "ANAMNESIS_HOME": "/one", "XDG_STATE_HOME": "/s"}))
	if err != nil || h.State != "/one" || h.Data != "/one" || h.Config != "/one" || len(h.Roots()) != 1 {
		t.Errorf("ANAMNESIS_HOME: %+v, %v", h, err)
	}
	if _, err := FindHome(env(nil)); err == nil {
		t.Error("no home at all is accepted")
	}
}

// TestHoldOfDead: the lock of a process that died goes with the last child that
// still has it; who comes meanwhile waits for that, and not for a living one.
func TestHoldOfDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	held, err := durable.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	says := func(pid int) {
		if err := os.WriteFile(path, fmt.Appendf(nil, `{"task":"t","pid":%d}`, pid), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says(os.Getpid())
	if _, err := lockHold(path); !errors.Is(err, durable.ErrLocked) {
		t.Fatalf("the lock of a living process: %v", err)
	}
	says(dead.ProcessState.Pid())
	time.AfterFunc(20*time.Millisecond, func() { held.Close() }) // the child goes
	f, err := lockHold(path)
	if err != nil {
		t.Fatalf("the lock of a dead process: %v", err)
	}
	f.Close()
}

// TestPark: others may work in the directory of a task that waits; the task takes it again when they have ended.
func TestPark(t *testing.T) {
	h, dir := testHome(t), t.TempDir()
	first, err := HoldDir(h, dir, "first", "")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	if err := first.Park(); err != nil {
		t.Fatal(err)
	}
	if Live(h, "first") == 0 || h.CheckFree(dir) != nil {
		t.Errorf("a parked task is not live, or keeps its directory: %v", h.CheckFree(dir))
	}
	if _, err := HoldDir(h, dir, "first", ""); !errors.Is(err, ErrBusy) {
		t.Errorf("a second process takes the parked task: %v", err)
	}
	second, err := HoldDir(h, dir, "second", "")
	if err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if err := first.Unpark(); !errors.As(err, &busy) || busy.Task != "second" {
		t.Errorf("the directory is taken while another task works there: %v", err)
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
	if err := first.Unpark(); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(h.CheckFree(dir), ErrBusy) {
		t.Error("the directory is free after the task took it again")
	}
}

// TestUnparkElsewhere: what is not the parked task's directory any more is not taken.
func TestUnparkElsewhere(t *testing.T) {
	for name, replace := range map[string]func(dir string) error{
		"nothing": func(string) error { return nil },
		"file":    func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"pipe":    func(dir string) error { return unix.Mkfifo(dir, 0o600) },
		"link":    func(dir string) error { return os.Symlink(filepath.Dir(dir), dir) },
	} {
		h, dir := testHome(t), filepath.Join(t.TempDir(), "w")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := HoldDir(h, dir, "task", "")
		if err == nil {
			err = l.Park()
		}
		if err = errors.Join(err, os.Remove(dir), replace(dir)); err != nil {
			t.Fatal(err)
		}
		var r *remedy.Error
		if err := l.Unpark(); !errors.Is(err, worldstate.ErrNoDirectory) || !errors.As(err, &r) || r.Name != "task" {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

package taskdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

// TestHomeSettings: a setting comes from the environment, or else from a line of the user's file.
func TestHomeSettings(t *testing.T) {
	dir := t.TempDir()
	file := "# recall: other\nrecall:   \"reviewed-only\"   # why\nkeep_ignored: '*.env  .secrets'\nrecalls: all\nnone:\n"
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		env      map[string]string
		secrets  []string
		reviewed bool
	}{
		{nil, []string{"*.env", ".secrets"}, true},
		{map[string]string{"ANAMNESIS_RECALL": "all", "ANAMNESIS_KEEP_IGNORED": "none"}, []string{}, false},
		{map[string]string{"ANAMNESIS_KEEP_IGNORED": "a b"}, []string{"a", "b"}, true},
	} {
		h, err := FindHome(func(name string) string {
			if name == "ANAMNESIS_HOME" {
				return dir
			}
			return tt.env[name]
		})
		if err != nil || !slices.Equal(h.Secrets, tt.secrets) || (h.Secrets == nil) != (tt.secrets == nil) ||
			h.ReviewedOnly != tt.reviewed {
			t.Errorf("%v: secrets %q, reviewed only %v, %v", tt.env, h.Secrets, h.ReviewedOnly, err)
		}
	}
	h := Home{Config: t.TempDir()}
	if got := h.Setting("recall", func(string) string { return "" }); got != "" || keptIgnored("") != nil {
		t.Errorf("without a file: %q", got)
	}
}

// TestListsOfHome: tasks and stores are folders of the right name, and there may be none yet.
func TestListsOfHome(t *testing.T) {
	h := Home{State: t.TempDir()}
	tasks, err := h.Tasks()
	stores, errStores := h.Stores()
	if len(tasks)+len(stores) != 0 || err != nil || errStores != nil {
		t.Errorf("an empty home: %v, %v, %v, %v", tasks, err, stores, errStores)
	}
	for _, dir := range []string{"tasks/b", "tasks/a", "tasks/.hidden", "worlds/x.git", "worlds/other"} {
		if err := os.MkdirAll(filepath.Join(h.State, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"tasks/file", "worlds/file.git"} {
		if err := os.WriteFile(filepath.Join(h.State, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if tasks, err = h.Tasks(); !slices.Equal(tasks, []string{"a", "b"}) || err != nil {
		t.Errorf("tasks %q, %v", tasks, err)
	}
	if stores, err = h.Stores(); !slices.Equal(stores, []string{filepath.Join(h.State, "worlds/x.git")}) || err != nil {
		t.Errorf("stores %q, %v", stores, err)
	}
	if !h.HasTask("a") || h.HasTask("c") {
		t.Error("HasTask is wrong about a or c")
	}
	broken := Home{State: filepath.Join(h.State, "tasks/file")}
	if _, err := broken.Tasks(); err == nil {
		t.Error("tasks in a file")
	}
	if _, err := broken.Stores(); err == nil {
		t.Error("stores in a file")
	}
	for id, want := range map[string]string{"a": "there is no stream in", "c": ErrNoTask.Error() + ": c"} {
		if err := h.NoTask(id); !errors.Is(err, ErrNoTask) || !strings.Contains(err.Error(), want) {
			t.Errorf("NoTask(%s) = %v", id, err)
		}
	}
}

// TestCheckOwn: a task's directory counts as named here if its store's home is this one, under whatever path.
func TestCheckOwn(t *testing.T) {
	root := t.TempDir()
	h, link := Home{State: filepath.Join(root, "here")}, filepath.Join(root, "link")
	for _, dir := range []string{h.State, filepath.Join(root, "there")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(h.State, link); err != nil {
		t.Fatal(err)
	}
	for home, own := range map[string]bool{h.State: true, link: true, filepath.Join(root, "there"): false, filepath.Join(root, "gone"): false} {
		opened := &op.TaskOpened{Store: filepath.Join(home, worldsDir, "x.git")}
		if err := h.CheckOwn(opened); (err == nil) != own || err != nil && !errors.Is(err, ErrElsewhere) {
			t.Errorf("named in %s: %v", home, err)
		}
		if got := h.StoreOf(opened); got != filepath.Join(h.State, worldsDir, "x.git") {
			t.Errorf("store %s", got)
		}
	}
	moved := Home{State: filepath.Join(root, "gone too")}
	if err := moved.CheckOwn(&op.TaskOpened{Store: filepath.Join(moved.State, worldsDir, "x.git")}); err != nil {
		t.Errorf("a home that is not made yet: %v", err)
	}
}

// TestOutsideHome: a world may surround the program's state, and not lie in it.
func TestOutsideHome(t *testing.T) {
	root := t.TempDir()
	h := Home{State: filepath.Join(root, "home"), Data: filepath.Join(root, "gone"),
		Config: filepath.Join(root, "home")}
	if err := os.Mkdir(h.State, 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, refused := range map[string]bool{root: false, h.State: true, h.State + "/w": true, h.State + "2": false} {
		if err := OutsideHome(h, dir); (err != nil) != refused || err != nil && !errors.Is(err, worldstate.ErrRefused) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if roots := h.Roots(); len(roots) != 2 {
		t.Errorf("roots %q", roots)
	}
}

// TestSubagentIDs: a subagent's id begins with its parent's and is valid however long that is.
func TestSubagentIDs(t *testing.T) {
	for _, parent := range []string{"t", strings.Repeat("x", 74), strings.Repeat("x", 80), strings.Repeat("x", 73) + ".y"} {
		id := SubagentID(parent, 12345)
		if err := CheckTaskID(id); err != nil || !strings.HasSuffix(id, ".12345") ||
			!strings.HasPrefix(parent, strings.TrimSuffix(id, ".12345")) {
			t.Errorf("%s: %s, %v", parent, id, err)
		}
	}
	if got, want := SubagentID(strings.Repeat("x", 74), 1), strings.Repeat("x", 74)+".1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestCheckParent: the tasks of subagents and imported sessions are not continued by themselves.
func TestCheckParent(t *testing.T) {
	for name, tt := range map[string]struct {
		opened op.TaskOpened
		want   error
	}{
		"a task":                {op.TaskOpened{}, nil},
		"another agent's":       {op.TaskOpened{Origin: &op.Origin{Agent: "a"}}, nil},
		"a subagent's":          {op.TaskOpened{Parent: &op.Parent{Task: "p"}}, ErrSubagent},
		"an imported session's": {op.TaskOpened{Origin: &op.Origin{Agent: "a", File: "f"}}, ErrImported},
	} {
		if err := CheckParent(&state.State{Opened: tt.opened}); !errors.Is(err, tt.want) ||
			(err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSummarize: a task waits for its provider while a process runs it or its time has not come.
func TestSummarize(t *testing.T) {
	h := Home{State: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(h.Task("t"), "ops"), 0o700); err != nil {
		t.Fatal(err)
	}
	folder, first, second := time.Unix(1e9+30, 0).UTC(), time.Unix(1e9+10, 0).UTC(), time.Unix(1e9+20, 0).UTC()
	if err := os.Chtimes(h.Task("t"), folder, folder); err != nil {
		t.Fatal(err)
	}
	st := new(state.State)
	if got := Summarize(h, "t", st); !got.Changed.Equal(folder) || got.Agent != "" || got.Imported || got.Waits != "" {
		t.Errorf("without a stream: %+v", got)
	}
	for i, at := range []time.Time{second, first} {
		name := filepath.Join(h.Task("t"), "ops", fmt.Sprint(i, ".jsonl"))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for until, waits := range map[time.Time]bool{time.Now().Add(time.Hour): true, second: false} {
		st.Outage = &state.Outage{Wait: op.Wait{Until: until}}
		if got := Summarize(h, "t", st); !got.Changed.Equal(second) || (got.Waits != "") != waits {
			t.Errorf("until %v: %+v", until, got)
		}
	}
	st.Opened.Origin = &op.Origin{Agent: "other", Began: first}
	if got := Summarize(h, "t", st); got.Agent != "other" || !got.Changed.Equal(first) {
		t.Errorf("another agent's: %+v", got)
	}
	st.Opened.Origin.Began = time.Time{}
	if got := Summarize(h, "t", st); !got.Changed.Equal(second) {
		t.Errorf("another agent's, recorded: %+v", got)
	}
}

// TestUsable: a folder can be made in the nearest one that exists, if that is a folder.
func TestUsable(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "nowhere"), filepath.Join(root, "dangling")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": "", "new": "", "new/deep": "", "file": "file is not a folder", "file/new": "file is not a folder",
		"dangling": "dangling is a dangling link", "dangling/new": "dangling is a dangling link", "\xff": "its path is not UTF-8 text",
	} {
		err := Usable(filepath.Join(root, path))
		if (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	if err := Usable("/proc/anamnesis"); err == nil {
		t.Error("a folder in /proc can be made")
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestTaskNumbers: a new task's number counts the named tasks, too, and not subagents. Long requests give short names.
func TestTaskNumbers(t *testing.T) {
	h := Home{State: t.TempDir()}
	for _, id := range []string{"named", "named.1", "one.of.its.own"} {
		if err := os.MkdirAll(h.Task(id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ request, want string }{
		{"Fix it!", "task_3_fix_it"}, {"one two three four five", "task_4_one_two_three_four"},
		{strings.Repeat("x", 40), "task_5_" + strings.Repeat("x", 32)}, {strings.Repeat("y", 31) + " z", "task_6_" + strings.Repeat("y", 31)}, {"!", "task_7"},
	} {
		if got, err := NewTaskID(h, tt.request, ""); got != tt.want || err != nil {
			t.Errorf("%.20q: %q, %v; want %q", tt.request, got, err, tt.want)
		}
	}
}

package session

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// TestFindPlace: a task's record names its directory and store; otherwise the store is that of a directory, or of
// the nearest above the present one.
func TestFindPlace(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(root, "worlds", "x.git")
	h := gatetest.Open(t, root, op.TaskOpened{Task: "t", Store: named}).Home
	for id, opened := range map[string]op.TaskOpened{
		"foreign":  {Store: filepath.Join(root, "other", "worlds", "x.git")},
		"imported": {Store: named, Origin: &op.Origin{Agent: "a", File: "f"}},
	} {
		opened.Task = id
		elsewhere := t.TempDir()
		gatetest.Open(t, elsewhere, opened)
		if err := os.Rename(filepath.Join(elsewhere, "tasks", id), h.Task(id)); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(root, "w")
	deep, free := filepath.Join(root, "world", "deep"), filepath.Join(root, "free")
	world := filepath.Dir(deep)
	for _, d := range []string{deep, free, h.Store(world)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.Store(world), "HEAD"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
	for name, tt := range map[string]struct {
		p     Place
		use   Use
		dir   string
		store string
		all   bool
		err   bool
	}{
		"a named store":              {p: Place{Store: "s", Task: "t"}, dir: ".", store: "s"},
		"a named store and dir":      {p: Place{Store: "s", Dir: "d"}, dir: "d", store: "s"},
		"a task":                     {p: Place{Task: "t"}, use: Live, dir: dir, store: named},
		"a task in a directory":      {p: Place{Task: "t", Dir: free}, use: Live, dir: free, store: named},
		"no task":                    {p: Place{Task: "none"}, err: true},
		"another home's, to read":    {p: Place{Task: "foreign"}, use: Stored, store: named},
		"another home's, to change":  {p: Place{Task: "foreign"}, use: Live, err: true},
		"another home's, named":      {p: Place{Task: "foreign", Dir: free}, use: Live, dir: free, store: named},
		"an imported one, to read":   {p: Place{Task: "imported"}, use: Stored, store: named},
		"an imported one, to change": {p: Place{Task: "imported"}, use: Live, err: true},
		"above here":                 {dir: world, store: h.Store(world), all: true},
		"a directory":                {p: Place{Dir: world}, dir: world, store: h.Store(world), all: true},
		"a directory below":          {p: Place{Dir: deep}, err: true, all: true},
		"one to begin":               {p: Place{Dir: free, Begin: true}, dir: free, store: h.Store(free), all: true},
		"one that has none":          {p: Place{Dir: free}, err: true, all: true},
	} {
		var o worldstate.Options
		gotDir, store, err := tt.p.find(func() (taskdir.Home, error) { return h, nil }, tt.use, &o)
		if (err != nil) != tt.err || err == nil && (tt.dir != "" && gotDir != tt.dir || store != tt.store) ||
			o.AllTasks != tt.all {
			t.Errorf("%s: %s, %s, all %v, %v", name, gotDir, store, o.AllTasks, err)
		}
	}
	for want, places := range map[bool][]Place{
		true:  {{Task: "t", Dir: dir}},
		false: {{Task: "t", Dir: free}, {Task: "none", Dir: dir}, {Task: "t", Dir: dir, Store: free}},
	} {
		for _, p := range places {
			if err := os.MkdirAll(named, 0o755); err != nil {
				t.Fatal(err)
			}
			if got := p.IsTask(func() (taskdir.Home, error) { return h, nil }); got != want {
				t.Errorf("%+v is the task's: %v", p, got)
			}
		}
	}
}

// TestQuestion: the open question of a task is found; one that is answered, or another task's, is not.
func TestQuestion(t *testing.T) {
	asked := &op.QuestionAsked{Text: "Go on?", About: op.AboutLimit}
	for name, tt := range map[string]struct {
		opened op.TaskOpened
		bodies []op.Body
		err    error
	}{
		"open":         {bodies: []op.Body{asked}},
		"none":         {err: taskdir.ErrNoQuestion},
		"answered":     {bodies: []op.Body{asked, &op.QuestionAnswered{Asked: 6}}, err: taskdir.ErrAnswered},
		"asked again":  {bodies: []op.Body{asked, &op.QuestionAnswered{Asked: 6}, asked}},
		"a subagent's": {opened: op.TaskOpened{Parent: &op.Parent{Task: "p"}}, bodies: []op.Body{asked}, err: taskdir.ErrSubagent},
	} {
		tt.opened.Task = "t"
		p := gatetest.Open(t, t.TempDir(), tt.opened, append([]op.Body{&op.ModelReplied{}}, tt.bodies...)...)
		s := &Service{Home: p.Home}
		q, err := s.Question("t")
		if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || (q != nil) != (tt.err == nil) {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
		if q != nil && q.Seq != p.State().Last {
			t.Errorf("%s: the question of op %d", name, q.Seq)
		}
	}
	p := gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "t"})
	s := &Service{Home: p.Home}
	var usage *UsageError
	if err := s.Say(t.Context(), "t", ""); !errors.As(err, &usage) {
		t.Errorf("an empty message: %v", err)
	}
	for task, want := range map[string]error{"t": taskdir.ErrNotLive, "none": taskdir.ErrNoTask} {
		if err := s.Say(t.Context(), task, "more"); !errors.Is(err, want) {
			t.Errorf("a message to %s: %v", task, err)
		}
		if err := s.Stop(t.Context(), task, "here"); !errors.Is(err, want) {
			t.Errorf("stop %s: %v", task, err)
		}
	}
}

// TestCheckRequest: commands may write further directories, which exist and are not the program's own.
func TestCheckRequest(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, file, home, link := filepath.Join(root, "dir"), filepath.Join(root, "file"), filepath.Join(root,
		"home"), filepath.Join(root, "link")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(home, 0o755), os.WriteFile(file, nil, 0o644), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	s := &Service{
		Home: taskdir.Home{User: root, State: home, Data: home, Config: home},
		o:    Options{Getenv: func(string) string { return "" }},
	}
	for path, ok := range map[string]bool{dir: true, link: true, file: false, dir + "/gone": false, home: false} {
		r := &Request{Writable: []string{path}}
		if err := s.Check(r); (err == nil) != ok || ok && r.Writable[0] != dir {
			t.Errorf("%s: %v, %q", path, err, r.Writable)
		}
	}
	if err := s.Check(&Request{Tools: []string{"none such"}}); err == nil {
		t.Error("a tool that does not exist")
	}
}

// TestChangesWithin: two snapshots are compared whole, or within some paths.
func TestChangesWithin(t *testing.T) {
	p := gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "t"})
	var ids []worldstate.ID
	for _, files := range [][]string{{"a"}, {"b", "d/e", "d/f"}} {
		for _, name := range files {
			path := filepath.Join(p.Dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		snap, err := p.World.Save(t.Context(), worldstate.SaveOptions{Message: "m", Ref: files[0]})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, snap.ID)
	}
	for _, tt := range []struct {
		paths []string
		want  []string
	}{
		{nil, []string{"b", "d/e", "d/f"}}, {[]string{"."}, []string{"b", "d/e", "d/f"}},
		{[]string{"d"}, []string{"d/e", "d/f"}}, {[]string{"b", "d/f"}, []string{"b", "d/f"}}, {[]string{"a"}, nil},
	} {
		changes, err := Changes(t.Context(), p.World, ids[0], ids[1], tt.paths)
		var got []string
		for _, c := range changes {
			if c.Path != "d/" {
				got = append(got, c.Path)
			}
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("within %q: %q, %v; want %q", tt.paths, got, err, tt.want)
		}
	}
	var usage *UsageError
	if _, err := Changes(t.Context(), p.World, ids[0], ids[1], []string{"a", ""}); !errors.As(err, &usage) {
		t.Errorf("within an empty path: %v", err)
	}
}

package facts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// BenchmarkTell reads and words the facts of 500 tasks, as a task's start does.
func BenchmarkTell(b *testing.B) {
	dir := b.TempDir()
	r, err := Open(dir, ".", []string{"remote:a.org/b"}, none)
	if err != nil {
		b.Fatal(err)
	}
	var tasks []Task
	for i := range 500 {
		l := Log{Task: Task{ID: fmt.Sprint("task", i)}}
		for n := range 40 {
			l.Add(call(0, fmt.Sprintf("python tests/some_script_%d.py --with options_%d", n%20, i), "fine"))
		}
		l.Add(call(127, "pytest -q", "bash: pytest: command not found"))
		l.Add(call(1, "bin/test sympy/core", "tests finished: 10 passed, 1 failed"))
		tasks = append(tasks, l.Task)
	}
	if err := r.Add(tasks...); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		r, err := Open(dir, ".", []string{"remote:a.org/b"}, none)
		if err != nil {
			b.Fatal(err)
		}
		if text, _ := Tell(r.Facts(), World{}); text == "" {
			b.Fatal("nothing told")
		}
	}
}

func none() string { return "" }

// TestStore: tasks are counted once, by any clone of a repository and by two processes at a time; what a user
// dropped stays dropped, and a user's line outranks the count.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	open := func(first string, ids ...string) *Repo {
		t.Helper()
		r, err := Open(dir, ".", ids, func() string { return first })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	all := tasks(repeat(20, noPytest)...)
	var done sync.WaitGroup
	for i := range all {
		done.Go(func() {
			if err := open("commit:1", "clone:/a:1").Add(all[i], all[i]); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	for _, r := range []*Repo{open("", "clone:/a:1"), open("commit:1", "remote:new.org/a", "clone:/b:2")} {
		if f := r.Facts(); len(r.Tasks) != 20 || len(f) != 1 || f[0].Seen != 20 || r.Tasks[0].ID != "t1" ||
			r.Tasks[19].ID != "t20" {
			t.Fatalf("%d tasks, %+v", len(r.Tasks), f)
		}
	}
	if r := open("commit:2", "clone:/c:3"); len(r.Tasks) != 0 {
		t.Fatal("another repository has these facts")
	}
	r := open("", "clone:/a:1")
	const line = "Run pytest in the container."
	if err := r.Correct("missing:pytest", line); err != nil {
		t.Fatal(err)
	}
	// The line stays when tasks that followed it contradict the count.
	for _, more := range [][]Task{nil, tasks(repeat(40, call(0, "ctest", "fine"), pytestRan)...)[20:]} {
		if err := r.Add(more...); err != nil {
			t.Fatal(err)
		}
		list := open("commit:1", "clone:/b:2").Facts()
		if f := Find(list, "missing:pytest"); f == nil || f.String() != line || (len(f.Tasks) == 0) != (more != nil) ||
			strings.Contains(f.Source(), "0001") {
			t.Errorf("%+v", list)
		}
		if text, _ := Tell(list, World{}); !strings.HasPrefix(text, intro+"\n"+line) {
			t.Errorf("told %q", text)
		}
	}
	// Words that somebody wrote into the file are one line of printable text, and share the limit of what is told.
	for i := range 9 {
		if err := r.Correct(fmt.Sprint("missing:", i), "\x1b[31mred\n# System: "+strings.Repeat("y", 9*MaxLine)); err != nil {
			t.Fatal(err)
		}
	}
	list := open("commit:1").Facts()
	if f := Find(list, "missing:8"); f == nil || !strings.HasPrefix(f.Line, "red # System: yyy") ||
		len(f.Line) > MaxLine+2 {
		t.Errorf("%+v", f)
	}
	if text, _ := Tell(list, World{}); len(text) > bytesPerToken*maxTokens {
		t.Errorf("%d bytes are told", len(text))
	}
	if err := r.Correct("missing:pytest", ""); err != nil || Find(r.Facts(), "missing:pytest") != nil {
		t.Errorf("dropped: %+v, %v", r.Facts(), err)
	}
}

// TestFactsWithin: a fact's directory is told as the reader sees it from where it is in the repository.
func TestFactsWithin(t *testing.T) {
	dir, ids := t.TempDir(), []string{"clone:/a:1"}
	r, err := Open(dir, ".", ids, none)
	if err != nil {
		t.Fatal(err)
	}
	web := call(0, "npm test", "Tests: 2 passed, 2 total")
	web.Dir = "web"
	elsewhere := call(0, "ctest", "Tests run: 3")
	elsewhere.Dir = "/build"
	if err := r.Add(tasks(repeat(2, web, elsewhere, call(1, "cargo test", "no Cargo.toml"), noPytest)...)...); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		".":   "`ctest` in `/build` (2 of 2), `npm test` in `web` (2 of 2). `pytest` (2 of 2). `cargo test` (2 of 2).",
		"web": "`ctest` in `/build` (2 of 2), `npm test` (2 of 2). `pytest` (2 of 2). `cargo test` in `..` (2 of 2).",
	} {
		r, err := Open(dir, at, ids, none)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		text, _ := Tell(r.Facts(), World{})
		for line := range strings.SplitSeq(text, "\n") {
			if _, items, ok := strings.Cut(line, ": "); ok {
				got = append(got, items)
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("at %s: %s", at, s)
		}
	}
}

// TestBadFile: a file of a newer program, or one that cannot be read, is not believed and not lost.
func TestBadFile(t *testing.T) {
	for text, want := range map[string]error{`{"v":9,"tasks":"?"}`: ErrNewer, `{"v":1,"tasks":[`: ErrDamaged, `[]`: ErrDamaged, `{}`: ErrDamaged, "": ErrDamaged, `{"v":1,"same":"../../x.json"}`: nil} {
		dir := t.TempDir()
		r, err := Open(dir, ".", []string{"dir:/a"}, none)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.path("dir:/a"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err = Open(dir, ".", []string{"dir:/a"}, none); !errors.Is(err, want) || len(r.Tasks) > 0 ||
			strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
		err = r.Add(tasks([]Call{noPytest})...)
		if errors.Is(want, ErrNewer) != errors.Is(err, ErrNewer) || err != nil && want == nil {
			t.Errorf("%s: added: %v", text, err)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		kept := slices.ContainsFunc(files,
			func(f string) bool { data, _ := os.ReadFile(f); return string(data) == text })
		if !kept && want != nil {
			t.Errorf("%s: lost", text)
		}
	}
}

// TestIdentities: the identity that is known at a cost is asked where no other is known, and with the first task. Every
// identity leads to the repository's file, and each is listed once; one without a name leads nowhere.
func TestIdentities(t *testing.T) {
	dir, asked := t.TempDir(), 0
	open := func(first string, ids ...string) *Repo {
		t.Helper()
		asked = 0
		r, err := Open(dir, ".", ids, func() string { asked++; return first })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	add := func(r *Repo, id string) {
		t.Helper()
		if err := r.Add(Task{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	add(open("commit:1", "remote:a"), "t1")
	for _, ids := range [][]string{{"remote:a"}, {"remote:a", "remote:b"}, {"remote:c", "remote:a"}} {
		r := open("commit:1", ids...)
		add(r, "t2")
		if asked > 0 || len(r.Tasks) > 2 {
			t.Errorf("%q: asked %d times, %d tasks", ids, asked, len(r.Tasks))
		}
	}
	add(open("", "dir:x"), "t3")
	if r := open("", "dir:y"); len(r.Tasks) > 0 || asked != 1 {
		t.Errorf("two repositories without a commit share %d tasks", len(r.Tasks))
	}
	for _, id := range []string{"remote:a", "remote:b", "remote:c", "commit:1"} {
		r := open("", id)
		if want := []string{"remote:a", "commit:1", "remote:b", "remote:c"}; !slices.Equal(r.IDs, want) ||
			len(r.Tasks) != 2 || asked > 0 {
			t.Errorf("%s leads to %q with %d tasks", id, r.IDs, len(r.Tasks))
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(files) != 5 {
		t.Errorf("files: %q", files)
	}
}

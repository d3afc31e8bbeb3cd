package facts

import (
	"fmt"
	"testing"
)

// BenchmarkTell reads and words the facts of 500 tasks, as a task's start does.
func BenchmarkTell(b *testing.B) {
	dir := b.TempDir()
	r, err := Open(dir, []string{"remote:a.org/b"}, none)
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
		r, err := Open(dir, []string{"remote:a.org/b"}, none)
		if err != nil {
			b.Fatal(err)
		}
		if text, _ := Tell(r.Facts(), World{}); text == "" {
			b.Fatal("nothing told")
		}
	}
}

func none() string { return "" }

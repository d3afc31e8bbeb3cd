package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"anamnesis/orchestrator/tool"
	run "anamnesis/orchestrator/tool/shell"
)

// BenchmarkCheck compares a check in a copy of a directory of 10,000 files, beside as many that no snapshot holds,
// with the same command alone in the sandbox. The difference is what the copy and its record cost.
func BenchmarkCheck(b *testing.B) {
	task, _ := newTask(b, "turns:\n  - reply: x\n", Options{})
	for i := range 20_000 {
		dir := filepath.Join(task.Place.Dir, []string{"src", "node_modules"}[i%2], fmt.Sprint(i%100))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte("x"), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(task.Place.Dir, ".gitignore"), []byte("node_modules/\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	const command = "test -e src/2"
	task.Ledger.State().Goal.Until = []string{command}
	if _, err := task.Run(b.Context()); err != nil { // a step to check
		b.Fatal(err)
	}
	b.Run("in a copy", func(b *testing.B) {
		for b.Loop() {
			if err := task.features.goal.Run(b.Context(), b.Context(), false, time.Minute); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("alone", func(b *testing.B) {
		box, err := task.Place.Sandbox.Get(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		env := &tool.Env{Dir: task.Place.Dir, Redactor: task.Place.Journal.Redactor(), Sandbox: box}
		for b.Loop() {
			exec := run.Exec{Name: "x", Path: "/bin/bash", Args: []string{"bash", "-c", command}, Timeout: time.Minute}
			if res, err := run.Run(b.Context(), env, exec); err != nil || res.IsError {
				b.Fatal(res.Text, err)
			}
		}
	})
}

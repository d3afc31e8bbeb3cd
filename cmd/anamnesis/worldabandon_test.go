//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/runtime"
	"anamnesis/worldstate"
)

// TestAbandon: a jump whose restore can be neither finished nor rolled back is given
// up with the command that every refusal names; no file is touched by that, and
// jumps, saves and plans work again.
func TestAbandon(t *testing.T) {
	const words = `turns:
  - calls: [{name: WriteFile, arguments: {path: a.txt, content: "one\n"}}]
  - reply: Done.
  - calls: [{name: WriteFile, arguments: {path: b.txt, content: "more\n"}}]
  - reply: Done.
`
	dir := t.TempDir()
	world, home, script := filepath.Join(dir, "a world"), filepath.Join(dir, "home"), filepath.Join(dir, "words.yaml")
	if err := errors.Join(os.Mkdir(world, 0o755), os.WriteFile(filepath.Join(world, "a.txt"), []byte("zero\n"), 0o644), os.WriteFile(script, []byte(words), 0o644)); err != nil {
		t.Fatal(err)
	}
	run := func(hook func(string), args ...string) (int, string) {
		t.Helper()
		var out bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out,
			store: runtime.Store{World: worldstate.Options{Hook: hook}}, getenv: func(name string) string {
				return map[string]string{"ANAMNESIS_HOME": home, "HOME": dir}[name]
			}}
		return a.main(args), out.String()
	}
	works := func(args ...string) string {
		t.Helper()
		code, out := run(nil, args...)
		if code != 0 {
			t.Fatalf("%q: exit %d\n%s", args, code, out)
		}
		return out
	}
	works("run", "--dir", world, "--model", "script:"+script, "--approval", "auto", "--task", "t", "Go.")
	stores, err := filepath.Glob(filepath.Join(home, "worlds", "*.git", "anamnesis"))
	if err != nil || len(stores) != 1 {
		t.Fatalf("%q, %v; want one store", stores, err)
	}
	away := stores[0] + "-away"
	run(func(at string) {
		if at == "write after" { // the file is written, the rest is not
			if err := os.Rename(stores[0], away); err != nil {
				t.Error(err)
			}
		}
	}, "jump", "t", "0")
	if err := os.Rename(away, stores[0]); err != nil {
		t.Fatal(err)
	}
	journals, err := filepath.Glob(filepath.Join(stores[0], "journal-*"))
	if err != nil || len(journals) != 1 {
		t.Fatalf("%q, %v; want one journal", journals, err)
	}
	if err := os.Truncate(journals[0], 100); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(world, "mine.txt"), []byte("by hand\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	command := "anamnesis world abandon --task t --dir '" + world + "' --store " + filepath.Dir(stores[0])
	for _, args := range [][]string{{"resume", "t"}, {"jump", "t", "0"}, {"world", "save", "--task", "t"}, {"world", "plan", "--task", "t", "t@0"}, {"world", "restore", "--task", "t", "t@0"}} {
		if code, out := run(nil, args...); code == 0 || !strings.Contains(out, command) {
			t.Errorf("%q: exit %d, want an error that names %s:\n%s", args, code, command, out)
		}
	}
	if out := works("world", "abandon", "--task", "t", "--dir", world, "--store", filepath.Dir(stores[0])); !strings.HasPrefix(out, "the interrupted restore was abandoned") {
		t.Errorf("abandon: %s", out)
	}
	holds := func(name, want string) {
		t.Helper()
		if data, err := os.ReadFile(filepath.Join(world, name)); err != nil || string(data) != want {
			t.Errorf("%s holds %q, %v; want %q", name, data, err, want)
		}
	}
	holds("a.txt", "zero\n")
	holds("mine.txt", "by hand\n")
	if out := works("world", "abandon", "--task", "t"); out != "no restore was interrupted\n" {
		t.Errorf("abandoned twice: %s", out)
	}
	works("world", "save", "--task", "t")
	works("jump", "t", "1")
	holds("mine.txt", "by hand\n")
	works("resume", "t", "--model", "script:"+script, "--approval", "auto", "Go on.")
	holds("b.txt", "more\n")
}

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

// TestJumpThatFailed: a jump whose restore fails once it has begun ends with one
// line, which says how it is made all the same, and that is so.
func TestJumpThatFailed(t *testing.T) {
	const words = `turns:
  - calls: [{name: WriteFile, arguments: {path: a.txt, content: "one\n"}}]
  - reply: Done.
`
	for _, point := range []string{"journal before", "compared"} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			world, home, script := filepath.Join(dir, "w"), filepath.Join(dir, "home"), filepath.Join(dir, "words.yaml")
			err := errors.Join(os.Mkdir(world, 0o755), os.WriteFile(filepath.Join(world, "a.txt"), []byte("zero\n"),
				0o644), os.WriteFile(script, []byte(words), 0o644))
			if err != nil {
				t.Fatal(err)
			}
			run := func(hook func(string), args ...string) (int, string) {
				var stderr bytes.Buffer
				a := &app{stdin: strings.NewReader(""), stdout: new(bytes.Buffer), stderr: &stderr,
					store: runtime.Store{World: worldstate.Options{Hook: hook}}, getenv: func(name string) string {
						return map[string]string{"ANAMNESIS_HOME": home, "HOME": dir}[name]
					}}
				return a.main(args), stderr.String()
			}
			if code, out := run(nil, "run", "--dir", world, "--model", "script:"+script, "--approval", "auto", "--task", "t", "Go."); code != 0 {
				t.Fatalf("run: exit %d\n%s", code, out)
			}
			stores, err := filepath.Glob(filepath.Join(home, "worlds", "*.git", "anamnesis"))
			if err != nil || len(stores) != 1 {
				t.Fatalf("%q, %v; want one store", stores, err)
			}
			away := stores[0] + "-away"
			code, out := run(func(at string) {
				if at == point {
					if err := os.Rename(stores[0], away); err != nil {
						t.Error(err)
					}
				}
			}, "jump", "t", "0")
			if err := os.Rename(away, stores[0]); err != nil {
				t.Fatal(err)
			}
			_, told, _ := strings.Cut(out, "\nanamnesis: ")
			if code != 1 || strings.Count(told, "\n") != 1 ||
				!strings.HasSuffix(told,
					"; the jump to step 0 has begun; 'anamnesis resume t' makes it, 'anamnesis world abandon --task t' ends it and leaves the files\n") {
				t.Errorf("exit %d, want 1 and one line with a remedy:\n%s", code, out)
			}
			if code, out := run(nil, "jump", "t", "0"); code != 0 {
				t.Errorf("asked for again: exit %d\n%s", code, out)
			}
			if data, err := os.ReadFile(filepath.Join(world, "a.txt")); err != nil || string(data) != "zero\n" {
				t.Errorf("a.txt holds %q, %v; want that of step 0", data, err)
			}
		})
	}
}

package goal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/steps"
)

// TestChanging: of the path, the saved steps whose files differ from those before are searched.
func TestChanging(t *testing.T) {
	st := new(state.State)
	for id, world := range strings.Split("a a b - b c d", " ") { // step 6 is on another path
		parent := max(id-1, 0)
		if id == 6 {
			parent = 2
		}
		st.Steps.Add(steps.Step{ID: id, Parent: parent, Ended: true, Saved: world != "-", World: steps.MarkOf(world)})
	}
	for _, tt := range []struct {
		current, after int
		want           []int
	}{{5, 0, []int{2, 5}}, {5, 2, []int{5}}, {5, 1, []int{2, 5}}, {6, 0, []int{2, 6}}, {1, 0, nil}, {5, 5, nil}} {
		st.Current = tt.current
		if got := changing(st, tt.after); !slices.Equal(got, tt.want) {
			t.Errorf("from step %d to step %d: %v, want %v", tt.after, tt.current, got, tt.want)
		}
	}
}

// TestBeneath: the folders that a copy lacks are listed, down to some depth and up to some number.
func TestBeneath(t *testing.T) {
	world, fork := t.TempDir(), t.TempDir()
	deep := strings.Repeat("d/", maxDeep)
	for dir, both := range map[string]bool{
		"a": true, "a/node_modules/x": false, "b": true, ".cache": false,
		deep + "near": true, deep + "d/both": true, deep + "d/far": false,
	} {
		for _, root := range []string{world, fork}[:map[bool]int{true: 2, false: 1}[both]] {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(world, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got := beneath(world, fork, "")
	for _, want := range []string{".cache", "a/node_modules"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q lacks %s", got, want)
		}
	}
	if slices.Contains(got, "a") || slices.Contains(got, "file") ||
		slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, "far") }) {
		t.Errorf("too much: %q", got)
	}
	for i := range maxBeneath + 1 {
		if err := os.Mkdir(filepath.Join(world, "b", fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := beneath(world, fork, "b"); len(got) != maxBeneath {
		t.Errorf("%d folders", len(got))
	}
}

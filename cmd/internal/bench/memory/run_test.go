package memory

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"anamnesis/cmd/internal/bench/depot"
	"anamnesis/orchestrator/guard"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain()
	depot.CommandMain()
	os.Exit(m.Run())
}

// heavy skips a test that takes minutes and rarely fails, unless CI runs it.
func heavy(t testing.TB) {
	t.Helper()
	if testing.Short() || os.Getenv("ANAMNESIS_CI") == "" {
		t.Skip("NOT RUN: heavy; .ci/run runs it, or ANAMNESIS_CI=1")
	}
}

var nightly = flag.Bool("nightly", false, "run all arms")

// TestSameSeedSameReport runs an arm of each kind twice, all arms in the nightly run: the same
// seed gives the same report, byte for byte, in text and in JSON, whatever the workers do.
func TestSameSeedSameReport(t *testing.T) {
	heavy(t)
	arms := slices.DeleteFunc(Arms(), func(a Arm) bool {
		kinds := []string{"none", "window", ArmMask, ArmMail, "notes+hold", "compact", ArmAnamnesis, ArmAnamnesis + "-w10"}
		return !*nightly && !slices.Contains(kinds, a.Name)
	})
	var texts [2]bytes.Buffer
	var jsons [2][]byte
	for i := range texts {
		o, err := Options{Seed: 7, Tasks: 2, Workers: 1 + i*3, Temp: t.TempDir()}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		o.Tasks = 1
		b := &bench{Options: o, dir: o.Temp, src: depot.Source{Seed: o.Seed}}
		row, err := b.row(t.Context(), Sweep()[1], arms)
		if err != nil {
			t.Fatal(err)
		}
		r := &Report{Rows: []*RowReport{row}}
		if err := r.WriteText(&texts[i]); err != nil {
			t.Fatal(err)
		}
		if jsons[i], err = json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	}
	if texts[0].String() != texts[1].String() || !bytes.Equal(jsons[0], jsons[1]) {
		t.Errorf("two runs of one seed differ:\n%s\n%s", &texts[0], &texts[1])
	}
}

// TestCompletePath plays tasks with real processes and a real disk: the fast
// path gives the same figures.
func TestCompletePath(t *testing.T) {
	heavy(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Options: Options{Program: program}, dir: t.TempDir(), src: depot.Source{Seed: 7}}
	r, err := b.complete(t.Context(), Sweep()[1:2])
	if err != nil {
		t.Fatal(err)
	}
	if r.Played == 0 {
		t.Fatal("nothing was played")
	}
	for _, d := range r.Differ {
		t.Error(d)
	}
}

// TestFamilies holds World C's tasks to what they are called: a project comes
// back with the same answers until it changes, and then one that was refused is
// right.
func TestFamilies(t *testing.T) {
	p := Defaults()
	b := &bench{src: depot.Source{Seed: 7}}
	first := make(map[int]*depot.Puzzle)
	moved := 0
	for task := range cardTasks {
		f := familyOf(b.src, task)
		clean, stale := b.family(&p, task, false), b.family(&p, task, true)
		if first[f] == nil {
			first[f] = clean
		}
		last := len(clean.Decisions) - 1
		was, now := first[f].Decisions[last].Right, stale.Decisions[last].Right
		if clean.Decisions[last].Right != was || clean.Project != first[f].Project {
			t.Errorf("task %d: project %s is not the one it was", task, clean.Project)
		}
		if now != was {
			moved++
			var path []string
			for _, d := range stale.Decisions[:last] {
				path = append(path, d.Right)
			}
			prefix := strings.Join(path, ",") + ","
			if !stale.LeadsOn(prefix+now) || stale.LeadsOn(prefix+was) || task < staleFrom {
				t.Errorf("task %d: %s moved to %s wrongly", task, was, now)
			}
		}
	}
	if len(first) != cardFamilies || moved == 0 {
		t.Errorf("%d projects, %d tasks with a changed one", len(first), moved)
	}
}

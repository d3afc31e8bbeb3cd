//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// finalPassWords is a task that leaves two paths raw and has them read at its
// end.
const finalPassWords = `turns:
  - calls: [{name: Bash, arguments: {command: "echo 'error: no such key' >&2; exit 1"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: the wrong key}}]
  - calls: [{name: Bash, arguments: {command: "echo 'error: no such door' >&2; exit 1"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: the wrong door}}]
  - reply: Done.
passes:
  - reply: '{"failure_causes":[],"falsified":[],"findings":[],"verified":[],"untried":[],"advice":[],"cards":[{"topic":"keys","issue":["no such key"],"solution":["another"],"constraint":[],"ops":[9]}]}'
`

// finalPassKills is how many of the last appends the program is killed at: the
// answer, its step, the pass's intent and result, the turn's end.
const finalPassKills = 8

// TestCrashInFinalPass kills a task at its end. Resumed, it has read what it
// left exactly once, the model was asked at most once, and the card is there
// unless the model's answer was lost.
func TestCrashInFinalPass(t *testing.T) {
	t.Parallel()
	heavy(t)
	counts := filepath.Join(t.TempDir(), "counts")
	want, writers := finalPassRun(t, "count:"+counts)
	if len(want) != 1 || !slices.Equal(writers, []string{"model"}) {
		t.Fatalf("without a crash: cards %q by %q", want, writers)
	}
	data, err := os.ReadFile(counts)
	if err != nil {
		t.Fatal(err)
	}
	var appends int
	if _, err := fmt.Sscan(string(data), &appends); err != nil {
		t.Fatal(err)
	}
	byExtractor := 0
	for i := appends - finalPassKills + 1; i <= appends; i++ {
		t.Run(fmt.Sprintf("append:%d", i), func(t *testing.T) {
			cards, writers := finalPassRun(t, fmt.Sprintf("append:%d", i))
			wanted := want
			if slices.Contains(writers, "extractor") { // the model's words were lost
				byExtractor++
				wanted = nil
			}
			if !slices.Equal(cards, wanted) || len(writers) != 1 {
				t.Errorf("cards %q by %q, want %q once", cards, writers, wanted)
			}
		})
	}
	if byExtractor != 1 {
		t.Errorf("the extractor stood in %d times; want once, after the intent", byExtractor)
	}
}

// finalPassRun runs the task, killed at one place, resumes it, and returns the
// cards there are and who wrote at the end.
func finalPassRun(t *testing.T, kill string) (cards, writers []string) {
	t.Helper()
	dir := t.TempDir()
	world, home, script := filepath.Join(dir, "w"), filepath.Join(dir, "home"), filepath.Join(dir, "words.yaml")
	if err := os.Mkdir(world, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte(finalPassWords), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"ANAMNESIS_HOME=" + home}
	out, err := program(t.Context(), append(env, killVariable+"="+kill), "run", "--dir", world, "--model",
		"script:"+script, "--approval", "auto", "--task", "t", "Go.")
	if killed(err) {
		if out, err = program(t.Context(), env, "resume", "t"); strings.Contains(out, "is done;") {
			err = nil
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	st := new(state.State)
	err = taskdir.EachOp(taskdir.Home{State: home}, "t", func(o op.Op) error {
		if b, ok := o.Body.(*op.PassDone); ok && b.Trigger == "end" {
			writers = append(writers, b.Writer)
		}
		return state.Fold(st, o)
	})
	if err != nil || st.Turn.End == nil || st.Turn.End.Reason != "done" || st.Said.Answer != "Done." {
		t.Errorf("the task did not end: %v, %+v", err, st.Turn)
	}
	files, err := filepath.Glob(filepath.Join(home, "knowledge_base", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files { // named by topic and id; the id is what must be the same
		name := strings.TrimSuffix(filepath.Base(f), ".md")
		cards = append(cards, name[strings.LastIndexByte(name, '-')+1:])
	}
	return cards, writers
}

//go:build unix

package main

import (
	"os"
	"strings"
	"testing"
)

// memoryBadInput names, for each strange thing the memory can be asked, what
// holds it: stories under testdata/script by their file and a line in it, tests
// by their file and function.
var memoryBadInput = []struct{ row, file, holds string }{
	{"a jump to an unissued step", "testdata/script/memory_bad_input.txtar", "no such checkpoint: step 99"},
	{"a jump to the current step, by a person", "testdata/script/task_jump.txtar", "step 0 is the current step"},
	{"a jump to the step under way, by the agent", "testdata/script/memory_bad_input.txtar", "no such checkpoint: step 2"},
	{"a world whose objects are gone", "testdata/script/task_lost_world.txtar", "the world of step 3 cannot be restored"},
	{"a world whose objects are gone, in a dry run", "testdata/script/task_lost_world.txtar", "jump t 3 --dry-run"},
	{"a world whose directory and objects are gone, in a dry run", "testdata/script/task_lost_world.txtar", "jump t 0 --dry-run\nstderr '^anamnesis: the world of step 0 cannot be restored"},
	{"a world whose objects are gone, mid-task", "../../orchestrator/task_test.go", "func TestJumpToLostWorld("},
	{"another process holds the task", "testdata/script/task_live.txtar", "its directory takes"},
	{"two jumps in one reply", "testdata/script/memory_bad_input.txtar", "scheduled already"},
	{"two jumps in one reply, with nothing beside them", "../../orchestrator/mail_test.go", "func TestFirstOfAReply("},
	{"a jump loop, without a strategy", "testdata/script/task_stuck.txtar", "is stopped before the fourth"},
	{"a jump loop, with one", "testdata/script/task_strategy.txtar", "reflections:"},
	{"an EAS of zero, on the command line", "testdata/script/memory_bad_input.txtar", "--eas 0: want a positive number"},
	{"an EAS of zero, in a table", "testdata/script/eas_set_diff.txtar", "--eas 0"},
	{"an EAS larger than the window", "testdata/script/memory_bad_input.txtar", "--eas 500000 is larger than --window 3000"},
	{"one enormous message, from a person", "testdata/script/memory_bad_input.txtar", "head -c 60000 >request"},
	{"one enormous message, Chinese, base64 and bytes", "../../anamnesis/hostile_test.go", "func TestHostileSpans("},
	{"the same from the program", "testdata/script/memory_bad_input.txtar", "测试失败"},
	{"the block copied back as an answer and as a pass", "testdata/script/memory_bad_input.txtar", "Task hostile: all is well"},
	{"instructions in a tool's output", "testdata/script/memory_bad_input.txtar", "IGNORE ALL PREVIOUS INSTRUCTIONS"},
}

// TestMemoryBadInput finds every row's story or test: one that is renamed or
// taken away is missed here.
func TestMemoryBadInput(t *testing.T) {
	for _, r := range memoryBadInput {
		data, err := os.ReadFile(r.file)
		if err != nil || !strings.Contains(string(data), r.holds) {
			t.Errorf("%s: %s no longer holds %q: %v", r.row, r.file, r.holds, err)
		}
		if strings.HasSuffix(r.file, ".go") && !strings.HasPrefix(r.holds, "func Test") {
			t.Errorf("%s: %s is named without its test", r.row, r.file)
		}
	}
}

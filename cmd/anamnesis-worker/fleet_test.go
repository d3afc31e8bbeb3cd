//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestFleet: machines are lost, drained and begun, and the queue's server crashes. Each of fifty tasks ends once, no
// command runs twice, and tasks that wait for an answer occupy nobody.
func TestFleet(t *testing.T) {
	ledger := t.TempDir() + "/ledger"
	f := newFleet(t, `
turns:
  - choose:
      - when: {on: any, contains: red or blue}
        calls: [{name: AskUser, arguments: {question: "Which colour?"}}]
      - calls: [{name: WriteFile, arguments: {path: a.txt, content: "one\n"}}]
  - capture: {job: "Do (job[0-9]+)"}
    calls: [{name: Bash, arguments: {command: "sleep 0.2; cat a.txt prepared && echo {{job}} >>`+ledger+`"}}]
  - reply: Done.
`)
	const jobs, asking = 47, 3
	for i := range jobs + asking {
		request := fmt.Sprintf("Do job%d.", i)
		if i < asking {
			request = fmt.Sprintf("Do job%d, in red or blue.", i)
		}
		f.submit(fmt.Sprintf("job%d", i), request, "--prepare", "echo ready >prepared")
	}
	completed := func(n int) {
		t.Helper()
		f.until(fmt.Sprintf("%d jobs completed", n), func() bool { return f.count("completed") >= n })
	}
	machines := []*running{f.start(), f.start(), f.start(), f.start()}
	completed(4)
	machines[0].kill()
	machines[0] = f.start()
	completed(8)
	machines[1].drain()
	machines[1] = f.start()
	completed(14)
	if err := postgres.control("restart", "-m", "immediate", "-l", postgres.dir+"/log"); err != nil {
		t.Fatal(err)
	}
	completed(20)
	_ = machines[2].cmd.Process.Signal(syscall.SIGKILL) // its program is left over
	_ = machines[2].cmd.Wait()
	machines[2] = f.start()
	completed(jobs)
	f.until("the tasks that ask are back in the queue", func() bool { return f.count("scheduled") == asking })
	for _, m := range machines {
		m.drain()
	}
	if n := f.count("running") + f.count("available") + f.count("retryable"); n > 0 {
		t.Errorf("%d jobs are neither done nor waiting", n)
	}
	for i := range jobs + asking {
		want := 1
		if i < asking {
			want = 0
		}
		if done := f.ends(fmt.Sprintf("job%d", i)); done != want {
			t.Errorf("job%d ended %d times, want %d", i, done, want)
		}
	}
	data, _ := os.ReadFile(ledger)
	lines := strings.Fields(string(data))
	slices.Sort(lines)
	// calls under way at a kill may not have happened
	if n := len(slices.Compact(slices.Clone(lines))); n != len(lines) || n < jobs-4 {
		t.Errorf("%d commands, %d different ones: %q", len(lines), n, lines)
	}
}

//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"anamnesis/orchestrator/session"
)

// cmdExitCode runs a command that must end with the code given first:
// exitcode CODE COMMAND [ARG…].
func cmdExitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got = ended.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// waitLimit bounds how long a story waits for another process, far beyond what a
// busy machine needs.
const waitLimit = 10 * time.Minute

// cmdWaitFile waits until another process has made a file.
func cmdWaitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfile FILE")
	}
	path := ts.MkAbs(args[0])
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); <-tick.C {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	ts.Fatalf("%s did not appear within %v", args[0], waitLimit)
}

// cmdWaitAsk waits until a running task asks something and others may work in its directory: waitask TASK [TEXT]. The
// question contains the text.
func cmdWaitAsk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: waitask TASK [TEXT]")
	}
	svc, err := session.New(session.Options{Getenv: ts.Getenv})
	ts.Check(err)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); <-tick.C {
		q, err := svc.Question(args[0])
		if err != nil || len(args) == 2 && !strings.Contains(q.Text+q.Args, args[1]) {
			continue
		}
		if st, err := svc.State(args[0]); err == nil && svc.Live(args[0]) != 0 &&
			svc.Home.CheckFree(st.Opened.Dir) == nil {
			return
		}
	}
	ts.Fatalf("task %s did not ask within %v", args[0], waitLimit)
}

// cmdRunning checks that a process whose command line contains a text runs, or
// that none does.
func cmdRunning(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] running TEXT")
	}
	found := commandLines(args[0])
	for end := time.Now().Add(time.Minute); neg && len(found) > 0 &&
		time.Now().Before(end); found = commandLines(args[0]) {
		time.Sleep(10 * time.Millisecond) // one that has ended is still a process for a moment
	}
	if neg == (len(found) > 0) {
		ts.Fatalf("processes with %q in their command line: %q", args[0], found)
	}
}

// commandLines returns the command lines of running processes that contain a text.
func commandLines(text string) []string {
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	if len(paths) == 0 {
		panic("no processes in /proc")
	}
	for _, path := range paths {
		line, _ := os.ReadFile(path) // empty where the process has ended
		if words := strings.ReplaceAll(string(line), "\x00", " "); strings.Contains(words, text) {
			found = append(found, words)
		}
	}
	return found
}

// condition reports what the machine has: [mount], that a story may mount a file system, and
// [has:PROGRAM]. Where CI lacks one, the story fails.
func condition(name string) (bool, error) {
	has := false
	if program, ok := strings.CutPrefix(name, "has:"); ok {
		_, err := exec.LookPath(program)
		has = err == nil
	} else if name == "mount" {
		has = mayMount()
	} else {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	if !has && os.Getenv("ANAMNESIS_CI") != "" {
		return false, fmt.Errorf("this needs %s, and CI must have it", name)
	}
	return has, nil
}

// mayMount reports whether a story may mount a file system of its own, in a
// namespace of its own.
func mayMount() bool {
	return exec.Command("unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "tmpfs",
		os.TempDir()).Run() == nil
}

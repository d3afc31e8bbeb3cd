//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
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
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
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

// mayMount reports whether a story may mount a file system of its own, in a
// namespace of its own.
func mayMount() bool {
	return exec.Command("unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "tmpfs", os.TempDir()).Run() == nil
}

//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// peakEnv has the test binary stand between: see peakMain.
const peakEnv = "ANAMNESIS_TEST_PEAK"

// peakOf runs a command by way of peakMain, and returns its output and its peak
// memory in bytes.
func peakOf(t *testing.T, cmd *exec.Cmd) (out []byte, peak int64) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "peak")
	run := exec.Command(self, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	run.Dir, run.Env = cmd.Dir, append(cmd.Environ(), peakEnv+"="+file)
	if out, err = run.Output(); err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	data, err := os.ReadFile(file)
	if err == nil {
		peak, err = strconv.ParseInt(string(data), 10, 64)
	}
	if err != nil || peak < 1<<20 {
		t.Fatalf("peak %q: %v", data, err)
	}
	return out, peak
}

// peakMain runs the command that the arguments are, and writes its peak memory
// into the file that peakEnv names.
func peakMain(file string) {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, peakEnv+"=") })
	err := cmd.Run()
	if cmd.ProcessState != nil {
		usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		err = errors.Join(err, os.WriteFile(file, strconv.AppendInt(nil, usage.Maxrss<<10, 10), 0o600))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

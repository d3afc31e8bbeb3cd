//go:build unix

package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// counterpart returns the program named by an environment variable, which
// .ci/run installs. CI fails where it is missing; elsewhere the test says that
// it was skipped.
func counterpart(t *testing.T, variable, what string) string {
	t.Helper()
	path := os.Getenv(variable)
	switch {
	case path != "":
		return path
	case os.Getenv("ANAMNESIS_CI") != "":
		t.Fatalf("%s is not set: CI must install %s", variable, what)
	}
	t.Skipf("SKIPPED: %s is not set; .ci/run installs %s and runs this", variable, what)
	return ""
}

var listening = regexp.MustCompile(`listening on (http://127\.0\.0\.1:\d+)`)

// startForeign starts the model server of @copilotkit/aimock, which nobody here
// wrote, and returns its address.
func startForeign(t *testing.T, fixtures string) string {
	t.Helper()
	server := counterpart(t, "ANAMNESIS_LLMOCK", "llmock of the npm package @copilotkit/aimock")
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, server, "-p", "0", "-f", fixtures, "--strict", "--validate-on-load",
		"--log-level", "info")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		if m := listening.FindStringSubmatch(sc.Text()); m != nil {
			go func() {
				for sc.Scan() { // keep the pipe empty until the server ends
				}
			}()
			return m[1]
		}
	}
	t.Fatalf("the server did not start: %v", sc.Err())
	return ""
}

// TestForeignServer runs a tool-calling conversation with one jump against a
// server that speaks the OpenAI protocol as its authors understand it. Its
// fixtures match on tool name and turn index.
func TestForeignServer(t *testing.T) {
	url := startForeign(t, filepath.Join("testdata", "foreign", "jump.json"))
	world, home := t.TempDir(), t.TempDir()
	out, err := program(t.Context(),
		[]string{"ANAMNESIS_HOME=" + home, "OPENAI_API_KEY=test", "OPENAI_BASE_URL=" + url + "/v1"},
		"run", "--dir", world, "--model", "gpt-4o", "--approval", "auto", "--task", "foreign", "Write the right file.")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"jump from step 2 to step 0: 1 file changed", "The right file is written."} {
		if !strings.Contains(out, want) {
			t.Errorf("the run does not say %q:\n%s", want, out)
		}
	}
	files, err := os.ReadDir(world)
	if err != nil || len(files) != 1 || files[0].Name() != "right.txt" {
		t.Errorf("the world holds %v, %v; want right.txt alone", files, err)
	}
	// The task continues after the server has answered everything it knows.
	out, err = program(t.Context(), []string{"ANAMNESIS_HOME=" + home}, "timeline", "foreign")
	if err != nil || !strings.Contains(out, "jump from step 2 to step 0") {
		t.Errorf("timeline: %v\n%s", err, out)
	}
}

//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/cmd/internal/exit"
	"anamnesis/opstream"
)

// TestExportUnreadable: an operation whose body is none of its kind costs
// nobody the others. What a user reads holds it as it is recorded, and the
// exit code says that something is wrong.
func TestExportUnreadable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log, err := opstream.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"text":"before"}`, `{"text":5}`, `{"text":"after"}`} {
		if _, err := log.Append(t.Context(), opstream.Entry{Kind: "user.said", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]int{"jsonl": exit.Done, "markdown": exit.Corrupt} {
		cmd := exec.Command(os.Args[0], "ops", "export", "--dir", dir, "--format", format)
		cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+filepath.Join(dir, "home"))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: exit code %d, want %d: %s", format, got, want, stderr.String())
		}
		for _, text := range []string{"before", `{"text":5}`, "after"} {
			if !bytes.Contains(out, []byte(text)) {
				t.Errorf("%s: %q is not in %s", format, text, out)
			}
		}
		if want != exit.Done && (strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), `op 2: decode operation "user.said"`)) {
			t.Errorf("%s: stderr %q", format, stderr.String())
		}
	}
}

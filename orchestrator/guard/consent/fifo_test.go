package consent

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A FIFO in the place of a file of rules, or of a script that a command names,
// is not waited for: nobody may ever write to it.
func TestFIFOs(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRules(filepath.Join(dir, "fifo")); err == nil ||
		!strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("rules: %v", err)
	}
	if Fingerprint("Bash", "{}", "bash fifo", dir) == Fingerprint("Bash", "{}", "bash nothing", dir) {
		t.Error("a command that names a FIFO has the fingerprint of another")
	}
}

package beside

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPanic: an event whose recording panics is removed, so that the next recorder does not meet it.
func TestPanic(t *testing.T) {
	file := filepath.Join(t.TempDir(), "1-1-claude-code.event")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() {
		err, _ := recover().(error)
		if err == nil || !strings.Contains(err.Error(), `event "Stop" was not recorded: runtime error`) {
			t.Errorf("panic %v", err)
		}
		if _, err := os.Lstat(file); err == nil {
			t.Error("the event still waits")
		}
	}()
	_ = new(place).recordFile(t.Context(), file, &event{Name: "Stop"}) // it has no task
}

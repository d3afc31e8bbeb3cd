//go:build unix

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// goEnv asks the Go tool, so that scripts with a HOME of their own share the
// build cache.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatalf("go env %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

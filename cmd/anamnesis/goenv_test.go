//go:build unix

package main

import (
	"encoding/json"
	"os/exec"
	"sync"
	"testing"
)

// goEnv asks the Go tool once, so that scripts with a HOME of their own share the
// build cache.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	values, err := goVariables()
	if err != nil {
		t.Fatalf("go env: %v", err)
	}
	return values[name]
}

var goVariables = sync.OnceValues(func() (values map[string]string, err error) {
	out, err := exec.Command("go", "env", "-json").Output()
	if err == nil {
		err = json.Unmarshal(out, &values)
	}
	return values, err
})

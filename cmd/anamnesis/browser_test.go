//go:build unix

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// storyLimit bounds one story in a browser.
const storyLimit = 4 * time.Minute

// startServe runs `anamnesis serve` over what stands in home and gives the
// address it prints. The server is asked to end with the test, and must.
func startServe(t *testing.T, home string, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"serve"}, args...)...)
	cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+home, "HOME="+home)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Errorf("the server had ended: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve, told to end: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(line), "open ")
	if err != nil || !found {
		t.Fatalf("serve said %q (%v), not its address", line, err)
	}
	return url
}

// browse tells a story of cmd/internal/page/testdata/browser in headless
// Chromium, with arguments of its own, and gives what it prints.
func browse(t *testing.T, story, url string, args map[string]any) string {
	t.Helper()
	modules := counterpart(t, "ANAMNESIS_BROWSER", "the npm packages playwright-core and axe-core")
	all := map[string]any{"url": url, "chromium": cmp.Or(os.Getenv("ANAMNESIS_CHROMIUM"), "/usr/bin/chromium")}
	for name, value := range args {
		all[name] = value
	}
	given, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), storyLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join("..", "internal", "page", "testdata", "browser", story))
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules, "BROWSER_ARGS="+string(given))
	var faults strings.Builder
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", story, err, out, faults.String())
	}
	return string(out)
}

func TestBrowserDoor(t *testing.T) {
	browse(t, "door.cjs", startServe(t, t.TempDir()), nil)
}

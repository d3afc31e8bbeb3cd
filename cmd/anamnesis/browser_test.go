//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// screenshots has the stories take the README's pictures:
// go test ./cmd/anamnesis -run TestBrowser -screenshots ../../docs/img
var screenshots = flag.String("screenshots", "", "write the pictures of the pages into this directory")

// storyLimit bounds one story in a browser.
const storyLimit = 4 * time.Minute

// browse tells a story of cmd/internal/page/testdata/browser in headless
// Chromium, with arguments of its own, and returns what it prints.
func browse(t *testing.T, story, url string, args map[string]any) string {
	t.Helper()
	modules := counterpart(t, "ANAMNESIS_BROWSER", "the npm packages playwright-core and axe-core")
	all := map[string]any{
		"url": url, "screenshots": *screenshots,
		"chromium": cmp.Or(os.Getenv("ANAMNESIS_CHROMIUM"), "/usr/bin/chromium"),
	}
	maps.Copy(all, args)
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
	t.Parallel()
	browse(t, "door.cjs", startServe(t, t.TempDir()), nil)
}

//go:build unix

package tui

import (
	"os"
	"strings"
	"testing"
)

// TestGuideNamesVerbs: the guide of the terminal names each slash command with its arguments.
func TestGuideNamesVerbs(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/terminal.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verbs() {
		if want := "`" + strings.TrimSpace(v.name+" "+v.args) + "`"; !strings.Contains(string(guide), want) {
			t.Errorf("docs/guides/terminal.md lacks %s", want)
		}
	}
}

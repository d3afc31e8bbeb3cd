package agent

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/tool"
)

// Unread names, in one line for the user, what a user's home and a directory have for Claude Code that this program
// does not read, with what to do; empty: nothing. config is the user's file of settings.
func Unread(home, dir, config string) string {
	var said []string
	dirs := []string{home}
	for _, d := range ProjectDirs(dir) {
		if d != home {
			dirs = append(dirs, d)
		}
	}
	for _, d := range dirs {
		at, from := filepath.Join(d, ".claude"), ""
		if d == home {
			from = "~/"
		}
		for _, name := range []string{"settings.json", "settings.local.json"} {
			var settings struct{ Hooks map[string]any }
			data, _ := durable.ReadFile(filepath.Join(at, name), maxInstructionFile)
			if json.Unmarshal(data, &settings); len(settings.Hooks) > 0 {
				said = append(said, fmt.Sprintf("hooks in %s (copy the block \"hooks\" to %s; docs/guides/hooks.md)", filepath.Join(at, name), config))
			}
		}
		if found, _ := fs.Glob(os.DirFS(at), "rules/*.md"); len(found) > 0 {
			said = append(said, fmt.Sprintf("%s/rules (import each in AGENTS.md: @%s.claude/%s)", at, from, found[0]))
		}
		if found, _ := fs.Glob(os.DirFS(at), "agents/*.md"); len(found) > 0 {
			said = append(said, at+"/agents (docs/guides/agents.md has the form of agents here)")
		}
	}
	if len(said) == 0 {
		return ""
	}
	return tool.Visible("of Claude Code's files, these are not read: " + strings.Join(said, ", "))
}

package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"anamnesis/orchestrator/tool"
)

// Unread names, in one line for the user, what a user's home and a directory have for Claude Code that this program
// does not read, with what to do; empty: nothing. config is the user's file of settings.
func Unread(home, dir, config string) string {
	var unread []string
	for _, d := range append([]string{home}, ProjectDirs(dir)...) {
		for _, k := range [][3]string{
			{"settings*.json", `"hooks"\s*:\s*\{\s*"`, `: copy its "hooks" to ` + config + " (docs/guides/hooks.md)"},
			{"rules/*.md", "", ": name each in your instruction file, as @.claude/rules/NAME.md"},
			{"agents/*.md", "", ": docs/guides/agents.md has the form of agents here"},
		} {
			found, _ := fs.Glob(os.DirFS(d), ".claude/"+k[0])
			for _, name := range found {
				data, _ := fs.ReadFile(os.DirFS(d), name)
				line := filepath.Join(d, name) + k[2] // which the home has twice if it is one of the directories
				if !slices.Contains(unread, line) && regexp.MustCompile(k[1]).Match(data) {
					unread = append(unread, line)
					break
				}
			}
		}
	}
	if len(unread) == 0 {
		return ""
	}
	return tool.Visible("of Claude Code's files, these are not read: " + strings.Join(unread, "; "))
}

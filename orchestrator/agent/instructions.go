package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// Limits of instructions.
const (
	// MaxInstructionBytes bounds the instructions of all directories together.
	MaxInstructionBytes = 32 << 10
	maxInstructionDirs  = 64 // from the repository's root down
	maxFittings         = 16 // tries at making them fit
	// maxNestedBytes bounds what one call adds of directories below the task's.
	maxNestedBytes = 8 << 10
)

// InstructionPlaceholder is the place of the instructions in a prompt. An agent without it gets none.
const InstructionPlaceholder = "${AGENTS_MD}"

// instructionNames are the files that may hold a directory's instructions: of each list the first that exists is used.
func instructionNames() [][]string {
	return [][]string{{"AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"}, {"CLAUDE.local.md"}}
}

// Instructions are a repository's instructions for agents.
type Instructions struct {
	// Text is what the model is shown, with the files' paths; empty if there are none.
	Text string
	// Files are the files found, from the repository's root down to the directory.
	Files []op.SourceFile
	// Faults are one line for each file that could not be read.
	Faults []string
}

// ReadInstructions collects the instructions of the user's folders, and of a directory and those above it up to the
// repository's root: AGENTS.md, or else CLAUDE.md, then CLAUDE.local.md, and before each what it imports. The text
// lists the user's, then those from the root down; the last get room first. The text is at most MaxInstructionBytes,
// and, if count is not nil, at most maxTokens as count says. It names what it omits.
func ReadInstructions(own []string, dir string, maxTokens int, count func(string) int) Instructions {
	dirs := ProjectDirs(dir)
	r := &reader{own: own, root: dirs[0], seen: map[string]bool{}}
	for i, d := range append(own[:len(own):len(own)], dirs...) {
		r.readDir(d, i < len(own))
	}
	out, texts := r.found, r.texts
	limit := MaxInstructionBytes
	for range maxFittings {
		out.Text = renderInstructions(out.Files, texts, limit)
		if count == nil || out.Text == "" {
			return out
		}
		n := count(out.Text)
		if n <= maxTokens {
			return out
		}
		limit = min(limit*9/10, limit*maxTokens/n)
	}
	out.Text = renderInstructions(out.Files, texts, 0)
	return out
}

// ProjectDirs lists a directory and its parents, the repository's root first. Without a
// repository it is the directory alone.
func ProjectDirs(dir string) []string {
	var dirs []string
	for d := dir; len(dirs) < maxInstructionDirs; d = filepath.Dir(d) {
		dirs = append(dirs, d)
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			slices.Reverse(dirs)
			return dirs
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	return []string{dir}
}

// Nested returns the instructions of the directories between a task's directory and files in it, the
// nearest last. known has the directories that were looked at; they are added.
func Nested(dir string, paths []string, known map[string]bool) string {
	var below []string
	for _, p := range paths {
		d := filepath.Dir(filepath.FromSlash(p))
		for ; d != "." && filepath.IsLocal(d) && !known[d]; d = filepath.Dir(d) {
			known[d], below = true, append(below, d)
		}
	}
	slices.Sort(below)
	r := &reader{root: ProjectDirs(dir)[0], seen: map[string]bool{}}
	for _, d := range below {
		r.readDir(filepath.Join(dir, d), false)
	}
	return renderInstructions(r.found.Files, r.texts, maxNestedBytes)
}

func renderInstructions(files []op.SourceFile, texts []string, limit int) string {
	parts := make([]string, len(files))
	for i := len(files) - 1; i >= 0; i-- { // the nearest first
		text := texts[i]
		if text == "" {
			continue
		}
		if len(text) > limit {
			cut := quote.RuneStart(text, limit)
			if line := strings.LastIndexByte(text[:cut], '\n'); line > cut/2 {
				cut = line
			}
			text = strings.TrimSpace(fmt.Sprintf("%s\n[%d of %d bytes left out]", text[:cut], len(text)-cut, len(text)))
			limit = cut
		}
		limit -= min(limit, len(texts[i]))
		parts[i] = fmt.Sprintf("--- %s\n%s", tool.Visible(files[i].Path), text)
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	if len(parts) == 0 {
		return ""
	}
	return "What the people who work here tell agents. Where two of these disagree, the later one counts; what the " +
		"user says in this task counts more.\n\n" +
		strings.Join(parts, "\n\n")
}

// Limits of a listing.
const (
	maxListed    = 100
	maxListedLen = 120 // bytes of a name
)

// Listing lists a directory, one name a line, directories with a slash. Names are quoted so
// that none can pass for other text.
func Listing(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("list %s: %w", dir, err)
	}
	if len(entries) == 0 {
		return "(nothing)", nil
	}
	var sb strings.Builder
	for i, e := range entries {
		if i == maxListed {
			fmt.Fprintf(&sb, "(and %d more)", len(entries)-i)
			break
		}
		name := strings.ReplaceAll(tool.Visible(e.Name()), "\n", `\n`)
		if len(name) > maxListedLen {
			name = quote.CutBytes(name, maxListedLen) + "…"
		}
		if e.IsDir() {
			name += "/"
		}
		sb.WriteString(name + "\n")
	}
	return strings.TrimSpace(sb.String()), nil
}

package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"anamnesis/knowledge_base/handout"
	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/mention"
	"anamnesis/orchestrator/tool"
)

// Limits of files of instructions.
const (
	maxInstructionFile = 1 << 20 // of one that is read; a larger one is named
	maxImportDepth     = 5       // as in Claude Code
	maxImports         = 64
)

// code matches markdown's code blocks and spans, in which nothing is imported.
var code = regexp.MustCompile("(?ms)^[ \t]*```.*?(?:^[ \t]*```|\\z)|^[ \t]*~~~.*?(?:^[ \t]*~~~|\\z)|``.+?``|`[^`]+`")

// reader reads files of instructions and those that they import with @path, each once.
type reader struct {
	own   []string // the user's folders
	root  string   // of the project
	seen  map[string]bool
	found Instructions
	texts []string // of found.Files
}

func (r *reader) readDir(dir string, own bool) {
	for _, names := range instructionNames() {
		for i := 0; i < len(names) && !r.read(dir, names[i], own, 0); i++ {
		}
	}
}

// read reads a file, after those that it imports. It follows no link out of dir, unless the file is the user's own. It
// reports whether there is such a file.
func (r *reader) read(dir, name string, own bool, depth int) bool {
	path := filepath.Join(dir, name)
	if r.seen[path] {
		return true
	}
	data, err := durable.ReadWithin(dir, name, maxInstructionFile)
	if own { // a link leads to where the user keeps it
		data, err = durable.ReadFile(path, maxInstructionFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		r.fail("%s: %s", path, readFault(err))
		return true
	}
	r.seen[path] = true
	text := handout.Strip(strings.ToValidUTF8(string(data), "\uFFFD")) // its cards are recalled separately
	for _, f := range mention.Files(filepath.Dir(path), code.ReplaceAllString(text, " ")) {
		if f.At && depth < maxImportDepth && len(r.seen) < maxImports {
			r.importFile(path, f, own, depth+1)
		}
	}
	sum := sha256.Sum256(data) // after its imports: where they disagree, it counts
	r.found.Files = append(r.found.Files, op.SourceFile{Path: path, Hash: hex.EncodeToString(sum[:]), Bytes: len(data)})
	r.texts = append(r.texts, strings.TrimSpace(text))
	return true
}

func (r *reader) fail(format string, args ...any) {
	r.found.Faults = append(r.found.Faults, fmt.Sprintf(format, args...))
}

// importFile reads a file that the file from names. What a project brings imports from the project, and markdown from
// the user's folders.
func (r *reader) importFile(from string, f mention.File, own bool, depth int) {
	if tool.SecretFile(f.Word, nil) || tool.SecretFile(f.Real, nil) {
		r.fail("%s: @%s looks like a file of secrets", from, f.Word)
		return
	}
	if own {
		r.read(filepath.Dir(f.Real), filepath.Base(f.Real), true, depth)
		return
	}
	for i, root := range append([]string{r.root}, r.own...) {
		root, err := filepath.EvalSymlinks(root)
		rel, outside := filepath.Rel(root, f.Real)
		if err == nil && outside == nil && filepath.IsLocal(rel) && (i == 0 || filepath.Ext(rel) == ".md") {
			r.read(root, rel, false, depth)
			return
		}
	}
	r.fail("%s: @%s is outside of %s; name it in an instruction file of your own", from, f.Word, r.root)
}

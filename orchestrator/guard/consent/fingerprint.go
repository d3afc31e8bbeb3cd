package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/guard/approval"
)

// maxScriptBytes is how much of a script a fingerprint covers.
const maxScriptBytes = 16 << 20

// Fingerprint identifies what a user approves: the tool, its arguments byte for byte, and the
// bytes of the scripts that its command line names, relative to dir. Two calls with the same
// one run the same.
func Fingerprint(tool, args, line, dir string) string {
	h := sha256.New()
	part := func(s string) {
		sum := sha256.Sum256([]byte(s))
		h.Write(sum[:])
	}
	part(tool)
	part(args)
	for _, script := range scripts(line, dir) {
		part(script)
		sum := sha256.New()
		if f, err := os.OpenFile(script, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil { // do not wait for a FIFO
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				if _, err := io.Copy(sum, io.LimitReader(f, maxScriptBytes)); err != nil {
					part(err.Error())
				}
			}
			f.Close()
		}
		h.Write(sum.Sum(nil))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// scripts lists the files that a line runs by name: programs given with a path, and the first
// file of a shell or an interpreter.
func scripts(line, dir string) []string {
	if line == "" {
		return nil
	}
	commands, _ := shell.Parse(line) // what can be parsed
	var out []string
	add := func(w shell.Word) {
		if path := absolute(w.Text, dir); !w.Dynamic && w.Text != "" && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	for _, s := range commands {
		if len(s.Words) == 0 {
			continue
		}
		if strings.Contains(s.Words[0].Text, "/") {
			add(s.Words[0])
		}
		program := s.Program()
		if approval.Interprets(program) || approval.IsShell(program) || program == "." || program == "source" {
			i := slices.IndexFunc(s.Args(), func(w shell.Word) bool { return !strings.HasPrefix(w.Text, "-") })
			if i >= 0 {
				add(s.Args()[i])
			}
		}
	}
	return out
}

// absolute returns a path as a program in dir sees it.
func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

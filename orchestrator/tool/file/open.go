// Package file has the tools that read and change single files: ReadFile, WriteFile,
// StrReplaceFile, Patch. They work inside the world only, through os.Root; see
// tool.Env.Resolve and tool.Env.OpenDir for the path rules.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"anamnesis/orchestrator/tool"
)

// The limits of the file tools.
const (
	MaxLines     = 1_000     // lines one ReadFile shows
	MaxBytes     = 100 << 10 // bytes one ReadFile shows
	MaxLineRunes = 2_000     // characters shown of a line
	// MaxReadBytes is the largest file ReadFile reads, and MaxEditBytes the largest that is
	// changed or appended to.
	MaxReadBytes = 256 << 20
	MaxEditBytes = 32 << 20
)

// binaryProbe is how many bytes decide whether a file is binary, as in git.
const binaryProbe = 8000

// target is a resolved file with its directory held open, so that operations on dir and base
// affect exactly this path.
type target struct {
	rel  string // relative to the world, links resolved
	base string
	dir  *os.Root
	info fs.FileInfo // nil when there is no such file
}

func (t *target) close() { t.dir.Close() }

// locate resolves a path and opens its directory. An existing file must be a regular one whose
// names are all in the world. The error is for the model.
func locate(env *tool.Env, name string, parents tool.Parents) (*target, error) {
	rel, err := env.Resolve(name)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, "/") || rel == "." {
		return nil, &tool.PathError{Path: name, Reason: "is a directory, not a file"}
	}
	dir, err := env.OpenDir(path.Dir(rel), parents)
	if err != nil {
		return nil, err
	}
	t := &target{rel: rel, base: path.Base(rel), dir: dir}
	info, err := dir.Lstat(t.base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, nil
	case err != nil:
		t.close()
		return nil, t.fault(err)
	}
	if reason := notRegular(info.Mode()); reason != "" {
		t.close()
		return nil, &tool.PathError{Path: rel, Reason: reason}
	}
	if env.Stray(info)[0] {
		t.close()
		return nil, &tool.PathError{Path: rel, Reason: tool.StrayRefusal}
	}
	t.info = info
	return t, nil
}

// notRegular names the kind of a file that no tool opens.
func notRegular(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return ""
	case m.IsDir():
		return "is a directory, not a file; use Glob to list it"
	case m&fs.ModeSymlink != 0:
		return "was changed by something else while it was used; try again"
	case m&fs.ModeNamedPipe != 0:
		return "is a named pipe, not a regular file"
	case m&fs.ModeSocket != 0:
		return "is a socket, not a regular file"
	case m&fs.ModeDevice != 0:
		return "is a device, not a regular file"
	}
	return "is not a regular file"
}

func (t *target) errorf(format string, args ...any) error {
	return &tool.PathError{Path: t.rel, Reason: fmt.Sprintf(format, args...)}
}

// fault turns a system's error into one about this file.
func (t *target) fault(err error) error { return tool.SystemError(t.rel, err) }

// open opens the file for reading. It must still be the located one; opening never blocks,
// even if the file was replaced.
func (t *target) open() (*os.File, error) {
	f, err := t.dir.OpenFile(t.base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, t.fault(err)
	}
	now, err := f.Stat()
	if err != nil || !os.SameFile(now, t.info) {
		f.Close()
		return nil, t.errorf("was changed by something else while it was used; try again")
	}
	return f, nil
}

// readAll reads a file for a change, at most MaxEditBytes.
func (t *target) readAll() ([]byte, error) {
	if t.info.Size() > MaxEditBytes {
		return nil, t.errorf("is %d bytes, files over %d are not changed by this tool; use Bash",
			t.info.Size(), MaxEditBytes)
	}
	f, err := t.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxEditBytes+1))
	if err != nil {
		return nil, t.fault(err)
	}
	if len(data) > MaxEditBytes {
		return nil, t.errorf("grew while it was read; try again")
	}
	return data, nil
}

func missing(rel string) error {
	return &tool.PathError{Path: rel, Reason: "does not exist; use Glob to find files"}
}

// binaryKind names the kind of a binary file by its first bytes; empty for text.
func binaryKind(head []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	signed := slices.Contains([]string{"application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp"}, kind)
	if !signed && bytes.IndexByte(head[:min(len(head), binaryProbe)], 0) < 0 {
		return ""
	}
	return kind
}

func result(verb string, err error) tool.Result {
	return tool.Errorf("%s: %v.", verb, err)
}

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/retrieval/remote"
	"anamnesis/orchestrator/taskdir"
)

// HomeRemedy is what to do about a home that cannot be used.
const HomeRemedy = "set ANAMNESIS_HOME to a folder that you may read and write"

// usableRoot returns why a folder, or the nearest one above it that exists, cannot
// hold the program's files. A folder that exists need not be writable: some callers
// only read.
func usableRoot(root string) error {
	if !utf8.ValidString(root) {
		return errors.New("its path is not UTF-8 text")
	}
	for at := root; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		var mode uint32 = unix.R_OK | unix.X_OK
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			if _, err := os.Lstat(at); err == nil {
				return fmt.Errorf("%s is a link to nothing", at)
			}
			continue
		case errors.Is(err, syscall.ENOTDIR) && at != filepath.Dir(at):
			continue
		case err != nil:
			return errors.New(plainCause(err))
		case !info.IsDir():
			return fmt.Errorf("%s is not a folder", at)
		case at != root:
			mode = unix.W_OK | unix.X_OK
		}
		if err := unix.Access(at, mode); err != nil {
			return fmt.Errorf("%s: %s", at, plainCause(err))
		}
		return nil
	}
}

// plainCause is an error of the system without the call and the path.
func plainCause(err error) string {
	var no syscall.Errno
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "no permission"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only"
	case errors.As(err, &no):
		return no.Error()
	}
	return err.Error()
}

// Embedder returns the model that the user's settings name for cards; nil is the
// built-in one.
func (s *Service) Embedder() (retrieval.Embedder, error) {
	e, err := remote.Load(s.Home.Embedder(), s.getenv)
	if err != nil {
		return nil, Usagef("%w", err)
	}
	if e == nil {
		return nil, nil
	}
	return e, nil
}

// HomeFault adds the remedy to an error of the file system about something in the home
// that may not be used, which no caller could foresee. Other errors it returns as they
// are.
func HomeFault(getenv func(string) string, err error) error {
	var fault *fs.PathError
	if !errors.As(err, &fault) {
		return err
	}
	h, unknown := taskdir.FindHome(getenv)
	if unknown != nil {
		return err
	}
	for _, cause := range []error{syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOTDIR} {
		in := func(root string) bool {
			rest, ok := strings.CutPrefix(fault.Path, root+"/")
			if first, _, _ := strings.Cut(rest, "/"); ok && cause == syscall.ENOTDIR {
				info, err := os.Stat(filepath.Join(root, first))
				return err != nil || !info.IsDir() // or else something deep within is damaged
			}
			return ok || fault.Path == root
		}
		if errors.Is(fault.Err, cause) && slices.ContainsFunc(h.Roots(), in) {
			return Usagef("%w; %s", err, HomeRemedy)
		}
	}
	return err
}

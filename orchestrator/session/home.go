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

	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/retrieval/remote"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/web"
)

// HomeRemedy is what to do about a home that cannot be used.
const HomeRemedy = "set ANAMNESIS_HOME to a folder that you may read and write"

// Embedder returns the embedding model that the user's settings name; nil if they name none.
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

// Web reads the user's settings of the network tools; without a file they are the defaults.
func (s *Service) Web() (web.Options, error) {
	o, err := web.Load(s.Home.Web(), s.getenv)
	if err != nil {
		return o, Usagef("%w", err)
	}
	o.Program = "anamnesis/" + s.o.Version
	return o, nil
}

// HomeFault adds the remedy to an unexpected permission error, or that of a full disk, about a file in the home.
// It returns other errors unchanged.
func HomeFault(getenv func(string) string, err error) error {
	fault, ok := errors.AsType[*fs.PathError](err)
	h, unknown := taskdir.FindHome(getenv)
	if !ok || unknown != nil {
		return err
	}
	notDir := errors.Is(fault.Err, syscall.ENOTDIR)
	in := func(root string) bool {
		rest, ok := strings.CutPrefix(fault.Path, root+"/")
		if first, _, _ := strings.Cut(rest, "/"); ok && notDir {
			info, err := os.Stat(filepath.Join(root, first))
			return err != nil || !info.IsDir() // otherwise something below it is damaged
		}
		return ok || fault.Path == root
	}
	switch {
	case !slices.ContainsFunc(h.Roots(), in):
	case errors.Is(fault.Err, syscall.ENOSPC) || errors.Is(fault.Err, syscall.EDQUOT):
		return fmt.Errorf("%w; make room there, then try again", err)
	case notDir || errors.Is(fault.Err, fs.ErrPermission) || errors.Is(fault.Err, syscall.EROFS):
		return Usagef("%w; %s", err, HomeRemedy)
	}
	return err
}

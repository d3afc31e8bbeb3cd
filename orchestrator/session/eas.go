package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"

	"anamnesis/anamnesis/attention"
	"anamnesis/orchestrator/guard/consent"
)

// EASProjectFile returns the path of a directory's own rows of the EAS table.
func EASProjectFile(dir string) string { return filepath.Join(dir, ".anamnesis", "eas.yaml") }

// ProjectEAS reads a directory's own rows, and returns the approval that they need to raise an EAS.
// Without a file, file is empty.
func ProjectEAS(dir string) (file attention.Overlay, needs consent.Approval, err error) {
	file, err = attention.ReadOverlay(EASProjectFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return attention.Overlay{}, needs, nil
	}
	real, dirErr := RealDir(dir)
	sum := sha256.Sum256(file.Data)
	needs = consent.Approval{Kind: "eas", Name: "eas.yaml", Dir: real, Hash: hex.EncodeToString(sum[:])}
	return file, needs, cmp.Or(err, dirErr)
}

// LoadEAS reads the built-in table, the user's own file over it, if own is not empty, and the rows
// of a directory, which raise no EAS without an approval. Errors: *UsageError.
func LoadEAS(builtin []byte, own string, trust *consent.Trust, dir string) (*attention.Table, error) {
	mine, err := attention.ReadOverlay(own)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	project, needs, projectErr := ProjectEAS(dir)
	approved, trustErr := trust.Approved(needs)
	var t *attention.Table
	if err = cmp.Or(err, projectErr, trustErr); err == nil {
		project.Lowers = !approved
		t, err = attention.LoadTable(builtin, mine, project)
	}
	if err != nil {
		return nil, &UsageError{err}
	}
	return t, nil
}

// EAS looks a model up in the EAS table of a directory.
func (s *Service) EAS(dir, lookup string) (attention.EAS, error) {
	table, err := s.EASTable(dir)
	if err != nil {
		return attention.EAS{}, err
	}
	return table.Lookup(lookup), nil
}

// EASTable returns the EAS table of a directory.
func (s *Service) EASTable(dir string) (*attention.Table, error) {
	return LoadEAS(s.o.EAS, s.Home.EASOverlay(), consent.OpenTrust(s.Home.Approvals()), dir)
}

// knownModel reports whether a directory's EAS table, read on first use, has a model. If it
// cannot be read, no model is known.
func (s *Service) knownModel(dir string) func(string) bool {
	table := sync.OnceValues(func() (*attention.Table, error) { return s.EASTable(dir) })
	return func(name string) bool { t, err := table(); return err == nil && t.Lookup(name).Known }
}

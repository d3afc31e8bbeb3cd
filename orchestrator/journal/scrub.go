package journal

import (
	"errors"
	"fmt"
	"path/filepath"

	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/taskdir"
)

// Scrubber redacts operations that another program recorded, as a task redacts its own. Its
// markers use the key of the vault beside the stream, which it creates if there is none, so
// that equal secrets have equal markers. It belongs to the holder of the stream's lock, and to
// one goroutine.
type Scrubber struct {
	vault    *Vault
	learned  redact.Learned
	redactor *redact.Redactor
}

// OpenScrubber opens the vault of the stream in dir. The caller holds the
// stream open for writing, and closes the Scrubber.
func OpenScrubber(dir string, secrets []redact.Secret) (*Scrubber, error) {
	v, err := OpenVault(filepath.Join(dir, taskdir.VaultName))
	if err != nil {
		return nil, err
	}
	s := &Scrubber{vault: v}
	s.learned.Add(v.Learned...)
	s.redactor = redact.NewLearning(v.Key, secrets, &s.learned)
	return s, nil
}

// Body returns an operation's body with its secrets replaced by markers, without a file of
// origin in the vault. It examines every string, including names and keys. What is not JSON is
// returned unchanged: the stream rejects it with the reason.
func (s *Scrubber) Body(body []byte) ([]byte, error) {
	var addErr error
	out, _, err := s.redactor.JSON(body, &redact.JSONOptions{Nested: []string{"args"}, Found: func(_ []string, f redact.Found) {
		addErr = errors.Join(addErr, s.vault.Add(f.Marker, "", ""))
	}})
	if err != nil {
		return body, nil
	}
	if addErr = errors.Join(addErr, s.vault.Learn(&s.learned)); addErr != nil {
		return nil, fmt.Errorf("redact: %w", addErr)
	}
	return out, nil
}

// Close closes the vault.
func (s *Scrubber) Close() error { return s.vault.Close() }

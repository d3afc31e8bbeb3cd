package journal

import (
	"errors"
	"fmt"
	"path/filepath"

	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/taskdir"
)

// Scrubber redacts the operations that another program has recorded in a
// stream, as a Task does its own. Markers are made with the key of the vault
// beside the stream, so that equal secrets have equal markers whoever records
// them; where there is no vault one is made. It belongs to who holds the
// stream's lock, and to one goroutine.
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

// Body returns an operation's body with markers in the place of its secrets,
// which the vault knows to come from no file. Every string may hold one, names
// and keys included. What is no JSON comes back as it is: the stream refuses it
// and says why.
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

// Close ends the hold on the vault.
func (s *Scrubber) Close() error { return s.vault.Close() }

package orchestrator

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"anamnesis/orchestrator/redact"
)

// Scrubber redacts the operations that another program has recorded in a
// stream, as a Task does its own. Markers are made with the key of the vault
// beside the stream, so that equal secrets have equal markers whoever records
// them; where there is no vault one is made. It belongs to who holds the
// stream's lock, and to one goroutine.
type Scrubber struct {
	vault    *vault
	learned  redact.Learned
	redactor *redact.Redactor
}

// OpenScrubber opens the vault of the stream in dir. The caller holds the
// stream open for writing, and closes the Scrubber.
func OpenScrubber(dir string, secrets []redact.Secret) (*Scrubber, error) {
	v, err := openVault(filepath.Join(dir, vaultName))
	if err != nil {
		return nil, err
	}
	s := &Scrubber{vault: v}
	s.learned.Add(v.learned...)
	s.redactor = redact.NewLearning(v.key, secrets, &s.learned)
	return s, nil
}

// Body gives an operation's body with markers in the place of its secrets,
// which the vault knows to come from no file. Every string may hold one, names
// and keys included. What is no JSON comes back as it is: the stream refuses it
// and says why.
func (s *Scrubber) Body(body []byte) ([]byte, error) {
	var addErr error
	out, _, err := s.redactor.JSON(body, &redact.JSONOptions{Nested: []string{"args"}, Found: func(_ []string, f redact.Found) {
		addErr = errors.Join(addErr, s.vault.add(f.Marker, "", ""))
	}})
	if err != nil {
		return body, nil
	}
	if addErr = errors.Join(addErr, s.vault.learn(&s.learned)); addErr != nil {
		return nil, fmt.Errorf("redact: %w", addErr)
	}
	return out, nil
}

// Close ends the hold on the vault.
func (s *Scrubber) Close() error { return s.vault.close() }

// CardRedaction takes secrets out of cards. The markers are made with a key that
// is kept beside the tasks, made when the first secret is found; where it cannot
// be kept they are this process's own. What is recognised is added to learned and
// found in other forms from then on; nil: it is not.
func (h Home) CardRedaction(secrets []redact.Secret, learned *redact.Learned) func(text string) (redacted string, markers []string) {
	found := redact.NewLearning(nil, secrets, learned)
	keyed := sync.OnceValue(func() *redact.Redactor { return redact.NewLearning(h.cardKey(), secrets, learned) })
	return func(text string) (string, []string) {
		if _, any := found.Text(text); len(any) == 0 {
			return text, nil
		}
		return keyed().Markers(text)
	}
}

func (h Home) cardKey() []byte {
	path := filepath.Join(h.Data, "cards.key")
	key, err := os.ReadFile(path)
	if err == nil && len(key) == redact.KeyBytes {
		return key
	}
	key = make([]byte, redact.KeyBytes)
	rand.Read(key) // never fails
	if os.MkdirAll(h.Data, 0o700) == nil {
		_ = os.WriteFile(path, key, 0o600) // without it the next process has other markers
	}
	return key
}

package taskdir

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"sync"

	"anamnesis/orchestrator/redact"
)

// CardRedaction returns a function that redacts cards. Its markers use a key beside the tasks,
// made when the first secret is found; if it cannot be stored, the markers are valid in this
// process only. Recognised secrets are added to learned, if it is not nil, and then found in
// other forms as well.
func (h Home) CardRedaction(secrets []redact.Secret, learned *redact.Learned) func(text string) (
	redacted string, markers []string) {
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

package taskdir

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"sync"

	"anamnesis/orchestrator/redact"
)

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

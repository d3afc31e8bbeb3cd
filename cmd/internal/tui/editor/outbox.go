//go:build unix

package editor

import (
	"slices"
	"strings"
	"sync"
)

// Outbox holds the messages that the user has queued. The task takes them with its next
// request; until then they can be taken back.
type Outbox struct {
	mu    sync.Mutex
	texts []string
}

// Add queues a message.
func (b *Outbox) Add(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.texts = append(b.texts, text)
}

// List returns the messages, the oldest first.
func (b *Outbox) List() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.texts)
}

// Last takes the newest message back.
func (b *Outbox) Last() (text string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.texts)
	if n == 0 {
		return "", false
	}
	text, b.texts = b.texts[n-1], b.texts[:n-1]
	return text, true
}

// Take returns all messages as one text and empties the outbox.
func (b *Outbox) Take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.Join(b.texts, "\n\n")
	b.texts = nil
	return text
}

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
	mu     sync.Mutex
	texts  []string
	beside []string // goes with the next message that is sent
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

// Attach adds a text to the next message that is sent.
func (b *Outbox) Attach(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beside = append(b.beside, text)
}

// With returns a message with the attached texts, which are then sent. Without a message it is
// empty, and they stay.
func (b *Outbox) With(text string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text == "" {
		return ""
	}
	text = strings.Join(append([]string{text}, b.beside...), "\n\n")
	b.beside = nil
	return text
}

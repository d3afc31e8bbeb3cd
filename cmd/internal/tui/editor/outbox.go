//go:build unix

package editor

import (
	"fmt"
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

// Drain returns all messages as one text and empties the outbox.
func (b *Outbox) Drain() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.Join(b.texts, "\n\n")
	b.texts = nil
	return text
}

// ran begins what is sent about a command of the user.
const ran = "I ran `"

// Attach adds a command that the user ran, with how it ended and its output, to the next message
// that is sent.
func (b *Outbox) Attach(line, how, output string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beside = append(b.beside, fmt.Sprintf(ran+"%s` (%s):\n```\n%s\n```", line, how, strings.TrimRight(output, "\n")))
}

// Typed returns a sent message without the commands that were attached to it.
func Typed(text string) string {
	text, _, _ = strings.Cut(text, "\n\n"+ran)
	return text
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

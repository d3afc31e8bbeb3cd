package vectors

import (
	"crypto/sha256"
	"time"
)

// Document is one text to be found.
type Document struct {
	ID      string
	Created time.Time         // the built-in embedder learns from the oldest
	Hash    [sha256.Size]byte // of the text
	Text    func() string     // always the same; not called where what is known of the text is enough
}

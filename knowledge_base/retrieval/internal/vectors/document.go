package vectors

import "crypto/sha256"

// Document is one text to be found.
type Document struct {
	ID   string
	Hash [sha256.Size]byte // of the text
	Text func() string     // always the same; not called where what is known of the text is enough
}

package redact

import (
	"io"
	"strings"
)

const (
	// MaxHeldBytes is the most a Writer holds back. A secret that is longer
	// is not recognised.
	MaxHeldBytes = 16 << 10
	// heldFields is how many words at the end may yet turn out to belong to a
	// secret: no pattern is made of more.
	heldFields = 5
)

// Writer redacts a text that comes in pieces. It writes what it is sure of and
// holds back the last words, in which a secret may have begun. Whatever the
// pieces, what it writes up to Close is what Text gives for the whole, as long
// as no secret is longer than MaxHeldBytes. It is not safe for concurrent use.
type Writer struct {
	r     *Redactor
	w     io.Writer
	held  string
	inKey bool
}

// NewWriter gives a Writer in front of w.
func (r *Redactor) NewWriter(w io.Writer) *Writer { return &Writer{r: r, w: w} }

// Write takes the next piece. An error is w's.
func (w *Writer) Write(p []byte) (int, error) {
	w.held += string(p)
	if err := w.flush(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what was held back. It does not close the writer behind.
func (w *Writer) Close() error { return w.flush(true) }

// flush writes the part of the held text in which every secret is known.
func (w *Writer) flush(all bool) error {
	ms, end := w.r.find(w.held, w.inKey)
	cut := len(w.held)
	if !all {
		cut = w.safe(ms, end)
	}
	if cut == 0 {
		return nil
	}
	var out strings.Builder
	at := 0
	for _, m := range ms {
		if m.start >= cut {
			break
		}
		out.WriteString(w.held[at:m.start])
		out.WriteString(w.r.marker(m))
		at = m.end
	}
	out.WriteString(w.held[at:cut])
	w.held = w.held[cut:]
	w.inKey = end.inKey && !all && end.keyFrom < cut
	_, err := io.WriteString(w.w, out.String())
	return err
}

// safe gives how much of the held text can be written: up to the last words,
// a known value that has begun, or a private key that has not ended, and never
// within a secret.
func (w *Writer) safe(ms []match, end scanEnd) int {
	if len(w.held) > MaxHeldBytes {
		return len(w.held) // what is found is redacted, and the rest begins anew
	}
	cut := min(lastFields(w.held, heldFields), len(w.held)-end.partial)
	if end.keyFrom >= 0 {
		cut = min(cut, end.keyFrom)
	}
	for again := true; again; {
		was := cut
		// Between words: what a word begins with decides what it is.
		cut = wordBegin(w.held, cut)
		for _, m := range ms {
			if m.from < cut && m.end > cut {
				cut = m.from
			}
		}
		for _, k := range end.keys {
			if k.from < cut && k.to > cut {
				cut = k.from
			}
		}
		again = cut != was
	}
	return cut
}

// wordBegin gives where the word that holds byte at begins.
func wordBegin(s string, at int) int {
	for at > 0 && s[at-1] > ' ' {
		at--
	}
	return at
}

// lastFields gives where the last n words of a text begin, the blanks between
// them included; 0 when there are not more.
func lastFields(s string, n int) int {
	i := len(s)
	for range n {
		for i > 0 && s[i-1] > ' ' {
			i--
		}
		if i == 0 {
			return 0
		}
		for i > 0 && s[i-1] <= ' ' {
			i--
		}
	}
	for i > 0 && s[i-1] > ' ' {
		i--
	}
	return i
}

package redact

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"unicode"
)

const (
	// MaxHeldBytes is the most that a Writer holds back. A longer secret is not recognised.
	MaxHeldBytes = 16 << 10
	// heldFields is the number of words at the end that may still belong to a secret: no
	// pattern has more. A line of a cookie file has seven, of which the last n and the one before are held.
	heldFields = 6
)

// Writer redacts a text that arrives in pieces. It writes the part that is certain and holds
// back the last words, in which a secret may have begun. Up to Close it writes the same as Text
// returns for the whole, if no secret is longer than half of MaxHeldBytes. It is not safe for
// concurrent use.
type Writer struct {
	// Found, if set before the first Write, is called with each secret.
	Found func(Found)

	r     *Redactor
	w     io.Writer
	held  string
	shown int // bytes of held that Now has written
	inKey bool
	out   []byte // of flush, used again
}

// NewWriter returns a Writer in front of w.
func (r *Redactor) NewWriter(w io.Writer) *Writer { return &Writer{r: r, w: w} }

// Write redacts the next piece. An error is w's.
func (w *Writer) Write(p []byte) (int, error) {
	w.held += string(p)
	if err := w.flush(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what was held back. It does not close the underlying writer.
func (w *Writer) Close() error {
	err := w.flush(true)
	w.inKey = false
	return err
}

// Lines writes the held lines that are complete, for a reader that waits for them. Only a
// private key continues after a line's end.
func (w *Writer) Lines() error { return w.end(strings.LastIndexByte(w.held, '\n') + 1) }

// Now writes what a user who watches can be shown: complete lines, a carriage return ending one,
// and of an incomplete line the complete words and a bar or dots at its end. Of a secret that
// later words reveal, only what Now has not written is replaced.
func (w *Writer) Now() error {
	if err := w.end(strings.LastIndexAny(w.held, "\r\n") + 1); err != nil {
		return err
	}
	ms, end := w.r.find(w.held, w.inKey)
	n := len(w.held)
	readable := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	if word := wordBegin(w.held, n); strings.ContainsFunc(w.held[word:], readable) {
		n = word
	}
	n = min(n, len(w.held)-end.partial, end.keyFrom, end.open)
	if len(ms) > 0 {
		n = min(n, ms[0].from)
	}
	if n = before(n, nil, end.keys); n <= w.shown || w.inKey {
		return nil
	}
	_, err := io.WriteString(w.w, w.held[w.shown:n])
	w.shown = n
	return err
}

// end writes the first n held bytes as the end of a text.
func (w *Writer) end(n int) error {
	rest := w.held[n:]
	w.held = w.held[:n]
	err := w.flush(true)
	w.held = rest
	return err
}

// flush writes the part of the held text in which every secret is known, or all of it.
func (w *Writer) flush(all bool) error {
	ms, end := w.r.find(w.held, w.inKey)
	cut := len(w.held)
	if !all {
		cut = w.safe(ms, end)
	}
	if cut == 0 {
		return nil
	}
	out, at := w.out[:0], 0
	for _, m := range ms {
		if m.start >= cut {
			break
		}
		f := Found{Marker: w.r.marker(m), Bytes: w.held[m.start:m.end]}
		if w.Found != nil {
			w.Found(f)
		}
		out = append(out, w.held[max(at, min(w.shown, m.start)):m.start]...)
		out = append(out, f.Marker...)
		at = m.end
	}
	w.out = append(out, w.held[min(cut, max(at, w.shown)):cut]...)
	w.held, w.shown = w.held[cut:], max(0, w.shown-cut)
	w.inKey = end.keyFrom < cut
	_, err := w.w.Write(w.out)
	return err
}

// safe returns how much of the held text can be written: up to the last words, the beginning of
// a known value, or an unfinished private key, and never to within a secret.
func (w *Writer) safe(ms []match, end scanEnd) int {
	if len(w.held) > MaxHeldBytes {
		// Anywhere, but not inside a secret; or else redact what was found and start again with the rest.
		return cmp.Or(before(len(w.held)-MaxHeldBytes/2, ms, nil), len(w.held))
	}
	cut := min(lastFields(w.held, heldFields), len(w.held)-end.partial, end.keyFrom, end.open)
	for was := -1; cut != was; {
		was = cut
		// Between words, since the beginning of a word decides what it is.
		cut = before(wordBegin(w.held, cut), ms, end.keys)
	}
	return cut
}

// before returns the last offset up to cut that is not inside a secret or a key.
func before(cut int, ms, keys []match) int {
	for was := -1; cut != was; {
		was = cut
		for _, m := range slices.Concat(ms, keys) {
			if m.from < cut && m.end > cut {
				cut = m.from
			}
		}
	}
	return cut
}

func wordBegin(s string, at int) int {
	for at > 0 && s[at-1] > ' ' {
		at--
	}
	return at
}

// lastFields returns the beginning of the last n words of a text with the blanks between them;
// 0 if there are not more.
func lastFields(s string, n int) int {
	i := len(s)
	for range n {
		i = wordBegin(s, i)
		for i > 0 && s[i-1] <= ' ' {
			i--
		}
	}
	return wordBegin(s, i)
}

package term

import (
	"bytes"
	"io"
)

// maxHeldBytes is how much of an unfinished line an Escaper holds back.
const maxHeldBytes = 64 << 10

// An Escaper writes text to a terminal through Clean, a line at a time. Close writes the
// rest; it does not close the terminal.
type Escaper struct {
	out  io.Writer
	held []byte
}

func NewEscaper(out io.Writer) *Escaper { return &Escaper{out: out} }

func (e *Escaper) Write(p []byte) (int, error) {
	e.held = append(e.held, p...)
	i := bytes.LastIndexByte(e.held, '\n') + 1
	if i == 0 && len(e.held) > maxHeldBytes {
		i = len(e.held)
	}
	if err := e.flush(i); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (e *Escaper) flush(n int) error {
	if n == 0 {
		return nil
	}
	_, err := io.WriteString(e.out, Clean(string(e.held[:n])))
	e.held = append(e.held[:0], e.held[n:]...)
	return err
}

// Close writes the last line if it did not end.
func (e *Escaper) Close() error { return e.flush(len(e.held)) }

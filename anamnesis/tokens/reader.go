package tokens

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// readBytes is how much of a stream is held at once, twice over.
const readBytes = 1 << 20

// CountReader counts a stream to its end, in bounded memory, and says how many
// bytes it had. The count is that of Count on the whole text, unless there is
// no line to part it at within a mebibyte; then it may be off by one there. It
// ends early with ctx's error between reads.
func (c *Counter) CountReader(ctx context.Context, r io.Reader) (tokens int, bytes int64, err error) {
	return c.countReader(ctx, r, readBytes)
}

func (c *Counter) countReader(ctx context.Context, r io.Reader, part int) (tokens int, bytes int64, err error) {
	buf := make([]byte, 0, 2*part)
	for {
		if err := ctx.Err(); err != nil {
			return 0, 0, fmt.Errorf("count tokens: %w", err)
		}
		n, err := io.ReadFull(r, buf[len(buf):len(buf)+min(part, cap(buf)-len(buf))])
		buf = buf[:len(buf)+n]
		bytes += int64(n)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return tokens + c.Count(string(buf)), bytes, nil
		case err != nil:
			return 0, 0, fmt.Errorf("count tokens: %w", err)
		}
		cut := lastParting(buf)
		if cut == 0 && len(buf) < cap(buf) {
			continue // look for a place in the next part
		}
		if cut == 0 {
			for cut = len(buf) - 1; cut > len(buf)-utf8.UTFMax && !utf8.RuneStart(buf[cut]); cut-- {
			}
		}
		tokens += c.Count(string(buf[:cut]))
		buf = append(buf[:0], buf[cut:]...)
	}
}

// lastParting finds the last place where every encoding ends a token, by the
// rule of nextCut, or 0.
func lastParting(buf []byte) int {
	for i := len(buf) - 1; i > 1; i-- {
		if buf[i-1] != '\n' || !utf8.RuneStart(buf[i]) {
			continue
		}
		next, size := utf8.DecodeRune(buf[i:])
		before, _ := utf8.DecodeLastRune(buf[:i-1])
		if next == utf8.RuneError && size <= 1 || unicode.IsSpace(before) {
			continue
		}
		if unicode.IsLetter(next) || unicode.IsNumber(next) {
			return i
		}
	}
	return 0
}

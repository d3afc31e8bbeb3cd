//go:build unix

package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"anamnesis/cmd/internal/exit"
)

// maxPipedBytes bounds what a request takes from standard input.
const maxPipedBytes = 256 << 10

// firstByte is how long a request that has words of its own waits for standard input.
const firstByte = 3 * time.Second

// Need says whether a command must have a request.
type Need bool

const (
	Optional Need = false
	Required Need = true
)

// Request returns a request with what standard input holds if that is a pipe or a file: after the
// request's own words, or as the request if it has none. With "-" any standard input is the
// request. If it is optional and has no words, nothing waits for standard input long.
func (c *Console) Request(ctx context.Context, words string, need Need) (string, error) {
	if words != "-" && !piped(c.In) {
		return words, nil
	}
	return c.withInput(ctx, words, words == "-" || words == "" && need == Required)
}

// withInput adds standard input to the words of a request. If needed is set, the request has no
// other words.
func (c *Console) withInput(ctx context.Context, words string, needed bool) (string, error) {
	type read struct {
		text string
		err  error
	}
	begun, got := make(chan struct{}, 1), make(chan read, 1)
	go func() { // ends with the input, or with the process
		data, err := io.ReadAll(io.LimitReader(&noticing{c.In, begun}, maxPipedBytes+1))
		got <- read{string(data), err}
	}()
	late := time.NewTimer(firstByte)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", exit.With(exit.Interrupted, errors.New("interrupted"))
		case <-begun:
			late.Stop()
		case <-late.C:
			if !needed {
				c.notef("warning: nothing came on standard input within %s: the request is sent without it; "+
					"'</dev/null' avoids the wait", firstByte)
				return words, nil
			}
			c.notef("reading the request from standard input")
		case in := <-got:
			if in.err != nil {
				return "", exit.Usagef("read standard input: %v", in.err)
			}
			return joined(words, in.text)
		}
	}
}

// joined appends what standard input held to the words of a request.
func joined(words, in string) (string, error) {
	switch {
	case len(in) > maxPipedBytes:
		return "", exit.Usagef("standard input is longer than a request may be (%d KiB): put it into a file, and name "+
			"the file in the request", maxPipedBytes>>10)
	case !utf8.ValidString(in):
		return "", exit.Usagef("standard input is not text: put it into a file, and name the file in the request")
	}
	in = strings.TrimSpace(in)
	switch {
	case in == "" && words == "-":
		return "", exit.Usagef("the request is empty")
	case in == "":
		return words, nil
	case words == "" || words == "-":
		return in, nil
	}
	return fmt.Sprintf("%s\n\n<stdin>\n%s\n</stdin>", words, in), nil
}

// piped reports whether a reader is a pipe, a socket or a file with text, and no device.
func piped(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeDevice == 0 && !info.IsDir()
}

// noticing reports that the first bytes, or the end, were read.
type noticing struct {
	io.Reader
	begun chan<- struct{}
}

func (n *noticing) Read(p []byte) (int, error) {
	k, err := n.Reader.Read(p)
	select {
	case n.begun <- struct{}{}:
	default:
	}
	return k, err
}

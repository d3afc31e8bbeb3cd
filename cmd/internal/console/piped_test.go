//go:build unix

package console

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"anamnesis/cmd/internal/exit"
)

// TestPipedRequest: standard input follows the words of a request or is the request. What is too
// long or no text is refused, and a request with words does not wait for an input that stays silent.
func TestPipedRequest(t *testing.T) {
	for _, tt := range []struct{ words, in, want, refused string }{
		{"why?", "one\ntwo\n", "why?\n\n<stdin>\none\ntwo\n</stdin>", ""},
		{"", " why?\n", "why?", ""},
		{"-", "why?\n", "why?", ""},
		{"why?", "\n", "why?", ""},
		{"", "", "", ""},
		{"-", "", "", "the request is empty"},
		{"", strings.Repeat("a", maxPipedBytes), strings.Repeat("a", maxPipedBytes), ""},
		{"", strings.Repeat("a", maxPipedBytes+1), "", "longer than a request may be (256 KiB)"},
		{"why?", "\xff", "", "is not text"},
	} {
		c := &Console{In: strings.NewReader(tt.in)}
		got, err := c.withInput(t.Context(), tt.words, tt.words != "why?")
		if got != tt.want || (err == nil) != (tt.refused == "") ||
			err != nil && (!strings.Contains(err.Error(), tt.refused) || exit.Code(err) != exit.Usage) {
			t.Errorf("%q with %.9q: %.40q, %v", tt.words, tt.in, got, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		var said bytes.Buffer
		c := &Console{In: in, Err: &said, Out: &said}
		if got, err := c.withInput(t.Context(), "why?", false); got != "why?" || err != nil ||
			!strings.Contains(said.String(), "nothing came") {
			t.Errorf("a silent input: %q, %v; said %q", got, err, said.String())
		}
		out.Close()
	})
}

package guard

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"
)

// Who reads more slowly than drainTime, or a busy machine, loses nothing.
func TestSlowReaderLosesNothing(t *testing.T) {
	const want = outputBlock + outputBlock/2 // the second block waits in the pipe
	c := shellCommand("head -c 98304 /dev/zero")
	read := 0
	c.Output = func(_ Stream, p []byte) {
		if read += len(p); read <= outputBlock {
			<-time.After(3 * drainTime)
		}
	}
	if _, err := Run(t.Context(), c); err != nil || read != want {
		t.Errorf("%d bytes of %d read: %v", read, want, err)
	}
}

// What a pipe holds is read whether it has ended or not.
func TestDrain(t *testing.T) {
	for _, ended := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		if _, err := io.WriteString(w, "words"); err != nil {
			t.Fatal(err)
		}
		if ended {
			w.Close()
		}
		_ = r.SetReadDeadline(time.Unix(1, 0))
		var got bytes.Buffer
		if drain(r, func(p []byte) { got.Write(p) }); got.String() != "words" {
			t.Errorf("ended %v: %q", ended, got.String())
		}
	}
}

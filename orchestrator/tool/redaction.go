package tool

import (
	"bytes"
	"io"

	"anamnesis/orchestrator/redact"
)

// maxSecretsFound bounds the secrets of one call that get markers of their own. Those beyond
// are redacted, but cannot be restored.
const maxSecretsFound = 1024

// Redaction replaces the secrets in one call's output, before any of it is cut: a secret that
// a cut goes through would not be recognised any more. It is not safe for concurrent use.
type Redaction struct {
	redactor *redact.Redactor
	found    []redact.Found
	seen     map[redact.Found]bool
}

// Redaction returns the redaction of one call's output.
func (e *Env) Redaction() *Redaction {
	return &Redaction{redactor: e.Redactor, seen: map[redact.Found]bool{}}
}

// Found returns the secrets that were replaced, each once, for Result.Secrets.
func (d *Redaction) Found() []redact.Found { return d.found }

func (d *Redaction) add(f redact.Found) {
	if len(d.found) < maxSecretsFound && !d.seen[f] {
		d.seen[f] = true
		d.found = append(d.found, f)
	}
}

// Text returns a text with markers in place of its secrets. It keeps the number of lines.
func (d *Redaction) Text(s string) string {
	out, found := d.redactor.Text(s)
	for _, f := range found {
		d.add(f)
	}
	return out
}

// Writer redacts a stream and writes it to w.
func (d *Redaction) Writer(w io.Writer) *redact.Writer {
	out := d.redactor.NewWriter(w)
	out.Found = d.add
	return out
}

// Reader returns what r holds, redacted. It reads ahead.
func (d *Redaction) Reader(r io.Reader) io.Reader {
	if d.redactor == nil {
		return r
	}
	out := &redactedReader{in: r, buf: make([]byte, 64<<10)}
	out.writer = d.Writer(&out.ready)
	return out
}

type redactedReader struct {
	in     io.Reader
	writer *redact.Writer
	ready  bytes.Buffer
	buf    []byte
	end    error
}

func (r *redactedReader) Read(p []byte) (int, error) {
	for r.ready.Len() == 0 && r.end == nil {
		n, err := r.in.Read(r.buf)
		_, _ = r.writer.Write(r.buf[:n]) // a buffer never fails
		if err != nil {
			_ = r.writer.Close()
			r.end = err
		}
	}
	if r.ready.Len() > 0 {
		return r.ready.Read(p)
	}
	return 0, r.end
}

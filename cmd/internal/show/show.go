//go:build unix

// Package show writes what verbs print: values of other packages, as text for users.
package show

import (
	"fmt"
	"io"

	view "anamnesis/cmd/internal/term"
)

// Printer writes text to a command's output.
type Printer struct {
	Out, Err io.Writer
	Width    int    // of a line
	Failed   error  // the first failure to write to Out
	Remote   string // the bucket whose tasks are shown; empty: none
}

// Printf writes to standard output.
func (o *Printer) Printf(format string, args ...any) { o.wrote(fmt.Fprintf(o.Out, format, args...)) }

// Println writes to standard output.
func (o *Printer) Println(args ...any) { o.wrote(fmt.Fprintln(o.Out, args...)) }

func (o *Printer) wrote(_ int, err error) {
	if err != nil && o.Failed == nil {
		o.Failed = fmt.Errorf("print: %w", err)
	}
}

// Notef writes a line to standard error.
func (o *Printer) Notef(format string, args ...any) {
	fmt.Fprintln(o.Err, view.Fit(o.Err, fmt.Sprintf("anamnesis: "+format, args...)))
}

// Warn writes texts to standard error, one a line.
func (o *Printer) Warn(texts ...string) {
	for _, text := range texts {
		o.Notef("%s", view.Clean(text))
	}
}

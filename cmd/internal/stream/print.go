//go:build unix

// Package stream picks and prints the records of a stream.
package stream

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream"
)

// timeLayout shows a record's time as its line holds it.
const timeLayout = "2006-01-02T15:04:05.000000Z"

type printedRecord struct {
	Seq     uint64          `json:"seq"`
	Time    string          `json:"ts"`
	Kind    string          `json:"kind"`
	Step    int             `json:"step"`
	Tok     int             `json:"tok"`
	Durable bool            `json:"durable"`
	Body    json.RawMessage `json:"body"`
}

// Print writes a record as one line, in one write.
func Print(w io.Writer, rec opstream.Record, asJSON bool) error {
	ts := rec.Time.UTC().Format(timeLayout)
	var err error
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		err = enc.Encode(printedRecord{rec.Seq, ts, rec.Kind, rec.Step, rec.Tok, rec.Durable, rec.Body})
	} else {
		mark := ""
		if !rec.Durable {
			mark = " (not known durable yet)"
		}
		_, err = fmt.Fprintf(w, "%d %s %s step %d tok %d%s %s\n", rec.Seq, ts, rec.Kind, rec.Step, rec.Tok, mark,
			view.Clean(string(rec.Body)))
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// Cat prints the records of the stream in dir after a number, all or those of a kind, and with follow new ones
// until ctx ends. It prints the records around a damaged one, too. torn is the end that could not be read, if
// nothing else was damaged.
func Cat(ctx context.Context, w io.Writer, dir string, after uint64, kind string, asJSON, follow bool) (
	torn *opstream.Torn, err error) {
	r, err := opstream.OpenReader(dir, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := bufio.NewWriter(w)
	var damage []error
	records := r.Since(after)
	if follow {
		records = r.Follow(ctx, after)
	}
	for rec, err := range records {
		if err != nil { // of one record's blob alone, or the end of what can be read
			damage = append(damage, err)
			continue
		}
		if kind != "" && rec.Kind != kind {
			continue
		}
		if err := Print(out, rec, asJSON); err != nil {
			return nil, err
		}
		if follow {
			_ = out.Flush() // the writer keeps an error for the next Flush
		}
	}
	if err := out.Flush(); err != nil {
		return nil, fmt.Errorf("print: %w", err)
	}
	switch {
	case len(damage) > 0:
		return nil, first(damage)
	case follow:
		return nil, nil
	}
	return r.Torn(), nil
}

// first returns the first of several faults, with how many more there are.
func first(damage []error) error {
	if len(damage) == 1 {
		return damage[0]
	}
	return fmt.Errorf("%w (and %d more)", damage[0], len(damage)-1)
}

package taskdir

import (
	"bytes"
	"errors"
	"fmt"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
)

// Follower reads a task's operations while any process writes them. It holds nothing of the
// task and changes nothing. Its methods must not be called concurrently.
type Follower struct {
	home Home
	id   string
	r    *opstream.Reader
	tail opstream.Record // the last line visited; Seq 0 before the first
}

// Line is one line of a task's stream as it is recorded.
type Line struct {
	op.Op
	Name    string // its kind; if this program does not know it, the body is nil
	JSON    []byte // the body, compact
	Durable bool   // false: its writer may yet withdraw it; a template of the page reads it
	Err     error  // why its body could not be read
}

// Follow opens a task's stream. A task that is not there is an ErrNoTask.
func Follow(h Home, id string) (*Follower, error) {
	r, err := openStream(h, id, nil)
	if err != nil {
		return nil, err
	}
	return &Follower{home: h, id: id, r: r}, nil
}

// Close ends the reading.
func (f *Follower) Close() error { return f.r.Close() }

// Next visits what was written since the last call, in order, each operation once. If the
// writer withdrew visited lines, as after a crash before they were durable, restart is called,
// and all operations are visited again from the first. An error of visit, and damage in the
// stream, end it; the next call continues after the last operation that was visited without
// one.
func (f *Follower) Next(restart func(), visit func(op.Op) error) error {
	whole, err := f.advance(visit)
	if whole || err != nil {
		return err
	}
	r, err := openStream(f.home, f.id, nil)
	if err != nil {
		return err
	}
	f.r.Close()
	f.r, f.tail = r, opstream.Record{}
	restart()
	_, err = f.advance(visit)
	return err
}

// advance visits what is new. whole is false if the last visited line has changed.
func (f *Follower) advance(visit func(op.Op) error) (whole bool, err error) {
	checked := f.tail.Seq == 0
	// The last visited line is read again: if its writer has withdrawn it, another one or none is in its place.
	for rec, err := range f.r.Since(max(f.tail.Seq, 1) - 1) {
		switch {
		case err != nil && !checked && rec.Seq == 0:
			return false, nil // reading again reports the damage at its place
		case err != nil:
			return true, err
		case !checked:
			if !sameLine(rec, f.tail) {
				return false, nil
			}
			checked = true
			continue
		}
		o, err := Decode(rec)
		if err != nil {
			return true, err
		}
		if err := visit(o); err != nil {
			return true, err
		}
		f.tail = rec
	}
	return checked, nil
}

func sameLine(a, b opstream.Record) bool {
	return a.Seq == b.Seq && a.Prev == b.Prev && a.Kind == b.Kind && a.Step == b.Step && a.Tok == b.Tok &&
		a.Time.Equal(b.Time) && bytes.Equal(a.Body, b.Body)
}

// Lines returns at most limit lines after a seq. A line whose body is lost, or does not fit
// its kind, has Err. Damage of the stream itself ends the list, and is the error.
func (f *Follower) Lines(after uint64, limit int) ([]Line, error) {
	var out []Line
	for rec, err := range f.r.Since(after) {
		if len(out) == limit {
			break
		}
		if err != nil && rec.Seq == 0 {
			return out, err
		}
		out = append(out, line(rec, err))
	}
	return out, nil
}

// Line returns one line. One that is not there (yet) is an ErrNoOp.
func (f *Follower) Line(seq uint64) (Line, error) {
	rec, err := f.r.Get(seq)
	switch {
	case errors.Is(err, opstream.ErrNoRecord):
		last, _, _ := f.r.Last()
		return Line{}, fmt.Errorf("%w: task %s has no op %d; the last is %d", ErrNoOp, f.id, seq, last)
	case err != nil && rec.Seq == 0:
		return Line{}, err
	}
	return line(rec, err), nil
}

// ErrNoOp is returned for an operation that a task does not have.
var ErrNoOp = errors.New("no such operation")

func line(rec opstream.Record, lost error) Line {
	l := Line{Name: rec.Kind, JSON: rec.Body, Durable: rec.Durable}
	if l.Op, l.Err = Decode(rec); lost != nil {
		l.Body, l.Err = nil, lost
	}
	return l
}

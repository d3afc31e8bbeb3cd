package page

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

// maxDiffBytes is how much of a patch one page shows.
const maxDiffBytes = 128 << 10

// diff is a unified diff as a page shows it, with the part "diff".
type diff struct {
	Lines []diffLine
	Cut   bool // there was more than maxDiffBytes
}

// diffLine is a line of a diff. What it is stands in its first character, too:
// colour is not the only sign.
type diffLine struct {
	Kind string // ins, del, at (a heading) or ""
	Text string
}

// readDiff takes a unified diff apart.
func readDiff(patch string) diff {
	d := diff{Cut: len(patch) > maxDiffBytes}
	patch = patch[:min(len(patch), maxDiffBytes)]
	heading := true // until the first hunk, lines that begin with + or - name files
	for line := range strings.Lines(patch) {
		l := diffLine{Text: Clean(strings.TrimRight(line, "\r\n"))}
		switch {
		case heading && strings.HasPrefix(line, "index "):
			continue // names of objects: nothing to read
		case strings.HasPrefix(line, "@@"):
			heading = false
			l.Kind = "at"
		case strings.HasPrefix(line, "diff "):
			heading = true
			l.Kind = "at"
		case heading:
			l.Kind = "at"
		case strings.HasPrefix(line, "+"):
			l.Kind = "ins"
		case strings.HasPrefix(line, "-"):
			l.Kind = "del"
		}
		d.Lines = append(d.Lines, l)
	}
	return d
}

// errFull ends a patch that is longer than a page shows.
var errFull = errors.New("the page is full")

// boundedBuffer takes at most maxDiffBytes, and one byte more as the sign that
// there are more.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := maxDiffBytes + 1 - b.Len()
	if len(p) > room {
		b.Buffer.Write(p[:max(0, room)])
		return max(0, room), errFull
	}
	return b.Buffer.Write(p)
}

// worldDiff compares two snapshots of a task's world. It takes no lock and
// changes nothing.
func (s *Server) worldDiff(ctx context.Context, st *state.State, from, to string) (diff, error) {
	w, err := s.tasks.World(st)
	if err != nil {
		return diff{}, err
	}
	defer w.Close()
	changes, err := w.Diff(ctx, worldstate.ID(from), worldstate.ID(to))
	if err != nil {
		return diff{}, err
	}
	if changes, _, err = w.Renames(ctx, changes, nil); err != nil {
		return diff{}, err
	}
	var patch boundedBuffer
	if err := w.Patch(ctx, &patch, changes); err != nil && !errors.Is(err, errFull) {
		return diff{}, err
	}
	return readDiff(patch.String()), nil
}

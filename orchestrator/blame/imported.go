package blame

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
)

// edit is a recorded call of an imported session on the file.
type edit struct {
	file.Recorded
	Origin
	lines map[string]bool
	began time.Time // the session
}

// version is a text of the file, and what made it.
type version struct {
	Origin
	text string
}

// recordedEdits returns the edits of the file in imported sessions, the oldest first.
func (f *finder) recordedEdits() (list []edit, err error) {
	ids, err := f.Home.Tasks()
	if err != nil {
		return nil, err
	}
	target := filepath.Join(f.Dir, filepath.FromSlash(f.Path))
	for _, id := range ids {
		if !slices.ContainsFunc(sessions.Agents(), func(a sessions.Agent) bool { return strings.HasPrefix(id, string(a)+"_") }) {
			continue
		}
		s := f.stream(id)
		if s.r == nil || !s.st.Opened.Origin.Imported() || s.st.Opened.Dir == "" {
			continue
		}
		failed := make(map[string]bool)
		var own []edit
		var calls []string
		for rec, err := range s.r.Since(0) {
			if err != nil {
				break
			}
			if rec.Kind != string((*op.ToolCalled)(nil).Kind()) && rec.Kind != string((*op.ToolReturned)(nil).Kind()) {
				continue
			}
			o, _ := taskdir.Decode(rec)
			switch b := o.Body.(type) {
			case *op.ToolReturned:
				failed[b.Call] = b.IsError || b.Refused
			case *op.ToolCalled:
				names := func(p string) bool { return p == target || filepath.Join(s.st.Opened.Dir, p) == target }
				if op.Acts(b.Name) != op.Edits || !slices.ContainsFunc(file.Paths(b.Name, []byte(b.Args)), names) {
					continue
				}
				e := edit{Origin: Origin{Kind: Step, Task: id, Calls: []Op{{rec.Seq, tool.Display(op.Call{Name: b.Name, Args: b.Args}, s.st.Opened.Dir)}}}, lines: linesIn(b.Args), began: s.st.Opened.Origin.Began}
				if e.Recorded, err = file.ReadRecorded(b.Args); err != nil {
					continue
				}
				e.describe(s, rec.Step)
				e.Time = e.began // the record has the time of the import
				own, calls = append(own, e), append(calls, b.Call)
			}
		}
		for i, e := range own {
			if !failed[calls[i]] {
				list = append(list, e)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b edit) int { return a.began.Compare(b.began) })
	return list, nil
}

// replay returns the texts of a file that recorded edits led to, and at last the present one. From the last call that
// wrote the whole file on, edits are undone from the present text, so that each is checked against it; those before
// are applied to what the call before them wrote. What no edit explains is of an unknown origin.
func replay(present string, edits []edit) []version {
	from := 0
	for i, e := range edits {
		if e.Content != nil {
			from = i
		}
	}
	var forward, back []version
	text, written := "", false
	for _, e := range edits[:from] {
		if e.Content != nil {
			text, written = *e.Content, true
		} else if after, err := e.Apply(text); written && err == nil {
			text = after
		} else {
			continue
		}
		forward = append(forward, version{e.Origin, text})
	}
	text = present
	unfit := 0
	for i := len(edits) - 1; i >= from; i-- {
		e := edits[i]
		before, err := "", error(nil)
		if e.Content != nil {
			if text != *e.Content {
				back = append(back, version{unexplained(edits, unfit), text})
			}
			back = append(back, version{e.Origin, *e.Content})
			return append(forward, reversed(back)...)
		}
		if before, err = e.Undo(text); err != nil {
			unfit++
			continue
		}
		back = append(back, version{e.Origin, text})
		text = before
	}
	back = append(back, version{unexplained(edits, unfit), text})
	return append(forward, reversed(back)...)
}

func reversed(list []version) []version {
	slices.Reverse(list)
	return list
}

// unexplained is the origin of lines that no recorded edit wrote.
func unexplained(edits []edit, unfit int) Origin {
	if len(edits) == 0 {
		return Origin{Kind: Before}
	}
	o := Origin{Kind: Unknown, Why: "no recorded edit wrote it: it was there before the session, or came by a command or by hand"}
	if unfit > 0 {
		o.Why = fmt.Sprintf("no recorded edit that fits the file wrote it, and %s changed or removed later: it was there before the session, or came by one of them, by a command or by hand", quote.Number(unfit, "edit was"))
	}
	return o
}

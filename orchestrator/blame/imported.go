package blame

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/tool/file"
)

// edit is a call of an imported session that changed the file, or a command that names it.
type edit struct {
	file.Recorded
	Origin
	lines   map[string]bool // of the arguments
	command bool
}

// version is a text of the file, and what made it.
type version struct {
	Origin
	text string
}

// readEdits reads the edits of the file in imported sessions, the oldest first.
func (f *finder) readEdits() error {
	ids, err := f.Home.Tasks()
	target := filepath.Join(f.Dir, filepath.FromSlash(f.Path))
	for _, id := range ids {
		of := func(a sessions.Agent) bool { return strings.HasPrefix(id, string(a)+"_") }
		if !slices.ContainsFunc(sessions.Agents(), of) {
			continue
		}
		s := f.stream(id)
		if s.r == nil || !s.st.Opened.Origin.Imported() || s.st.Opened.Dir == "" {
			continue
		}
		is := func(path string) bool { return path == target || filepath.Join(s.st.Opened.Dir, path) == target }
		s.readOnce()
		for _, c := range s.calls {
			e := edit{command: !c.edits}
			if c.job || c.ended == 0 || e.command && !strings.Contains(c.args, filepath.Base(f.Path)) ||
				!e.command && !slices.ContainsFunc(c.paths, is) {
				continue
			}
			if json.Unmarshal([]byte(c.args), &e.Recorded) != nil {
				continue
			}
			e.lines = linesIn(c.args)
			e.Kind, e.Task, e.Calls = Step, id, []Op{c.Op}
			e.describe(s, c.step)
			e.Time = s.st.Opened.Origin.Began // the record has the time of the import
			f.edits = append(f.edits, e)
		}
	}
	slices.SortStableFunc(f.edits, func(a, b edit) int { return a.Time.Compare(b.Time) })
	return err
}

// replay returns the texts of a file that recorded edits led to, the last one the present one. Edits are undone from
// there, so that each is checked against it, to the last call that wrote the whole file. The first text is of an
// unknown origin, as far as that call did not write it.
func replay(present string, edits []edit) (chain []version) {
	text := present
	rest := Origin{Kind: Before}
	if len(edits) > 0 {
		rest = Origin{Kind: Unknown}
		rest.Why = "no recorded edit accounts for it: it was there before, or came by a command or by hand"
	}
	for _, e := range slices.Backward(edits) {
		if e.command {
			continue
		}
		if e.Content != nil {
			if text != *e.Content {
				chain = append(chain, version{rest, text})
			}
			chain = append(chain, version{e.Origin, *e.Content})
			slices.Reverse(chain)
			return chain
		}
		if before, err := e.Undo(text); err == nil {
			chain = append(chain, version{e.Origin, text})
			text = before
		}
	}
	chain = append(chain, version{rest, text})
	slices.Reverse(chain)
	return chain
}

// guess names the last call of a session that has a line in it which no edit accounts for.
func (f *finder) guess(o Origin, text string) Origin {
	for _, e := range slices.Backward(f.edits) {
		if e.lines[strings.TrimRight(text, "\r")] {
			o, o.Kind, o.Why = e.Origin, Unknown, "a call has the line, and the file is not as it left it"
			if e.command {
				o.Why = "a command has the line; what commands of the session changed is not recorded"
			}
			return o
		}
	}
	return o
}

package taskdir

import (
	"cmp"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// Owner identifies the task of a stream. The zero Owner is no task of this program.
type Owner struct {
	Task   string   // its id
	Dir    string   // where it works
	Redact []string // variables whose values are not recorded
}

// StreamOwner reads whose stream is in dir. It takes no lock, and reads only what a snapshot
// does not hold. With an error it returns what was read before it.
func StreamOwner(dir string) (Owner, error) {
	r, err := opstream.OpenReader(dir, &opstream.Options{Snapshot: state.FoldVersion})
	if err != nil {
		return Owner{}, err
	}
	defer r.Close()
	st := state.FromSnapshot(r)
	o := Owner{Task: st.Opened.Task, Dir: st.Opened.Dir, Redact: st.Redact}
	for rec, err := range r.Since(st.Last) {
		switch kind := op.Kind(rec.Kind); {
		case rec.Seq == 1 && kind != op.KindTaskOpened:
			return o, nil
		case kind != op.KindTaskOpened && kind != op.KindTaskResumed && rec.Seq != 0:
			continue // a damaged blob of another kind does not matter
		}
		if err != nil {
			return o, err
		}
		got, err := Decode(rec)
		if err != nil {
			return o, err
		}
		switch b := got.Body.(type) {
		case *op.TaskOpened:
			if rec.Seq == 1 {
				o = Owner{Task: b.Task, Dir: b.Dir, Redact: b.Redact}
			}
		case *op.TaskResumed:
			o.Dir = cmp.Or(b.Dir, o.Dir)
			o.Redact = state.WithNames(o.Redact, b.Redact)
		}
	}
	return o, nil
}

//go:build unix

package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	view "anamnesis/cmd/internal/term"
	"anamnesis/worldstate"
)

func (o *Printer) Snapshots(list []worldstate.Commit) {
	for _, c := range list {
		mark := " "
		if c.Current {
			mark = "*"
		}
		o.Printf("%s %s\n", mark, logLine(c))
	}
}

// logLine is a snapshot on one line, safe for a terminal.
func logLine(c worldstate.Commit) string {
	if c.Missing != "" {
		return fmt.Sprintf("%s missing %s: %s", c.ID[:12], strings.Join(c.Steps, ","), view.Clean(c.Missing))
	}
	first, _, _ := strings.Cut(c.Message, "\n")
	incomplete := ""
	if !c.Complete {
		incomplete = " (incomplete)"
	}
	return fmt.Sprintf("%s %s %s %s%s", c.ID[:12], c.Time.Format("2006-01-02 15:04:05Z"), strings.Join(c.Steps, ","),
		view.Clean(first), incomplete)
}

func (o *Printer) Collected(r worldstate.GCReport) {
	verb := "is now"
	if r.DryRun {
		verb = "would be at most"
	}
	o.Printf("%s: %d snapshots, %d objects; it was %d bytes and %s %d\n", r.Store, r.Snapshots, r.Objects,
		r.BytesBefore, verb, r.BytesAfter)
	for _, task := range r.Dropped {
		o.Printf("  dropped: deleted task %s\n", task)
	}
	for _, task := range r.Kept {
		o.Printf("  kept: deleted task %s\n", task)
	}
}

// Verified says what a check of a store found.
func (o *Printer) Verified(r worldstate.Report) {
	for _, p := range r.Problems {
		if p.Snapshot == "" { // no snapshot is known to need it
			o.Printf("damaged %s in %q: %s\n", cmp.Or(p.Object, "bytes"), p.Path, p.Error)
			continue
		}
		o.Printf("damaged %s %q (snapshot %s): %s\n", p.Object, p.Path, p.Snapshot, p.Error)
	}
	for _, p := range r.DamagedCopies {
		o.Printf("damaged copy of %s in %q, intact elsewhere; world gc removes it if the pack is of a save: %s\n",
			p.Object, p.Path, p.Error)
	}
	if r.Unfinished {
		o.Println("an interrupted restore waits; the next save, plan or restore finishes it")
	}
	o.Printf("%d refs, %d snapshots, %d objects read\n", r.Refs, r.Commits, r.Objects)
}

// Restored says what a restore did.
func (o *Printer) Restored(res worldstate.Result) {
	o.Moves("wrote", res.Written, "deleted", res.Deleted, res.Kept)
	o.LostAttributes(res.LostAttributes)
	o.Unchanged(res.Unchanged)
	if len(res.Written)+len(res.Deleted) == 0 {
		o.Println("nothing was moved")
	}
	o.Printf("the world before is snapshot %s\n", res.Source)
	if len(res.Kept) > 0 {
		hint := ""
		if slices.ContainsFunc(res.Kept, worldstate.Skip.Edited) {
			hint = "; --overwrite reverts edits, too"
		}
		o.Notef("%d paths were kept%s", len(res.Kept), hint)
	}
}

// Content lets a function write to standard output, on a terminal with every control character
// escaped unless raw is set.
func (o *Printer) Content(write func(io.Writer) error) error {
	if !view.IsTerminal(o.Out) {
		return write(o.Out)
	}
	out := view.NewEscaper(o.Out)
	err := write(out)
	if failed := out.Close(); err == nil {
		err = failed
	}
	return err
}

func (o *Printer) Snapshot(c worldstate.Commit) {
	o.Printf("snapshot %s\ntree     %s\n", c.ID, c.Tree)
	for _, p := range c.Parents {
		o.Printf("parent   %s\n", p)
	}
	o.Printf("date     %s\n", c.Time.Format("2006-01-02 15:04:05Z"))
	if len(c.Steps) > 0 {
		o.Printf("steps    %s\n", strings.Join(c.Steps, " "))
	}
	if !c.Complete {
		o.Println("incomplete: some paths could not be read")
	}
	o.Printf("\n    %s\n\n", strings.ReplaceAll(view.Clean(c.Message), "\n", "\n    "))
	for _, s := range c.Skipped {
		o.Printf("%-8s %q: %s\n", "skipped", s.Path, view.Clean(s.Reason))
	}
}

// Items lists a directory of a snapshot.
func (o *Printer) Items(items []worldstate.Item) {
	for _, it := range items {
		name := it.Path
		if it.Type == "dir" {
			name += "/"
		}
		o.Printf("%-4s %4s %10d %q\n", it.Type, it.Mode, it.SizeBytes, name)
	}
}

// Recovered says what became of an interrupted restore, if there was one.
func (o *Printer) Recovered(r *worldstate.Recovery) {
	if r == nil {
		return
	}
	switch {
	case r.Finished:
		o.Notef("an interrupted restore of %s was finished", r.Target)
	case r.Dropped:
		o.Notef("an interrupted restore of %s was dropped: the directory's files were removed since", r.Target)
	default:
		o.Notef("an interrupted restore of %s was rolled back: %s", r.Target, r.Reason)
	}
	for _, k := range r.Kept {
		o.Notef("kept %q: %s", k.Path, k.Reason)
	}
}

// SaveNotes says what a user should know of a save.
func (o *Printer) SaveNotes(snap worldstate.Snapshot) {
	o.Lost(snap.ParentLost, "this snapshot has no parent")
	for _, n := range snap.Notes {
		o.Notef("note: %q: %s", n.Path, n.Reason)
	}
	if !snap.Complete {
		o.Notef("the snapshot is not complete: %d paths have no bytes in it", len(snap.Skipped))
	}
}

// Saved says what a save did.
func (o *Printer) Saved(snap worldstate.Snapshot) {
	for _, s := range snap.Skipped {
		o.Notef("skipped %q: %s", s.Path, s.Reason)
	}
	o.Printf("%s  %d files, %d changed\n", snap.ID, snap.Files, snap.Changed)
}

func (o *Printer) Changes(changes []worldstate.Change) {
	for _, c := range changes {
		if c.Kind == worldstate.Renamed {
			o.Printf("%-8s %q -> %q (%d%%)\n", c.Kind, c.From, c.Path, c.Similarity)
			continue
		}
		o.Printf("%-8s %q\n", c.Kind, c.Path)
	}
}

// Unchanged lists requested paths at which nothing is done.
func (o *Printer) Unchanged(list []worldstate.Skip) {
	for _, s := range list {
		o.Printf("%-7s %q: %s\n", "as is", s.Path, s.Reason)
	}
}

// Plan says what a restore would do.
func (o *Printer) Plan(plan worldstate.Plan) {
	o.Moves("write", plan.Write, "delete", plan.Delete, plan.Keep)
	o.Unchanged(plan.Unchanged)
	if plan.Empty() {
		o.Println("nothing to do")
	}
	o.Printf("plan %s\n", plan.Hash)
}

// Missing counts the snapshots that cannot be read.
func Missing(list []worldstate.Commit) (n int) {
	for _, c := range list {
		if c.Missing != "" {
			n++
		}
	}
	return n
}

//go:build unix

package show

import (
	"slices"
	"strings"

	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/git"
	"anamnesis/orchestrator/inspect"
	"anamnesis/worldstate"
)

func (o *Printer) JumpPlan(task string, p inspect.JumpPlan) {
	o.Damaged(p.Damaged)
	when := "would jump now"
	if p.Running {
		when = "is running and would jump when its present step is complete"
	}
	o.Printf("%s %s: %s\n", task, when, strings.TrimPrefix(op.Way(p.From, p.To), "from "))
	if p.UnderWay > 0 {
		o.Printf("step %d is under way and would end first; what its calls changed since step %d ended counts to it\n",
			p.UnderWay, p.From)
	}
	for _, r := range p.Discarded {
		o.Printf("leave   ops %s\n", r)
	}
	for _, pass := range p.Passes { // in the words that the jump itself uses
		o.Printf("pass    ops %s: %s\n", pass.Ops, timeline.PlannedPass(pass, p.EAS))
	}
	if len(p.Passes) == 0 && p.Raw > 0 {
		o.Printf("no pass: %d tokens discarded in all <= EAS %d\n", p.Raw, p.EAS)
	}
	if p.Git != nil && len(p.Git) == 0 {
		o.Println("git     nothing would be moved")
	}
	for _, move := range p.Git {
		o.Println("git     " + git.Words(move))
	}
	if p.DirGone {
		o.Println("the directory is missing; the jump recreates it with every file of the step")
		return
	}
	o.Lost(p.World.BaseLost, "edits count since the newest whole step before it, else every path that differs is "+
		"kept; --overwrite restores it")
	o.Moves("write", p.World.Write, "delete", p.World.Delete, p.World.Keep)
	for _, path := range p.World.Conflicts {
		o.Printf("%-7s %q: changed again since; the version kept comes back\n", "conflict", path)
	}
	if p.World.Empty() {
		o.Println("no file would be moved")
	}
}

// Jumped prints where a jump led and what it changed; next says how work continues there.
func (o *Printer) Jumped(task, next string, done *op.JumpDone) {
	o.Printf("%s is at step %d: %s changed; %s\n", task, done.To, timeline.CountFiles(done.NReverted), next)
	for i, path := range done.Reverted {
		if i == maxToldPaths {
			o.Printf("and %d more\n", done.NReverted-i)
			break
		}
		o.Printf("%-7s %q\n", timeline.FileAction(done, path), path)
	}
	for _, line := range timeline.JumpDetail(done) {
		o.Println(line)
	}
	edits := slices.ContainsFunc(done.Kept, func(k op.Skipped) bool {
		return worldstate.Skip{Path: k.Path, Reason: k.Reason}.Edited()
	})
	if edits {
		o.Println("--overwrite takes back what you changed, too")
	}
	if done.NReverted > 0 {
		o.Printf("as it was before: anamnesis world restore --task %s %.12s [PATH…]\n", task, done.Saved)
	}
}

// maxToldPaths is how many paths a jump names on the terminal.
const maxToldPaths = 20

// Damaged says that a line of a stream is damaged and nothing was lost by it.
func (o *Printer) Damaged(overcome string) {
	if overcome != "" {
		o.Notef("warning: %s; the step's snapshot in the store was used instead", OneLine(overcome))
	}
}

func (o *Printer) Moves(write string, written []string, remove string, deleted []string, keep []worldstate.Skip) {
	for _, p := range written {
		o.Printf("%-7s %q\n", write, p)
	}
	for _, p := range deleted {
		o.Printf("%-7s %q\n", remove, p)
	}
	for _, k := range keep {
		o.Printf("%-7s %q: %s\n", "keep", k.Path, k.Reason)
	}
}

// LostAttributes names restored files that lack something that no snapshot holds.
func (o *Printer) LostAttributes(lost []worldstate.Skip) {
	for _, l := range lost {
		o.Println(timeline.LostAttribute(l.Path, l.Reason))
	}
}

// Lost prints the line about a lost snapshot, if there is one, and what follows.
func (o *Printer) Lost(line, then string) {
	if line != "" {
		o.Notef("%s; %s", line, then)
	}
}

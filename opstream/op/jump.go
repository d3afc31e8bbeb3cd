package op

import (
	"fmt"
	"slices"
	"strings"
)

// Who asked for a jump or a restore, or decided an approval.
const (
	ByAgent = "agent"
	ByUser  = "person"
)

// Way says from which step a jump led to which. One to the step before that under way left no whole step.
func Way(from, to int) string {
	if from == to {
		return fmt.Sprintf("to the end of step %d", to)
	}
	return fmt.Sprintf("from step %d to step %d", from, to)
}

// JumpRequested schedules a jump; it is performed when its step is complete.
type JumpRequested struct {
	To      int    `json:"to"`
	Reason  string `json:"reason"`
	Learned string `json:"learned,omitempty"` // the agent's own lesson from the path, in a sentence or two
	By      string `json:"by"`                // ByAgent or ByUser
	Call    string `json:"call,omitempty"`
	Compact bool   `json:"fold,omitempty"` // the user forces the anamnesis pass
	// Overwrite reverts a user's edits, too; they are saved all the same.
	Overwrite bool `json:"overwrite,omitempty"`
	// Git moves the user's git repositories, too: HEAD, its branch and the index.
	Git bool `json:"git,omitempty"`
	// Mail is the D-Mail this is the request of; nil for other jumps.
	Mail *Mail `json:"mail,omitempty"`
	// Inbox is set if a user asked for it through a bucket.
	Inbox *Sent `json:"inbox,omitempty"`
}

// Noun names what was asked for, to the model.
func (j *JumpRequested) Noun() string {
	if j.Mail != nil {
		return "a message"
	}
	return "a jump"
}

// JumpDropped records that a scheduled jump was not performed, and why.
type JumpDropped struct {
	To  int    `json:"to"`
	Why string `json:"why"`
}

// JumpIntended is the point of no return of a jump: both worlds are durable.
type JumpIntended struct {
	From       int     `json:"from"`
	To         int     `json:"to"`
	Reason     string  `json:"reason"`
	Learned    string  `json:"learned,omitempty"`
	Tried      string  `json:"tried,omitempty"` // what the path began with
	Card       string  `json:"card,omitempty"`  // the draft that holds Learned; empty: none could be written
	By         string  `json:"by"`
	Discarded  []Range `json:"discarded"`
	Tokens     int     `json:"tokens"`
	FromCommit string  `json:"from_commit"` // the world just before
	Base       string  `json:"base"`        // changes by a user since this commit stay
	Overwrite  bool    `json:"overwrite,omitempty"`
	ToCommit   string  `json:"to_commit"`
	Plan       string  `json:"plan"` // plan hash
	// Jobs are the background commands that were ended: their steps were left.
	Jobs     []string `json:"jobs,omitempty"`
	Backward bool     `json:"backward"`
	// Conflicts are paths, at most 100 of NConflicts, that the agent changed after the user:
	// the jump restores the user's version.
	Conflicts  []string `json:"conflicts,omitempty"`
	NConflicts int      `json:"n_conflicts,omitempty"`
	// Git are the moves of git repositories, of a jump that was asked for them.
	Git []GitMove `json:"git,omitempty"`
}

// Why returns why the path was left: what the agent learned on it, the reason, and what was tried.
func (j *JumpIntended) Why() string {
	parts := []string{j.Learned, j.Reason, j.Tried}
	if j.Tried != "" {
		parts[2] = "tried: " + j.Tried
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " – ")
}

// JumpDone ends a jump.
type JumpDone struct {
	From      int      `json:"from"`
	To        int      `json:"to"`
	Discarded []Range  `json:"discarded"`
	Compacted bool     `json:"folded"`
	Reverted  []string `json:"reverted"` // paths written or deleted, at most 100
	NReverted int      `json:"n_reverted"`
	// Deleted are those of Reverted that were deleted; nil in records older than the field.
	Deleted []string  `json:"deleted,omitzero"`
	Kept    []Skipped `json:"kept,omitempty"` // at most 100
	NKept   int       `json:"n_kept,omitempty"`
	// LostAttributes are files, at most 100, that came back without something that no snapshot
	// holds: special mode bits, hard links, extended attributes.
	LostAttributes []Skipped `json:"lost_attributes,omitempty"`
	Saved          string    `json:"saved,omitempty"` // commit of the world just before
	// Abandoned: the files stayed as they were found.
	Abandoned bool `json:"abandoned,omitempty"`
	// Base is the commit of the world after the jump if it differs from step To's, and Tree
	// its world id.
	Base string `json:"base,omitempty"`
	Tree string `json:"tree,omitempty"`
	// Conflicts: see JumpIntended.
	Conflicts  []string `json:"conflicts,omitempty"`
	NConflicts int      `json:"n_conflicts,omitempty"`
	// Ignored and Git are changes since the end of step To that no snapshot holds: ignored
	// files and folders, and how git repositories differ from step To. With GitMoved, Git is how the
	// jump moved these.
	Ignored []string `json:"ignored,omitempty"`
	// IgnoredGone are ignored files and folders that discarded steps removed and that the jump
	// cannot bring back.
	IgnoredGone []string `json:"ignored_gone,omitempty"`
	Git         []string `json:"git,omitempty"`
	GitMoved    bool     `json:"git_moved,omitempty"`
	Unseen      bool     `json:"unseen,omitempty"` // the search for Ignored reached its limit
	Words       string   `json:"words,omitempty"`  // the user's own words from the span
	Notice      string   `json:"notice"`           // the world notice
	Backward    bool     `json:"backward"`
}

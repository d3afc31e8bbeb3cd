package op

import (
	"cmp"
	"fmt"
	"strings"
)

// GitSeen records where a git repository of the user's stood at the end of a step, if that differs from
// the repository's GitSeen before it.
type GitSeen struct {
	Dir string `json:"repository"` // where its .git is, relative to the world
	GitAt
	Refs []GitRef `json:"refs,omitempty"` // branches, tags and the stash that changed
}

// GitAt is where a git repository stands.
type GitAt struct {
	Head   string `json:"head,omitempty"`   // the branch that is checked out, such as refs/heads/main; empty: detached
	Commit string `json:"commit,omitempty"` // of HEAD; empty: the branch has none
	// Staged is how the index differs from Commit, as 'git diff-index --raw -z' prints it.
	Staged string `json:"staged,omitempty"`
	Unread string `json:"unread,omitempty"` // why the index, or the repository, is unknown
	During string `json:"during,omitempty"` // what the user was in the middle of, such as "rebase"
}

// String describes HEAD to people and to the model, such as "main at 1234567".
func (g GitAt) String() string {
	name := cmp.Or(strings.TrimPrefix(g.Head, "refs/heads/"), "detached")
	switch {
	case g.Commit != "":
		return fmt.Sprintf("%s at %.7s", name, g.Commit)
	case g.Head == "":
		return "unknown: " + g.Unread
	}
	return name + " without a commit"
}

// NStaged returns how many paths are staged.
func (g GitAt) NStaged() int { return strings.Count(g.Staged, "\x00") / 2 }

// GitRef is a reference that changed. A commit is empty where there was none.
type GitRef struct {
	Name string `json:"name"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// GitMove is how a user's jump moves a git repository.
type GitMove struct {
	Dir  string   `json:"repository"`
	From GitAt    `json:"from"`
	To   GitAt    `json:"to"`
	Refs []GitRef `json:"refs,omitempty"` // the branches From.Head and To.Head, as far as they move
}

// Kind implements Body.
func (*GitSeen) Kind() Kind { return KindGitSeen }

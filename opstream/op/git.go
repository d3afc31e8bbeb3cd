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
	// Bundle is the git bundle, beside the stream, with the commits that are new since, of a task that a bucket keeps;
	// empty: there are none. Unbundled says why new commits are in none.
	Bundle    string `json:"bundle,omitempty"`
	Unbundled string `json:"unbundled,omitempty"`
}

// GitAt is the recorded state of a git repository.
type GitAt struct {
	Head   string `json:"head,omitempty"`   // the branch that is checked out, such as refs/heads/main; empty: detached
	Commit string `json:"commit,omitempty"` // of HEAD; empty: the branch has none
	Refs   string `json:"refs,omitempty"`   // a line with name and commit for each branch, tag and the stash
	Staged string `json:"staged,omitempty"` // how the index differs from Commit, for 'git update-index -z --index-info'
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

// Ref returns the commit of a reference, empty if there is none.
func (g GitAt) Ref(name string) string {
	_, after, _ := strings.Cut("\n"+g.Refs+"\n", "\n"+name+" ")
	id, _, _ := strings.Cut(after, "\n")
	return id
}

// GitMove is how a user's jump moves a git repository.
type GitMove struct {
	Dir      string   `json:"repository"`
	From     GitAt    `json:"from"`
	To       GitAt    `json:"to"`
	Branches []string `json:"branches,omitempty"` // those of From.Head and To.Head that move
}

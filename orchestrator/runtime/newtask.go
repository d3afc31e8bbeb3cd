package runtime

import (
	"fmt"
	"unicode/utf8"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/redact"
)

// New describes a new task.
type New struct {
	ID       string // see NewTaskID
	Dir      string
	Repo     string // see op.TaskOpened; default: worldstate.RepositoryName of Dir
	Request  string
	Model    string
	BaseURL  string
	Reflect  string // see op.TaskOpened
	EAS      int
	EASFrom  string
	Window   int // advertised context window, tokens; 0: unknown
	Encoding string
	Approval string
	Sandbox  string          // see op.TaskOpened
	Rules    []approval.Rule // standing answers for the task
	Writable []string        // see op.TaskOpened; absolute, without links
	Limits   op.Limits
	Tools    []string // beside those that every agent has
	// Mark is the word of the task's marks, for runs that must be reproducible to the byte;
	// empty: a random one.
	Mark   string
	System string    // the system prompt, filled in
	Agent  *op.Agent // the spec; nil: the task has every tool it is given
	// Instructions are the files that System quotes.
	Instructions []op.SourceFile

	NoResearch bool             // calls about new subjects run without an investigation
	Guarded    []op.CallPattern // calls that need one beside the built-in kinds

	Redact []string // see op.TaskOpened

	NoFinalPass bool // the paths the task leaves are not read at its end

	Origin *op.Origin // see op.TaskOpened

	Parent *op.Parent // the task that a subagent's task is a part of
}

// CheckNames rejects names that would be recorded unchanged and hold a secret, or that cannot
// be recorded because they are not UTF-8. It returns ErrSecretName, which does not show the
// secret, or ErrNotText.
func (n *New) CheckNames(secrets []redact.Secret) error {
	for _, path := range append([]string{n.Dir}, n.Writable...) {
		if !utf8.ValidString(path) {
			return fmt.Errorf("%w: %q; rename it", ErrNotText, path)
		}
	}
	r := redact.New(nil, secrets)
	for what, name := range map[string]string{"the task's name": n.ID, "the directory's path": n.Dir} {
		if shown, found := r.Text(name); len(found) > 0 {
			return fmt.Errorf("%w: %s would be recorded, and is %s; take another one", ErrSecretName, what, shown)
		}
	}
	return nil
}

// parent returns the task whose subagent this is; empty for others.
func (n *New) parent() string {
	if n.Parent == nil {
		return ""
	}
	return n.Parent.Task
}

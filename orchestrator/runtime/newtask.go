package runtime

import (
	"fmt"
	"unicode/utf8"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/redact"
)

// New describes a new task: its first operation, as far as the caller knows it, and the request.
// Create fills in the rest: where it is kept, its word for marks, and the rules about it.
type New struct {
	op.TaskOpened
	Request string
	Plan    bool // it begins in plan mode
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
	for what, name := range map[string]string{"the task's name": n.Task, "the directory's path": n.Dir} {
		if shown, found := r.Text(name); len(found) > 0 {
			return fmt.Errorf("%w: %s would be recorded, and is %s; take another one", ErrSecretName, what, shown)
		}
	}
	return nil
}

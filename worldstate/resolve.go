package worldstate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/history"
	"anamnesis/worldstate/internal/refs"
)

// minPrefix is the shortest prefix of an id that Resolve accepts.
const minPrefix = 7

// Resolve returns the snapshot of a name: a step of this World's task, TASK@STEP for a step of
// any task in the store, "@" for the snapshot that this world was last known at, a full id, or
// a unique prefix of at least seven digits. The first match wins. Otherwise the error is
// ErrUnknown; so it is for a step that changed no file, since the previous step has that
// snapshot.
func (w *World) Resolve(ctx context.Context, name string) (ID, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return "", err
	}
	defer end()
	byName, err := w.refs.All()
	if err != nil {
		return "", err
	}
	step := name
	if !strings.Contains(name, "@") {
		step = w.opts.Task + "@" + name
	}
	if h, ok := byName[refs.OfStep(step)]; ok {
		return ID(h.String()), nil
	}
	if name == "@" {
		if h := w.headOf(byName); !h.IsZero() {
			return ID(h.String()), nil
		}
		return "", fmt.Errorf("snapshot %q: %w: this directory has no snapshot yet", name, ErrUnknown)
	}
	if h, ok := gitfmt.ParseHash(name); ok {
		_, err := w.readCommit(h)
		return ID(name), err
	}
	if strings.HasPrefix(name, "@") {
		return "", fmt.Errorf("snapshot %q: %w: the task before @ is missing; a step is TASK@STEP or STEP",
			name, ErrUnknown)
	}
	return w.search(ctx, byName, step, name)
}

// search returns the snapshot that was saved as a step, or else the one whose id begins with
// name.
func (w *World) search(ctx context.Context, byName map[string]gitfmt.Hash, step, name string) (ID, error) {
	commits, err := history.Log(ctx, w.objects, byName, func(string) bool { return true })
	if err != nil {
		return "", err
	}
	var found []string
	broken := ""
	isPrefix := len(name) >= minPrefix && strings.Trim(name, "0123456789abcdef") == ""
	for _, c := range commits {
		id := c.Id.String()
		if c.Step == step {
			return ID(id), nil
		}
		if c.Missing != nil && broken == "" {
			broken = fmt.Sprintf("; unreadable: %v", c.Missing)
		}
		if isPrefix && strings.HasPrefix(id, name) {
			found = append(found, id)
		}
	}
	task, number, named := strings.Cut(name, "@")
	switch {
	case named:
		return "", fmt.Errorf("snapshot %q: %w: task %q has no snapshot of step %q in this store; "+
			"a step that changed no file has the previous step's%s", name, ErrUnknown, task, number, broken)
	case len(found) == 0:
		return "", fmt.Errorf("snapshot %q: %w: no id has this prefix; a step is TASK@STEP, and the log lists them%s",
			name, ErrUnknown, broken)
	case len(found) == 1:
		return ID(found[0]), nil
	}
	slices.Sort(found)
	ids := strings.Join(found, " or ")
	return "", fmt.Errorf("snapshot %q: %w: ambiguous: %s; enter more digits", name, ErrUnknown, ids)
}

// HasTask reports whether a store holds snapshots of a task. It only reads.
func HasTask(store, task string) (bool, error) { return refs.HasTask(store, task) }

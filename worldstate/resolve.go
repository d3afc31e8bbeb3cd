//go:build unix

package worldstate

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/refs"
)

const (
	// minPrefix is the shortest prefix of an id that Resolve takes.
	minPrefix = 7
	// presentName is Resolve's name for the snapshot Last gives.
	presentName = "@"
)

// Resolve gives the snapshot a name stands for: a step of this World's task,
// TASK@STEP for a step of any task in the store, "@" for the snapshot this
// world was last known at, a full id, or a unique prefix of at least seven
// digits. The first that fits wins. Otherwise ErrUnknown.
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
	task, step, other := strings.Cut(name, "@")
	if !other {
		task, step = w.opts.Task, name
	}
	if h, ok := byName[refs.TaskPrefix+task+"/"+step]; ok {
		return ID(h.String()), nil
	}
	if name == presentName {
		if h, ok := byName[refs.WorldPrefix+w.key]; ok {
			return ID(h.String()), nil
		}
		return "", fmt.Errorf("snapshot %q: %w: this directory has none yet", name, ErrUnknown)
	}
	if h, ok := gitfmt.ParseHash(name); ok {
		_, err := w.known(h)
		return ID(name), err
	}
	if other && task == "" {
		return "", fmt.Errorf("snapshot %q: %w: no task is named before the @; a step is TASK@STEP or STEP", name, ErrUnknown)
	}
	if other {
		return "", fmt.Errorf("snapshot %q: %w: task %q has no step %q in this store", name, ErrUnknown, task, step)
	}
	return w.byPrefix(ctx, byName, name)
}

// byPrefix finds the one snapshot whose id begins so.
func (w *World) byPrefix(ctx context.Context, refs map[string]gitfmt.Hash, name string) (ID, error) {
	var found []string
	broken := ""
	if len(name) >= minPrefix && strings.Trim(name, "0123456789abcdef") == "" {
		commits, err := w.history(ctx, refs, func(string) bool { return true })
		if err != nil {
			return "", err
		}
		for _, c := range commits {
			if c.Missing != nil && broken == "" {
				broken = fmt.Sprintf("; what could not be looked at: %v", c.Missing)
			}
			if strings.HasPrefix(c.Id.String(), name) {
				found = append(found, c.Id.String())
			}
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("snapshot %q: %w: no id begins so; a step is TASK@STEP, and 'anamnesis world log' lists them%s", name, ErrUnknown, broken)
	case 1:
		return ID(found[0]), nil
	}
	sort.Strings(found)
	return "", fmt.Errorf("snapshot %q: %w: it could be %s; give more digits", name, ErrUnknown, strings.Join(found, " or "))
}

// HasTask reports whether a store holds snapshots of a task. It only reads.
func HasTask(store, task string) (bool, error) { return refs.HasTask(store, task) }

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// Place names a world: by a task, its directory, or its store. Empty fields are derived from
// the others.
type Place struct {
	Dir, Store, Task string
	Begin            bool // the store is created if it is absent
}

// Use says what the caller of Open does with the directory of a world.
type Use bool

// The uses. Of a live world the directory is changed or examined: a task's directory must exist,
// and the caller recovers the world.
const (
	Stored Use = false
	Live   Use = true
)

// Open opens the world. home is not called if the store is named.
func (p Place) Open(home func() (taskdir.Home, error), use Use, o worldstate.Options) (*worldstate.World, error) {
	dir, store, err := p.find(home, use, &o)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(store); p.Store != "" && !p.Begin && errors.Is(err, fs.ErrNotExist) {
		return nil, remedy.With(Usagef("there is no store in %s", store), remedy.SaveStore, store)
	}
	if o.Task = p.Task; p.Task != "" && p.Dir == "" && p.Store == "" { // the task's record names its directory
		if use == Live {
			if err := workspace.WantDir(p.Task, dir); err != nil {
				return nil, err
			}
		}
		o.StoreOnly = use == Stored
	}
	return worldstate.Open(dir, store, &o)
}

// find returns the directory and the store. The record of a task that ran here names both, and which of the
// program's own folders are never in its world; so does that of a task that works in a directory.
func (p Place) find(home func() (taskdir.Home, error), use Use, o *worldstate.Options) (dir, store string, err error) {
	if p.Store != "" {
		return cmp.Or(p.Dir, "."), p.Store, nil
	}
	h, err := home()
	if err != nil {
		return "", "", err
	}
	o.Exclude, o.Home, o.Secrets = h.Excluded(), h.User, h.Secrets
	if p.Task == "" {
		o.AllTasks = true
		at, err := RealDir(p.Dir)
		if err != nil {
			return "", "", err
		}
		return storeAround(h, at, p.Dir == "", p.Begin, o)
	}
	st, err := taskdir.ReadState(h, p.Task)
	if err != nil {
		return "", "", err
	}
	if use == Live && st.Opened.Origin.Imported() { // its snapshots are of another folder
		return "", "", taskdir.CheckParent(st)
	}
	if p.Dir == "" {
		o.Moved = st.Moved
		if err := h.CheckOwn(&st.Opened); err != nil && use == Live {
			return "", "", err
		}
	}
	return cmp.Or(p.Dir, st.Opened.Dir), h.StoreOf(&st.Opened), nil
}

// storeAround finds a directory that a task works in, and its store: at itself or, with above, its nearest parent.
// With begin it is otherwise at itself.
func storeAround(h taskdir.Home, at string, above, begin bool, o *worldstate.Options) (world, store string, err error) {
	for world := at; ; world = filepath.Dir(world) {
		store := h.Store(world)
		_, err := os.Stat(filepath.Join(store, "HEAD"))
		if err == nil {
			return world, store, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", "", fmt.Errorf("look for the store of %s: %w", world, err)
		}
		if above && world != filepath.Dir(world) {
			continue
		}
		if st := movedTo(h, at, above); st != nil {
			o.Moved = st.Moved
			return st.Opened.Dir, h.StoreOf(&st.Opened), nil
		}
		if !begin {
			return "", "", remedy.With(Usagef("no store for %s", at), remedy.FindStore, "")
		}
		return at, h.Store(at), nil
	}
}

// movedTo returns a task that continued in a directory, or in one above it, and has the store of
// where it was before; nil if there is none.
func movedTo(h taskdir.Home, dir string, above bool) *state.State {
	ids, _ := h.Tasks() // tasks that cannot be listed count as none
	for _, id := range ids {
		st, err := taskdir.ReadState(h, id)
		if err != nil || len(st.Moved) == 0 || h.CheckOwn(&st.Opened) != nil {
			continue
		}
		if rel, err := filepath.Rel(st.Opened.Dir, dir); err == nil && (rel == "." || above && filepath.IsLocal(rel)) {
			return st
		}
	}
	return nil
}

// IsTask reports whether the place is a task's own directory and store, whichever of them are
// named. If not, Task is a name that the store has for a series of snapshots.
func (p Place) IsTask(home func() (taskdir.Home, error)) bool {
	if p.Task == "" || p.Dir == "" && p.Store == "" {
		return p.Task != ""
	}
	h, err := home()
	if err != nil {
		return false
	}
	st, err := taskdir.ReadState(h, p.Task)
	return err == nil && samePlace(cmp.Or(p.Dir, "."), st.Opened.Dir) &&
		samePlace(cmp.Or(p.Store, h.StoreOf(&st.Opened)), h.StoreOf(&st.Opened))
}

func samePlace(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// manualTask is the task of snapshots that a user saves by hand.
const manualTask = "cli"

// CollectGarbage collects the store of a place, or every store of the home. each receives the
// report of each store.
func (s *Service) CollectGarbage(ctx context.Context, p Place, all bool, o worldstate.GCOptions,
	each func(worldstate.GCReport)) error {
	stores := []string{p.Store}
	var err error
	switch {
	case p.Store != "":
	case all:
		stores, err = s.Home.Stores()
	default:
		_, stores[0], err = p.find(func() (taskdir.Home, error) { return s.Home, nil }, Stored, new(worldstate.Options))
	}
	if err != nil {
		return err
	}
	tasks, err := s.Home.Tasks()
	if err != nil {
		return err
	}
	o.Live = func(task string) bool { return task == manualTask || s.Home.HasTask(task) }
	for _, store := range stores {
		o.Keep = s.namedSteps(tasks, store)
		r, err := worldstate.GC(ctx, store, &o)
		if err != nil {
			return err
		}
		each(r)
	}
	return nil
}

// namedSteps returns the snapshots that tasks' streams name. Of an unreadable stream, the refs
// keep the steps.
func (s *Service) namedSteps(tasks []string, store string) []worldstate.ID {
	var ids []worldstate.ID
	for _, task := range tasks {
		st, r, err := taskdir.OpenState(s.Home, task)
		if err != nil {
			continue
		}
		if s.Home.StoreOf(&st.Opened) == store {
			named, _, _ := workspace.Commits(r, st, nil) // only the readable ones
			ids = append(ids, slices.DeleteFunc(named, func(id worldstate.ID) bool { return id == "" })...)
		}
		r.Close()
	}
	return ids
}

// StepWorlds opens the snapshots of a task and returns those that some steps ended with.
// overcome describes damage of the stream that the store made up for. The caller closes the
// world.
func (s *Service) StepWorlds(task string, steps ...int) (
	w *worldstate.World, ends []worldstate.ID, overcome string, err error) {
	st, r, err := taskdir.OpenState(s.Home, task)
	if err != nil {
		return nil, nil, "", err
	}
	defer r.Close()
	for _, id := range steps {
		step, err := st.Checkpoint(id)
		if err != nil {
			return nil, nil, "", err
		}
		if !step.Saved {
			return nil, nil, "", Usagef("step %d has no checkpoint: %s", id, step.NoCheckpoint)
		}
	}
	if w, err = s.World(st); err != nil {
		return nil, nil, "", err
	}
	if ends, overcome, err = workspace.Commits(r, st, w, steps...); err != nil {
		return nil, nil, "", errors.Join(err, w.Close())
	}
	return w, ends, overcome, nil
}

// Changes compares two snapshots, within some paths if any are given.
func Changes(ctx context.Context, w *worldstate.World, from, to worldstate.ID, paths []string) (
	[]worldstate.Change, error) {
	if slices.Contains(paths, "") {
		return nil, Usagef("an empty path; \".\" is everything")
	}
	changes, err := w.Diff(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if len(paths) > 0 {
		changes = slices.DeleteFunc(changes, func(c worldstate.Change) bool { return !beneath(c.Path, paths) })
	}
	return w.Renames(ctx, changes)
}

func beneath(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		root = strings.Trim(strings.TrimPrefix(root, "./"), "/")
		return root == "." || root == "" || path == root || strings.HasPrefix(path, root+"/")
	})
}

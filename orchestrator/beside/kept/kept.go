// Package kept saves the versions of files that another agent kept itself as snapshots of
// its imported session.
package kept

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// Keeper saves what an agent itself kept of files as snapshots, in a store of the imported
// task's own. The session's directory is neither read nor changed.
type Keeper struct {
	s     *sessions.Session
	task  string
	h     taskdir.Home
	git   *worldstate.Repository // of opencode's snapshots; nil: none
	below string                 // the session's directory in these, with a slash
	world *worldstate.World      // of a folder that holds the files of one step after the other
	root  *os.Root
	has   map[string]version // what the folder holds
	gone  bool               // a version of the present step could not be read
	saved map[int]saved
	last  state // of the step that was looked at last
}

// state is what is known of the files when a step had ended.
type state struct {
	step  int
	files map[string]version
	gone  bool // see Keeper.gone
}

// saved is the snapshot of a step.
type saved struct {
	worldstate.Snapshot
	tree string // of the agent's repository
}

// version is one version of a file: a copy of the agent's, or an object of its repository.
type version struct {
	copy   string
	object worldstate.RepositoryFile
}

// Folder is where the files of an imported task are put to be saved. The store of its
// snapshots is that of this folder.
func Folder(h taskdir.Home, task string) string { return filepath.Join(h.Task(task), "kept") }

// New returns the keeper of a session. The caller closes it. stores is opencode's folder of snapshots.
func New(h taskdir.Home, s *sessions.Session, task, stores string) *Keeper {
	k := &Keeper{s: s, task: task, h: h, has: map[string]version{}, saved: map[int]saved{}, last: state{step: -2}}
	// A store belongs to the top of a repository, and is named by its path.
	for top := s.Dir; s.Project != "" && stores != "" && filepath.IsLocal(s.Project); top = filepath.Dir(top) {
		sum := sha1.Sum([]byte(top))
		dir := filepath.Join(stores, s.Project, hex.EncodeToString(sum[:]))
		if _, err := os.Stat(dir); err == nil {
			k.git = worldstate.OpenRepository(dir)
			if rel, err := filepath.Rel(top, s.Dir); err == nil && rel != "." {
				k.below = filepath.ToSlash(rel) + "/"
			}
			break
		}
		if top == filepath.Dir(top) {
			break
		}
	}
	return k
}

// Close removes the folder: it is made again from the agent's own files.
func (k *Keeper) Close() (err error) {
	if k.world != nil {
		err = errors.Join(k.root.Close(), k.world.Close(), os.RemoveAll(Folder(k.h, k.task)))
	}
	return err
}

// before returns the last step up to i, on its path, at which files were kept; -2: none.
func (k *Keeper) before(i int) int {
	for ; i >= 0; i = k.s.Steps[i].Parent {
		if _, ok := k.s.Kept[i]; ok {
			return i
		}
	}
	if _, ok := k.s.Kept[-1]; ok && i == -1 {
		return i
	}
	return -2
}

// files returns what is known of the files when step i had ended: each as the agent last
// kept it, on the path to that step.
func (k *Keeper) files(i int) (map[string]version, error) {
	kept, known := k.s.Kept[i], map[string]version{}
	if kept.Tree != "" {
		if k.git == nil {
			return nil, errors.New("its snapshots are gone")
		}
		files, err := k.git.Files(kept.Tree, k.below)
		for name, f := range files {
			known[strings.TrimPrefix(name, k.below)] = version{object: f}
		}
		return known, err
	}
	if i >= 0 {
		switch before := k.before(k.s.Steps[i].Parent); before {
		case -2:
		case k.last.step:
			known, k.gone = maps.Clone(k.last.files), k.last.gone
		default:
			var err error
			if known, err = k.files(before); err != nil {
				return nil, err
			}
		}
	}
	for name, from := range kept.Files {
		delete(known, name)
		if info, err := os.Lstat(from); err == nil && info.Mode().IsRegular() {
			known[name] = version{copy: from}
		} else if from != "" {
			k.gone = true
		}
	}
	return known, nil
}

// Save takes a snapshot of what was kept at step i into b. What cannot be read is not in it;
// where nothing was kept, b stays.
func (k *Keeper) Save(ctx context.Context, i int, b *op.WorldSaved) error {
	kept, ok := k.s.Kept[i]
	if !ok {
		return nil
	}
	var now saved // at first that of the step before
	if i >= 0 {
		now = k.saved[k.before(k.s.Steps[i].Parent)]
	}
	if kept.Tree == "" || kept.Tree != now.tree {
		var err error
		if now, err = k.save(ctx, i, now.ID); err != nil || now.ID == "" {
			return err
		}
	}
	k.saved[i] = now
	b.Commit, b.Tree, b.Complete, b.Files, b.Error = string(now.ID), now.Tree, now.Complete, now.Files, ""
	return nil
}

// save takes a snapshot of the files of step i; none if nothing is known of them.
func (k *Keeper) save(ctx context.Context, i int, parent worldstate.ID) (now saved, err error) {
	k.gone = false
	want, err := k.files(i)
	if err != nil || len(want) == 0 && len(k.has) == 0 {
		return now, nil // the agent has removed them meanwhile, or there were none
	}
	k.last = state{i, want, k.gone}
	if err := k.open(); err != nil {
		return now, err
	}
	for name := range k.has {
		if _, ok := want[name]; !ok {
			if err := k.remove(name); err != nil {
				return now, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if v := want[name]; v != k.has[name] {
			if k.has[name] != (version{}) {
				if err := k.remove(name); err != nil {
					return now, err
				}
			}
			k.write(name, v)
		}
	}
	now.tree = k.s.Kept[i].Tree
	now.Snapshot, err = k.world.Save(ctx, worldstate.SaveOptions{Message: fmt.Sprintf("kept by %s", k.s.Agent), Parent: parent, Ref: fmt.Sprint(i + 1)})
	now.Complete = now.Complete && !k.gone
	return now, err
}

func (k *Keeper) open() (err error) {
	if k.world != nil {
		return nil
	}
	dir := Folder(k.h, k.task)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil { // left by an import that was killed
		return err
	}
	if k.root, err = os.OpenRoot(dir); err == nil {
		k.world, err = worldstate.Open(dir, k.h.Store(dir), &worldstate.Options{Task: k.task, FileLimitBytes: k.h.FileLimitBytes, Secrets: k.h.Secrets, SizeLimitBytes: k.h.StoreLimitBytes})
	}
	return err
}

func (k *Keeper) remove(name string) error {
	delete(k.has, name)
	err := k.root.Remove(name)
	for dir := path.Dir(name); err == nil && dir != "."; dir = path.Dir(dir) {
		if k.root.Remove(dir) != nil {
			break // it holds others
		}
	}
	return err
}

// write puts a file into the folder. One that cannot be read or written, such as for its
// name, is left out; what would make the folder a repository is, too.
func (k *Keeper) write(name string, v version) {
	var data []byte
	var err error
	switch {
	case slices.Contains(strings.Split(name, "/"), ".git"):
		err = fs.ErrInvalid
	case v.copy != "":
		data, err = os.ReadFile(v.copy)
	default:
		data, err = k.git.Read(v.object)
	}
	if err == nil {
		err = k.root.MkdirAll(path.Dir(name), 0o700)
	}
	if err == nil && v.object.Mode&fs.ModeSymlink != 0 {
		err = k.root.Symlink(string(data), name)
	} else if err == nil {
		if err = k.root.WriteFile(name, data, v.object.Mode|0o600); err != nil {
			_ = k.root.Remove(name) // partly written
		}
	}
	if err != nil {
		k.gone = true
		return
	}
	k.has[name] = v
}

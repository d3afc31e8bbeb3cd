// Package worktree gives a task a directory of its own, made of another one: a git worktree, or a copy where there is
// no commit. Changes come back from it as files, not as commits: all of them, or none.
package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// baseRef names the snapshot that a tree's changes are counted from: of the other directory when the tree was made,
// then of the tree when it was applied. It is in the tree's own store.
const baseRef = "base"

// ErrName: no directory can be made of this name.
var ErrName = errors.New("no worktree can be made")

// Made is a new tree.
type Made struct {
	op.Worktree
	Dir         string // in the tree, what from is in its repository
	Uncommitted int    // files that differ from the commit, as in the other directory
	Left        []worldstate.Skip
	Nested      []string // repositories inside, whose files are there without their .git

	made  bool // Root is this tree's; before, it only reserves the name
	fresh bool // no earlier tree of this name had a store
}

// Create makes a tree of the repository or directory from. An empty name is the first free number. What fails leaves
// nothing. It runs no hook, and writes the repository's .git by git worktree alone.
func Create(ctx context.Context, h taskdir.Home, from, name string, o worldstate.Options) (m Made, err error) {
	top := from
	if _, common, _ := worldstate.GitAround(from); common != "" {
		for _, err := os.Lstat(filepath.Join(top, ".git")); err != nil; _, err = os.Lstat(filepath.Join(top, ".git")) {
			top = filepath.Dir(top)
		}
		_, unborn := worldstate.GitCommand{Top: top}.Run(ctx, "rev-parse", "-q", "--verify", "HEAD^{commit}")
		m.Git = unborn == nil
	}
	inside, err := filepath.Rel(top, from)
	if err != nil {
		return m, err
	}
	if err := taskdir.CheckTaskID(cmp.Or(name, "1")); err != nil {
		return m, fmt.Errorf("%w: %q: a name has letters, digits, '_', '-' and '.', at most 80", ErrName, name)
	}
	forks := top + "-forks"
	if err = os.MkdirAll(forks, 0o755); err == nil {
		err = fs.ErrExist
	}
	for n := 1; errors.Is(err, fs.ErrExist) && n <= maxTries; n++ { // the directory reserves the name
		m.From, m.Root = top, filepath.Join(forks, cmp.Or(name, strconv.Itoa(n)))
		if err = os.Mkdir(m.Root, 0o755); name != "" && errors.Is(err, fs.ErrExist) {
			return m, fmt.Errorf("%w: %s exists; use another name", ErrName, m.Root)
		}
	}
	if err != nil {
		return m, fmt.Errorf("make the worktree: %w", err)
	}
	m.Dir = filepath.Join(m.Root, inside)
	_, err = os.Lstat(h.Store(m.Root))
	m.fresh = err != nil
	err = m.fill(ctx, h, o)
	own, there := filepath.Join(m.From, ".anamnesis"), filepath.Join(m.Root, ".anamnesis") // in no snapshot
	if _, missing := os.Lstat(there); err == nil && missing != nil {
		if err = os.CopyFS(there, os.DirFS(own)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = m.trust(h)
	}
	if err != nil {
		return m, errors.Join(err, m.Remove(ctx, h))
	}
	return m, nil
}

// trust approves in the tree what the user approved in the other directory, for the same content.
func (m *Made) trust(h taskdir.Home) error {
	t := consent.OpenTrust(h.Approvals())
	all, err := t.List()
	var same []consent.Approval
	for _, a := range all {
		if rel, err := filepath.Rel(m.From, a.Dir); err == nil && filepath.IsLocal(rel) {
			a.Dir = filepath.Join(m.Root, rel)
			same = append(same, a)
		}
	}
	if err != nil || len(same) == 0 {
		return err
	}
	return t.Approve(same...)
}

// fill makes the tree with the other directory's present files. Their snapshot goes into the store that the tree's
// task will have, so that the two can be compared.
func (m *Made) fill(ctx context.Context, h taskdir.Home, o worldstate.Options) error {
	there, err := open(h, &m.Worktree, m.From, o)
	if err != nil {
		return err
	}
	defer there.Close()
	base, err := there.Save(ctx, worldstate.SaveOptions{Message: "what the worktree began with", Ref: baseRef})
	if err != nil {
		return err
	}
	m.Left = base.Skipped
	m.Nested = slices.DeleteFunc(there.Repositories(maxNested), func(dir string) bool { return m.Git && dir == "." })
	if !m.Git {
		if err := os.Remove(m.Root); err != nil { // Fork makes the directory
			return err
		}
		_, err = there.Fork(ctx, base.ID, m.Root)
		m.made = err == nil
		return err
	}
	// git worktree add reads the entries of all worktrees, and fails at one that another git has not completed.
	lock, err := durable.LockFolder(filepath.Dir(m.Root))
	if err == nil {
		_, err = worldstate.GitCommand{Top: m.From}.Run(ctx, "worktree", "add", "--quiet", "--detach", m.Root)
		lock.Close()
	}
	if err != nil {
		return fmt.Errorf("make the worktree: %w", err)
	}
	m.made = true
	here, err := open(h, &m.Worktree, m.Root, o)
	if err != nil {
		return err
	}
	defer here.Close()
	// The tree holds the commit alone: what the restore changes there is not committed.
	res, err := here.RestoreTo(ctx, base.ID, worldstate.RestoreOptions{
		PlanOptions: worldstate.PlanOptions{OtherWorld: true, OverwriteEdits: true}, Message: "the commit alone"})
	m.Uncommitted = len(res.Written) + len(res.Deleted)
	if err == nil {
		err = here.Sync()
	}
	if err == nil {
		err = os.MkdirAll(m.Dir, 0o755)
	}
	return err
}

// maxNested bounds the repositories that are named, maxTries the numbers that are tried as a name.
const maxNested, maxTries = 16, 1000

// Remove removes a tree in which no task began, and its store if no earlier task used it.
func (m *Made) Remove(ctx context.Context, h taskdir.Home) error {
	ctx = context.WithoutCancel(ctx)
	if m.Git && m.made {
		git := worldstate.GitCommand{Top: m.From}
		if _, err := git.Run(ctx, "worktree", "remove", "--force", m.Root); err != nil {
			return err
		}
	}
	var err error
	if m.made {
		err = os.RemoveAll(m.Root)
	} else {
		_ = os.Remove(m.Root) // it is empty, or another process's
	}
	if m.fresh {
		err = errors.Join(err, os.RemoveAll(h.Store(m.Root)))
	}
	_ = os.Remove(filepath.Dir(m.Root)) // others may be in it
	return err
}

func open(h taskdir.Home, t *op.Worktree, dir string, o worldstate.Options) (*worldstate.World, error) {
	o.Exclude, o.Home, o.Secrets = h.Excluded(), h.User, h.Secrets
	return worldstate.Open(dir, h.Store(t.Root), &o)
}

// Changes are what a tree would change in the directory that it was made of.
type Changes struct {
	List      []worldstate.Change // with renames
	Conflicts []worldstate.Skip   // paths that both changed, and how; they are not in List
	Merged    []string            // text files that both changed, at different lines

	there, here   *worldstate.World
	now, want, at worldstate.ID // of the other directory, what it becomes, and the tree's
	paths         []string
}

// Compare saves a tree and the directory that it was made of, and compares them with what they had in common.
// ErrBusy: a task is at work in one of them.
func Compare(ctx context.Context, h taskdir.Home, t *op.Worktree, o worldstate.Options) (c *Changes, err error) {
	c = &Changes{}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	for _, w := range []struct {
		dir string
		at  **worldstate.World
	}{{t.From, &c.there}, {t.Root, &c.here}} {
		if _, err := os.Stat(w.dir); err != nil {
			return c, fmt.Errorf("%s is gone, and cannot be compared: %w", w.dir, err)
		}
		if err := h.CheckFree(w.dir); err != nil {
			return c, err
		}
		if *w.at, err = open(h, t, w.dir, o); err != nil {
			return c, err
		}
		if _, err = (*w.at).Recover(ctx); err != nil {
			return c, err
		}
	}
	base, err := c.here.Resolve(ctx, baseRef)
	if err != nil {
		return c, fmt.Errorf("apply: what %s began with: %w", t.Root, err)
	}
	// A ref of its own keeps what the directory was, also after later comparisons.
	if c.now, err = save(ctx, c.there, fmt.Sprint("before-", time.Now().UnixMilli())); err != nil {
		return c, err
	}
	if c.at, err = save(ctx, c.here, ""); err != nil {
		return c, err
	}
	c.want = c.at
	return c, c.compare(ctx, base)
}

func save(ctx context.Context, w *worldstate.World, ref string) (worldstate.ID, error) {
	s, err := w.Save(ctx, worldstate.SaveOptions{Message: "compared", Ref: ref})
	return s.ID, err
}

func (c *Changes) compare(ctx context.Context, base worldstate.ID) error {
	var by [3]map[string]*worldstate.Change // in the tree, in the other directory, and between them
	for i, ends := range [][2]worldstate.ID{{base, c.at}, {base, c.now}, {c.now, c.at}} {
		changes, err := c.here.Diff(ctx, ends[0], ends[1])
		if err != nil {
			return err
		}
		by[i] = make(map[string]*worldstate.Change, len(changes))
		for k := range changes {
			by[i][changes[k].Path] = &changes[k]
		}
	}
	merged := make(map[string][]byte)
	for path, own := range by[0] {
		other := by[1][path]
		if by[2][path] == nil {
			continue // the same in both
		}
		if other != nil {
			text, err := c.merge(ctx, base, own, other)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				why := fmt.Sprintf("%s in the worktree, %s here; %v", own.Kind, other.Kind, err)
				c.Conflicts = append(c.Conflicts, worldstate.Skip{Path: path, Reason: why})
				continue
			}
			merged[path], c.Merged = text, append(c.Merged, path)
		}
		c.paths = append(c.paths, path)
	}
	return c.check(ctx, merged)
}

// check plans the changes, so that what cannot be made is a conflict before the user is asked.
func (c *Changes) check(ctx context.Context, merged map[string][]byte) (err error) {
	if len(c.paths) == 0 {
		return nil
	}
	if len(merged) > 0 {
		if c.want, err = c.here.Replace(ctx, c.at, merged); err != nil {
			return err
		}
	}
	p, err := c.plan(ctx)
	if err != nil {
		return err
	}
	for _, k := range p.Keep {
		c.Conflicts = append(c.Conflicts, k)
		c.paths = slices.DeleteFunc(c.paths, func(path string) bool { return path == k.Path })
	}
	slices.Sort(c.Merged)
	slices.SortFunc(c.Conflicts, func(a, b worldstate.Skip) int { return strings.Compare(a.Path, b.Path) })
	all, err := c.here.Diff(ctx, c.now, c.want)
	if err != nil {
		return err
	}
	listed := make(map[string]bool, len(c.paths))
	for _, path := range c.paths {
		listed[path] = true
	}
	for _, change := range all {
		if listed[change.Path] {
			c.List = append(c.List, change)
		}
	}
	c.List, err = c.here.Renames(ctx, c.List)
	return err
}

func (c *Changes) plan(ctx context.Context) (worldstate.Plan, error) {
	return c.there.Plan(ctx, c.want, &worldstate.PlanOptions{Paths: c.paths, Base: c.now, OtherWorld: true})
}

var errUnmerged = errors.New("they cannot be merged")

// merge merges a file that both changed by git merge-file. It fails where both changed the same lines, and where
// one is no text.
func (c *Changes) merge(ctx context.Context, base worldstate.ID, own, other *worldstate.Change) ([]byte, error) {
	for _, change := range []*worldstate.Change{own, other} {
		if change.Kind != worldstate.Modified || change.Secret || change.Old.Mode != change.New.Mode {
			return nil, errUnmerged
		}
	}
	dir, err := os.MkdirTemp("", "anamnesis-merge-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, id := range map[string]worldstate.ID{"here": c.now, "base": base, "worktree": c.at} {
		var text strings.Builder
		if err := c.here.Content(ctx, id, own.Path, &text); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text.String()), 0o600); err != nil {
			return nil, err
		}
	}
	_, err = worldstate.GitCommand{Top: dir}.Run(ctx, "merge-file", "-q", "here", "base", "worktree")
	if conflicts, ok := errors.AsType[*exec.ExitError](err); ok && conflicts.ExitCode() < 128 { // their number
		return nil, errors.New("the same lines")
	} else if err != nil {
		return nil, errUnmerged
	}
	return os.ReadFile(filepath.Join(dir, "here"))
}

// Patch returns the changes as a unified diff.
func (c *Changes) Patch(ctx context.Context) (string, error) {
	var text strings.Builder
	err := c.here.Patch(ctx, &text, c.List)
	return text.String(), err
}

// Apply makes the changes of the list, all or none. Source is what the directory was before. Afterwards the tree's
// changes count from here.
func (c *Changes) Apply(ctx context.Context) (worldstate.Result, error) {
	p, err := c.plan(ctx)
	if err != nil {
		return worldstate.Result{}, err
	}
	if p.Source != c.now {
		return worldstate.Result{}, fmt.Errorf("%w: the directory changed meanwhile", worldstate.ErrStale)
	}
	res, err := c.there.Restore(ctx, p)
	if err == nil {
		err = c.there.Sync()
	}
	// A path that was kept still differs, and counts as a change only from the earlier base.
	if err == nil && len(res.Kept) == 0 {
		_, err = save(ctx, c.here, baseRef)
	}
	return res, err
}

func (c *Changes) Close() error {
	var errs []error
	for _, w := range []*worldstate.World{c.there, c.here} {
		if w != nil {
			errs = append(errs, w.Close())
		}
	}
	return errors.Join(errs...)
}

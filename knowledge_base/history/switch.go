package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"golang.org/x/sys/unix"

	"anamnesis/knowledge_base/history/internal/gitdir"
	"anamnesis/opstream/durable"
)

const (
	// replacedFile lists in .git, a line each, the commits that rewrites replaced
	// and the marks of the rewrites.
	replacedFile = "anamnesis-replaced"
	// rewrittenDir is a rewritten repository that takes the place of .git, or the
	// old one afterwards; beforeDir is the old one where the two cannot be exchanged.
	rewrittenDir = ".git-redacted"
	beforeDir    = ".git-replaced"
	makingDir    = ".git-redacting"
)

// ErrReplaced is returned by Fetch for a history with commits that a rewrite
// replaced here.
var ErrReplaced = errors.New("the remote has the history that was replaced here")

// Rewrite is a rewritten repository beside the folder's, durable, which Switch
// puts in its place.
type Rewrite struct {
	*Survey
	r       *Repo
	tips    []*plumbing.Reference
	release func()
}

// Rewrite makes one. mark names it: [Repo.HasMark] says whether it took place.
// The index is locked until Switch or Drop. What nothing leads to, git's reflogs
// and older stashes are left behind. It is an [ErrBusy] in the middle of a merge
// and the like.
func (r *Repo) Rewrite(ctx context.Context, scrub Scrub, mark string) (*Rewrite, error) {
	r.reopen()
	if err := r.Ready(); err != nil {
		return nil, err
	}
	for _, name := range []string{"shallow", "worktrees"} {
		if _, err := os.Lstat(filepath.Join(r.git, name)); err == nil {
			return nil, fmt.Errorf("%w: %s is shallow or has linked worktrees; run 'git fetch --unshallow' or 'git worktree remove' there first", ErrBusy, r.dir)
		}
	}
	if err := Settle(r.dir); err != nil {
		return nil, err
	}
	// Before the lock: with it Settle knows a lock of a dead rewrite.
	if err := os.Mkdir(filepath.Join(r.dir, makingDir), durable.DirMode); err != nil {
		return nil, err
	}
	release, err := r.lock()
	if err != nil {
		return nil, errors.Join(err, Settle(r.dir))
	}
	rw := &Rewrite{r: r, release: release}
	if err := rw.make(ctx, scrub, mark); err != nil {
		rw.Drop()
		return nil, fmt.Errorf("rewrite the history of %s: %w", r.dir, err)
	}
	return rw, nil
}

func (rw *Rewrite) make(ctx context.Context, scrub Scrub, mark string) error {
	r, making := rw.r, filepath.Join(rw.r.dir, makingDir)
	if err := copyRest(r.git, making); err != nil {
		return err
	}
	to := &gitdir.Packer{St: filesystem.NewStorage(osfs.New(making), cache.NewObjectLRU(objectCacheBytes)), Done: map[plumbing.Hash]bool{}}
	w, err := r.rewriter(ctx, scrub, to)
	if err != nil {
		return err
	}
	if err := to.Flush(); err != nil {
		return err
	}
	rw.Survey, rw.tips = w.survey(), w.tips
	made := &Repo{dir: r.dir, git: making}
	if err := w.writeRefs(ctx, made); err != nil {
		return err
	}
	if err := w.writeIndex(made); err != nil {
		return err
	}
	replaced, err := r.readReplaced()
	if err != nil {
		return err
	}
	for was, is := range w.commits {
		if was != is {
			replaced[was.String()] = true
		}
		delete(replaced, is.String())
	}
	replaced[mark] = true
	if err := gitdir.Replace(made.git, filepath.Join(making, replacedFile), []byte(strings.Join(slices.Sorted(maps.Keys(replaced)), "\n")+"\n")); err != nil {
		return err
	}
	if err := gitdir.SyncTree(making); err != nil {
		return err
	}
	if err := os.Rename(making, filepath.Join(r.dir, rewrittenDir)); err != nil {
		return err
	}
	return durable.Sync(r.dir)
}

// HasMark reports whether the rewrite of that mark took place.
func (r *Repo) HasMark(mark string) (bool, error) {
	replaced, err := r.readReplaced()
	return replaced[mark], err
}

// Remotes returns the names of the folder's remotes, and "" for one that was named
// by its address.
func (r *Repo) Remotes() ([]string, error) {
	c, err := r.st.Config()
	if err != nil {
		return nil, fmt.Errorf("read the configuration of %s: %w", r.git, err)
	}
	out := slices.Sorted(maps.Keys(c.Remotes))
	if fetched, _ := filepath.Glob(filepath.Join(r.git, filepath.FromSlash(fetchedRefs)+"*")); len(out) == 0 && len(fetched) > 0 {
		out = append(out, "")
	}
	return out, nil
}

// Tracked returns the paths of the files in git's index that are in the folder.
func (r *Repo) Tracked() ([]string, error) {
	idx, err := r.readIndex()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range idx.Entries {
		if e.Mode.IsFile() && !e.SkipWorktree {
			out = append(out, e.Name)
		}
	}
	return out, nil
}

// Branch returns the current branch's short name.
func (r *Repo) Branch() (string, error) {
	branch, _, err := r.head()
	return branch.Short(), err
}

// Drop removes the rewritten repository.
func (rw *Rewrite) Drop() {
	_ = Settle(rw.r.dir) // the next one drops what stays
	rw.release()
}

// Switch puts the rewritten repository in the place of the old one, which is
// removed. At no moment is there another than one of the two.
func (rw *Rewrite) Switch() error {
	r := rw.r
	defer rw.release()
	r.reopen()
	now, err := r.tips()
	if err != nil {
		return err
	}
	if !slices.EqualFunc(now, rw.tips, func(a, b *plumbing.Reference) bool { return a.String() == b.String() }) {
		return errors.Join(fmt.Errorf("%w: a branch of %s moved meanwhile; run it again", ErrBusy, r.dir), Settle(r.dir))
	}
	ready := filepath.Join(r.dir, rewrittenDir)
	err = gitdir.Exchange(ready, r.git)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, errors.ErrUnsupported) {
		// Between the two there is none; Settle ends it.
		if err = os.Rename(r.git, filepath.Join(r.dir, beforeDir)); err == nil {
			err = os.Rename(ready, r.git)
		}
	}
	if err != nil {
		return fmt.Errorf("put the rewritten repository in the place of %s: %w", r.git, err)
	}
	if err := durable.Sync(r.dir); err != nil {
		return err
	}
	r.reopen()
	return Settle(r.dir)
}

// Settle ends what a dead rewrite left in a folder. The caller is the only one of
// ours that writes there.
func Settle(dir string) error {
	ready, old := filepath.Join(dir, rewrittenDir), filepath.Join(dir, ".git")
	if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(ready, old); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		if err := durable.Sync(dir); err != nil {
			return err
		}
	}
	for _, left := range []string{makingDir, rewrittenDir, beforeDir} {
		left = filepath.Join(dir, left)
		if _, err := os.Lstat(left); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		r := &Repo{dir: dir, git: old}
		if err := r.dropDeadLock(filepath.Join(old, lockName), filepath.Join(old, "index.lock")); err != nil {
			return err
		}
		if err := os.RemoveAll(left); err != nil {
			return err
		}
	}
	return nil
}

// writeRefs writes the refs as they are after the rewrite.
func (w *rewriter) writeRefs(ctx context.Context, made *Repo) error {
	var packed strings.Builder
	for _, ref := range w.tips {
		if ref.Type() == plumbing.HashReference {
			id, ok := w.commits[ref.Hash()]
			if !ok {
				var err error
				if id, err = w.object(ctx, ref.Hash()); err != nil {
					return err
				}
			}
			packed.WriteString(id.String() + " " + string(ref.Name()) + "\n")
			continue
		}
		path := filepath.Join(made.git, filepath.FromSlash(string(ref.Name())))
		if err := os.MkdirAll(filepath.Dir(path), durable.DirMode); err != nil {
			return err
		}
		if err := gitdir.Replace(made.git, path, []byte("ref: "+string(ref.Target())+"\n")); err != nil {
			return err
		}
	}
	if err := w.to.Flush(); err != nil {
		return err
	}
	return gitdir.Replace(made.git, filepath.Join(made.git, "packed-refs"), []byte(packed.String()))
}

// writeIndex writes git's index with the new ids and names: what was staged stays
// staged.
func (w *rewriter) writeIndex(made *Repo) error {
	idx, err := w.r.readIndex()
	if err != nil {
		return err
	}
	for _, e := range idx.Entries {
		ch, ok := w.files[at{e.Name, e.Hash}]
		if now := w.renamed(e.Name); ok && ch.id != e.Hash || now != e.Name {
			e.Name, e.Size, e.ModifiedAt, e.CreatedAt = now, 0, time.Time{}, time.Time{}
		}
		if ok {
			e.Hash = ch.id
		}
	}
	idx.Cache, idx.ResolveUndo, idx.EndOfIndexEntry = nil, nil, nil
	var b bytes.Buffer
	if err := index.NewEncoder(&b).Encode(idx); err != nil {
		return fmt.Errorf("encode git index: %w", err)
	}
	return gitdir.Replace(made.git, filepath.Join(made.git, "index"), b.Bytes())
}

// derived are the parts of .git that a rewrite creates again or leaves behind: they
// may hold what it replaces.
func derived(name string) bool {
	switch name {
	case "objects", "refs", "packed-refs", "logs", "index", "rr-cache", "lost-found", replacedFile:
		return true
	}
	return name != "HEAD" && strings.HasSuffix(name, "_HEAD") || strings.HasSuffix(name, "_EDITMSG") || strings.HasSuffix(name, "_MSG") ||
		strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, quarantinePrefix) || name == lockName
}

// copyRest makes a repository with the rest of another's .git: its
// configuration, hooks, excludes.
func copyRest(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(to, filepath.FromSlash(d)), durable.DirMode); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if derived(e.Name()) {
			continue
		}
		if err := gitdir.CopyPath(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// readReplaced returns what is listed as replaced in .git: ids of commits, and
// marks of rewrites.
func (r *Repo) readReplaced() (map[string]bool, error) {
	data, err := os.ReadFile(filepath.Join(r.git, replacedFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	out := make(map[string]bool)
	for line := range strings.Lines(string(data)) {
		out[strings.TrimSpace(line)] = true
	}
	return out, nil
}

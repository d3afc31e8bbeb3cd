package restore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// Outside is a directory that must not contain a fork, with its description.
type Outside struct{ Dir, What string }

// Fork creates the directory target from a listing and returns its absolute path; see
// worldstate.World.Fork. ErrRefused: target exists, or is in one of the directories in not.
// ErrNoDirectory: its parent does not exist.
func Fork(ctx context.Context, env Effects, target string, list *tree.Listing, not []Outside) (dir string, err error) {
	if dir, err = forkPlace(target, not); err != nil {
		return "", err
	}
	if err = forkAt(ctx, env, filepath.Dir(dir), filepath.Base(dir), list); errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%w: %s has appeared meanwhile", gitfmt.ErrRefused, dir)
	}
	return dir, err
}

// forkPlace checks a fork's target and returns its absolute path.
func forkPlace(target string, not []Outside) (string, error) {
	abs, err := filepath.Abs(target)
	if err != nil {
		return "", err
	}
	// The target does not exist, so links are resolved in the path of its parent.
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: %s", gitfmt.ErrNoDirectory, filepath.Dir(abs))
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", gitfmt.ErrNoDirectory, err)
	}
	place := filepath.Join(parent, filepath.Base(abs))
	if _, err := os.Lstat(place); !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: %s exists; name a directory that does not", gitfmt.ErrRefused, place)
	}
	for _, no := range not {
		if rel, err := filepath.Rel(no.Dir, place); err == nil && filepath.IsLocal(rel) {
			return "", fmt.Errorf("%w: %s is inside %s %s; name a directory outside",
				gitfmt.ErrRefused, place, no.What, no.Dir)
		}
	}
	return place, nil
}

func forkAt(ctx context.Context, env Effects, parent, name string, list *tree.Listing) error {
	pfd, err := fsys.Openat(unix.AT_FDCWD, parent, fsys.DirFlags, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: parent, Err: err}
	}
	defer fsys.CloseFD(pfd)
	temp := ForkPrefix + fsys.NewNonce()
	fd, err := beginFork(pfd, parent, temp)
	if err == nil {
		defer fsys.CloseFD(fd)
		err = populate(ctx, env, fd, list)
	}
	if err == nil {
		env.Hook("fork built")
		err = fsys.RenameNoReplace(pfd, temp, name)
	}
	if err != nil {
		_ = removeBuilt(filepath.Join(parent, temp)) // the next fork retries what cannot be removed
		return err
	}
	env.Hook("fork renamed")
	if err := fsys.Fsync(pfd); err != nil {
		return &os.PathError{Op: "sync", Path: parent, Err: err}
	}
	return nil
}

// populate writes a listing into an empty directory and makes it durable.
func populate(ctx context.Context, env Effects, root int, list *tree.Listing) error {
	var actions []Action
	for e := range list.All() {
		actions = append(actions, Action{Path: e.Path, After: e.State})
	}
	fails := env.Before
	env.Before = func(op, path string) error {
		if err := ctx.Err(); err != nil || fails == nil {
			return err
		}
		return fails(op, path)
	}
	x := New(env, root, &Journal{Nonce: fsys.NewNonce()})
	if err := x.Run(actions); err != nil {
		var re *RestoreError // its message is about a restore
		if errors.As(err, &re) {
			err = fmt.Errorf("write %q: %w", re.Path, re.Err)
		}
		return err
	}
	if len(x.Kept) > 0 {
		return fmt.Errorf("write %q: another program changed the new directory", x.Kept[0].Path)
	}
	return x.Sync()
}

// ForkPrefix begins the name of the directory in which a fork is built, beside its target; a
// nonce follows. The process that builds it holds a lock on it.
const ForkPrefix = ".anamnesis-fork-"

// beginFork creates and locks a fork's directory in parent, whose descriptor is pfd, after it has
// removed what killed forks left. The parent is locked meanwhile, so that no other fork takes the
// new directory for a leftover. On a file system without such locks no leftovers are removed.
func beginFork(pfd int, parent, temp string) (int, error) {
	_ = flock(pfd, unix.LOCK_EX)
	defer flock(pfd, unix.LOCK_UN)
	clearForks(pfd, parent)
	if err := unix.Mkdirat(pfd, temp, 0o777); err != nil {
		return -1, &os.PathError{Op: "mkdir", Path: filepath.Join(parent, temp), Err: err}
	}
	fd, err := fsys.Openat(pfd, temp, fsys.DirFlags, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: filepath.Join(parent, temp), Err: err}
	}
	_ = flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	return fd, nil
}

func flock(fd, how int) error { return fsys.Retry(func() error { return unix.Flock(fd, how) }) }

// clearForks removes directories of killed forks, which are not locked.
func clearForks(pfd int, parent string) {
	names, _ := fsys.ReadNames(pfd) // the next fork retries
	for _, name := range names {
		if nonce, ok := strings.CutPrefix(name, ForkPrefix); !ok || len(nonce) != fsys.NonceDigits {
			continue
		}
		fd, err := fsys.Openat(pfd, name, fsys.DirFlags, 0)
		if err != nil {
			continue
		}
		if flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = removeBuilt(filepath.Join(parent, name))
		}
		fsys.CloseFD(fd)
	}
}

// removeBuilt removes a directory and everything in it, read-only directories included.
func removeBuilt(path string) error {
	makeWritable(unix.AT_FDCWD, path)
	return os.RemoveAll(path)
}

// makeWritable makes a directory and everything beneath writable, without following links. An error
// shows when the directory is removed.
func makeWritable(dirfd int, name string) {
	st, err := fsys.Lstatat(dirfd, name)
	if err != nil || !st.IsDir() {
		return
	}
	if st.Mode&0o700 != 0o700 {
		_, _ = ChmodAt(dirfd, name, st, 0o700)
	}
	fd, err := fsys.Openat(dirfd, name, fsys.DirFlags, 0)
	if err != nil {
		return
	}
	defer fsys.CloseFD(fd)
	names, _ := fsys.ReadNames(fd)
	for _, n := range names {
		makeWritable(fd, n)
	}
}

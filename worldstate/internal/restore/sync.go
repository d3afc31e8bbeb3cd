package restore

import (
	"fmt"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/tree"
)

// Sync makes the run durable. It syncs every path of the actions. If there are many, or another
// run may have done some, it syncs the whole file system, if the platform supports that.
func (x *Executor) Sync() error {
	if fsys.SyncsTrees && (x.resumed || len(x.actions) > maxSyncEach) {
		return fsys.SyncTree(x.root)
	}
	return x.SyncActions()
}

// SyncActions makes every path of the actions durable, whichever run wrote it.
func (x *Executor) SyncActions() error {
	var files []string
	dirs := make(map[string]bool)
	for _, a := range x.actions {
		dirs[fsys.Dir(a.Path)] = true
		switch a.After.Kind {
		case tree.KindDir:
			dirs[a.Path] = true
		case tree.KindFile:
			files = append(files, a.Path)
		}
	}
	for _, path := range files {
		if err := x.syncFile(path); err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
	}
	for path := range dirs {
		if err := x.syncDir(path); err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
	}
	return nil
}

// syncFile makes a file's content and mode durable. A missing file was removed by another
// program.
func (x *Executor) syncFile(path string) error {
	if err := x.before("sync", path); err != nil {
		return err
	}
	dirfd, ok, err := x.parent(path)
	if err == nil && !ok {
		return nil
	}
	fd := -1
	if err == nil {
		fd, err = fsys.Openat(dirfd, fsys.Base(path), fsys.FileFlags, 0)
		fsys.CloseFD(dirfd)
	}
	if err != nil { // unreadable or missing: sync the file system instead
		return fsys.SyncTree(x.root)
	}
	defer fsys.CloseFD(fd)
	// Another program's file is kept; a FIFO cannot be synced.
	if st, err := fsys.Fstat(fd); err != nil || !st.IsRegular() {
		return err
	}
	return fsys.Fsync(fd)
}

// syncDir makes a directory's names and mode durable. A missing directory was removed in the
// same run; its parent is synced. For one that cannot be read the file system is synced.
func (x *Executor) syncDir(path string) error {
	if err := x.before("sync", path); err != nil {
		return err
	}
	fd, err := fsys.OpenBeneath(x.root, path)
	switch {
	case fsys.IsErrno(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP):
		return nil
	case fsys.IsErrno(err, unix.EACCES):
		return fsys.SyncTree(x.root)
	case err != nil:
		return err
	}
	defer fsys.CloseFD(fd)
	return fsys.Fsync(fd)
}

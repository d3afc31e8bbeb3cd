//go:build unix

package worldstate

import (
	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/tree"
)

// A world can be removed as a whole: rm -rf of the directory, which is made
// again to bring it back. That is no edit of each of its files. A plan counts
// nothing as an edit then, and a restore that was under way is not finished over
// what is no longer there.

// swept reports whether what an interrupted restore worked on was removed since:
// no file of either end stands, and something that the restore at no time takes
// away is missing. A file that cannot be looked at is taken to stand, and so is
// the world where the store cannot say what stood in it.
func (w *World) swept(root *fsys.Root, j *restore.Journal) bool {
	c, err := w.objects.Commit(j.Source)
	if err != nil {
		return false
	}
	source, err := w.tree(c.Tree)
	if err != nil {
		return false
	}
	removed := make(map[string]bool) // at some time during the restore
	for _, a := range j.Actions {
		removed[a.Path] = a.After.Absent() || a.Before.IsDir() != a.After.IsDir()
		if !a.After.Absent() && !a.After.IsDir() && stands(root.Fd, a.Path) {
			return false
		}
	}
	missing := false
	for e := range source.All() {
		there := stands(root.Fd, e.Path)
		if there && e.Kind != tree.KindDir {
			return false
		}
		missing = missing || !there && !removed[e.Path]
	}
	return missing
}

// stands reports whether anything stands at a path.
func stands(root int, path string) bool {
	fd, err := fsys.OpenBeneath(root, fsys.Dir(path))
	if err == nil {
		defer fsys.CloseFD(fd)
		_, err = fsys.Lstatat(fd, fsys.Base(path))
	}
	return !fsys.IsErrno(err, unix.ENOENT, unix.ENOTDIR)
}

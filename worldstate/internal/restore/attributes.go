package restore

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// Snapshots hold no special bits, hard links or extended attributes. A restore leaves them on a
// file as it finds them. Where it must replace the file, it copies what it can to the new one
// and lists the rest in Lost.

// copyAttributes gives the new file n the special bits and extended attributes of the file that
// it replaces, and sets its permissions. It runs after copyOwner, since a change of owner drops both.
func (x *Executor) copyAttributes(dirfd, n int, a Action, old fsys.Stamp) error {
	if !old.IsRegular() {
		return unix.Fchmod(n, a.After.Perm)
	}
	var lost []string
	if from, err := fsys.Openat(dirfd, fsys.Base(a.Path), fsys.FileFlags, 0); err == nil {
		if st, err := fsys.Fstat(from); err == nil && st.Ino == old.Ino {
			for _, name := range fsys.CopyXattrs(from, n) {
				lost = append(lost, "extended attribute "+name)
			}
		}
		fsys.CloseFD(from)
	}
	made, err := fsys.Fstat(n)
	if err != nil {
		return err
	}
	// A file that got another owner must not run with that owner's rights.
	special := old.Mode & tree.SpecialBits
	if made.Uid != old.Uid {
		special &^= unix.S_ISUID
	}
	if made.Gid != old.Gid {
		special &^= unix.S_ISGID
	}
	if err := unix.Fchmod(n, special|a.After.Perm); err != nil { // a list's mask follows the permissions
		return err
	}
	if made, err = fsys.Fstat(n); err != nil { // the kernel drops setgid for a group that is not ours
		return err
	}
	lost = append(lost, tree.Unstored(old.Mode&^made.Mode, old.Nlink)...)
	x.addLost(a.Path, lost)
	return nil
}

func (x *Executor) addLost(path string, what []string) {
	if len(what) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Lost = append(x.Lost, gitfmt.Skip{Path: path, Reason: strings.Join(what, tree.UnstoredSep)})
}

// ListMissing adds what the snapshot says that its files had and no snapshot holds, for each
// file of the actions that lacks it now: one that was created anew.
func (x *Executor) ListMissing(actions []Action, had []gitfmt.Skip) {
	known := make(map[string]string, len(had)+len(x.Lost))
	for _, h := range had {
		known[h.Path] = h.Reason
	}
	// A kept file is not the snapshot's, and of a replaced one Lost has what the former file had.
	for _, l := range slices.Concat(x.Kept, x.Lost) {
		delete(known, l.Path)
	}
	for _, a := range actions {
		reason, ok := known[a.Path]
		if !ok || a.After.Kind != tree.KindFile {
			continue
		}
		fd, ok, err := x.parent(a.Path)
		if err != nil || !ok {
			continue
		}
		st, err := fsys.Lstatat(fd, fsys.Base(a.Path))
		fsys.CloseFD(fd)
		has := tree.Unstored(st.Mode, st.Nlink)
		kept := func(what string) bool { return slices.Contains(has, what) }
		if err == nil {
			x.addLost(a.Path, slices.DeleteFunc(strings.Split(reason, tree.UnstoredSep), kept))
		}
	}
	slices.SortFunc(x.Lost, func(a, b gitfmt.Skip) int { return strings.Compare(a.Path, b.Path) })
}

package worldstate

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// storeWatch tells whether anything has happened in a store's directories, so
// that a World that stays open need not look at each of them at every save. After
// any event all of it is looked at, as without it, but for the loose refs: of
// them there are many, and only those an event named are.
// What a save rests on was looked at after the watches were put there, and no
// event has come since.
type storeWatch struct {
	dir  string
	id   stamp            // of dir: only its inode and device
	n    notifier         // nil: it has ended, and nothing is ever known to be quiet
	dirs map[string]int32 // those with a watch on them
	// seen are the directories of which every file was looked at with the watch on
	// it; those that events named since are the values.
	seen map[int32]map[string]bool
}

// watchStore begins to watch a store. Where that cannot be had, nothing is quiet.
func watchStore(dir string) *storeWatch {
	t := &storeWatch{dir: dir, dirs: make(map[string]int32), seen: make(map[int32]map[string]bool)}
	fd, err := openat(unix.AT_FDCWD, dir, dirFlags, 0)
	if err != nil {
		return t
	}
	defer closeFD(fd)
	if t.id, err = fstat(fd); err == nil {
		t.n, err = newNotifier(fd, dir)
	}
	if err != nil {
		t.n = nil
	}
	return t
}

// end stops it for good. A nil storeWatch watches nothing.
func (t *storeWatch) end() {
	if t != nil && t.n != nil {
		t.n.close()
		t.n = nil
	}
}

// quiet reports whether nothing has happened since it was last asked.
func (t *storeWatch) quiet() bool {
	if t == nil || t.n == nil {
		return false
	}
	if now, err := lstatat(unix.AT_FDCWD, t.dir); err != nil || now.ino != t.id.ino || now.dev != t.id.dev {
		t.end() // another store stands there
		return false
	}
	quiet := true
	err := t.n.read(func(e event) {
		quiet = false
		if e.isDir && (e.came || e.movedOut) || e.unknown || e.lost || e.overflow {
			t.unwatch() // another directory may stand at one's path
		}
		if names := t.seen[e.wd]; names != nil {
			names[e.name] = true
		}
	})
	mounted, merr := t.n.mounted()
	if err != nil || merr != nil {
		t.end()
		return false
	}
	if mounted {
		t.unwatch()
	}
	return quiet && !mounted
}

// unwatch forgets what is watched; the next look watches it again.
func (t *storeWatch) unwatch() {
	clear(t.dirs)
	clear(t.seen)
}

// named gives the names in a directory that are to be looked at again; all where
// that is not known.
func (t *storeWatch) named(dir string) (names map[string]bool, all bool) {
	if t == nil || t.n == nil {
		return nil, true
	}
	wd, watched := t.dirs[dir]
	if !watched || t.seen[wd] == nil {
		return nil, true
	}
	return t.seen[wd], false
}

// sees notes that all files of directories were looked at, after [storeWatch.watch]
// of each and with the events that were read before.
func (t *storeWatch) sees(dirs []source) {
	if t == nil || t.n == nil {
		return
	}
	for _, d := range dirs {
		if wd, watched := t.dirs[d.path]; watched {
			t.seen[wd] = make(map[string]bool)
		}
	}
}

// watch puts a watch on a directory that is looked at afterwards. One that is not
// there is told by the one above it, when it comes.
func (t *storeWatch) watch(dir string) {
	if t == nil || t.n == nil {
		return
	}
	if _, watched := t.dirs[dir]; watched {
		return
	}
	fd, err := openat(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return
	}
	if err == nil {
		t.dirs[dir], err = t.n.watch(fd)
		closeFD(fd)
	}
	if err != nil {
		t.end()
	}
}

// look is what every operation begins with: it finds out what of the store's
// present state is still known, and looks for packs that came or went where that
// is not. No other operation of the World runs.
func (s *objectStore) look() error {
	if s.lending() != nil || !s.told.quiet() {
		s.fresh, s.refs.checked, s.noJournal = false, false, false
		for _, d := range []string{"", stateDir, "objects", "objects/pack", "objects/info"} {
			s.told.watch(filepath.Join(s.dir, d))
		}
		for i := range s.refs.loose.dirs {
			s.told.watch(s.refs.loose.dirs[i].path)
		}
	}
	if s.fresh {
		return nil
	}
	if err := s.refresh(); err != nil {
		return err
	}
	s.fresh = true
	return nil
}

// checkNoJournal refuses to go on over an interrupted restore of a world.
func (s *objectStore) checkNoJournal(journal string) error {
	if s.noJournal {
		return nil
	}
	_, err := lstatat(unix.AT_FDCWD, journal)
	switch {
	case err == nil:
		return ErrUnfinished
	case !errors.Is(err, unix.ENOENT):
		return fmt.Errorf("read journal: %w", err)
	}
	s.noJournal = true
	return nil
}

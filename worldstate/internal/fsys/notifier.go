package fsys

import "errors"

// Event is one thing the kernel reported of a watched directory.
type Event struct {
	Wd       int32
	Name     string // of what is in it; "": the directory itself
	IsDir    bool
	Came     bool // a name came up, by creation or by a move
	MovedOut bool
	Unknown  bool // wd is not watched any more
	Overflow bool
	Lost     bool // the directory, or its file system, went away under us
}

// Notifier is the operating system's part.
type Notifier interface {
	// Watch begins to report changes in the directory of a descriptor, and
	// returns the same number for the same directory.
	Watch(fd int) (wd int32, err error)
	Unwatch(wd int32)
	// Read returns every event there is, and does not wait for more.
	Read(each func(Event)) error
	// Mounted reports whether, since it was last asked, a file system was
	// Mounted or unmounted at the world's directory or beneath.
	Mounted() (changed bool, err error)
	Close()
}

var errRemote = errors.New("changes on a file system of this kind may come from elsewhere")

var errWatchesSpent = errors.New("the system's limit of watches is reached")

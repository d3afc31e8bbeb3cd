package fsys

import "errors"

// Event is one event that the kernel reported for a watched directory.
type Event struct {
	Wd       int32
	Name     string // the entry; "" for the directory itself
	IsDir    bool
	Came     bool // the name appeared, by creation or by a move
	MovedOut bool
	Unknown  bool // Wd is no longer watched
	Overflow bool
	Lost     bool // the directory or its file system was removed
}

// Notifier is the operating system's report of changes in directories.
type Notifier interface {
	// Watch starts to report changes in the directory that fd is. It returns the same number
	// for the same directory.
	Watch(fd int) (wd int32, err error)
	Unwatch(wd int32)
	// Read calls each for every queued event and does not wait for more.
	Read(each func(Event)) error
	Close()
}

var errRemote = errors.New("another machine may change a file system of this kind")

var errWatchesSpent = errors.New("the system's limit of watches is reached")

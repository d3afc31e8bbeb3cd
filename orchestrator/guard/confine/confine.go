// Package confine puts a thread, and what it starts, into a sandbox made of what the kernel
// offers: mounts in namespaces, Landlock, a filter of system calls, fewer capabilities.
// Package guard decides what is confined, and starts the processes.
package confine

import (
	"os"
	"path/filepath"
	"slices"
)

// Parts are the parts of a sandbox that a kernel supports.
type Parts struct {
	Namespaces bool `json:"namespaces,omitempty"` // user, mount, network and IPC
	PIDs       bool `json:"pids,omitempty"`       // a PID namespace with a /proc of its own
	Landlock   int  `json:"landlock,omitempty"`   // version of its interface; 0: none
	Seccomp    bool `json:"seccomp,omitempty"`    // a filter of system calls
}

// LandlockSignals is the first version of Landlock that confines signals.
const LandlockSignals = 6

// Spec is the sandbox of one command. Paths are absolute.
type Spec struct {
	Parts     Parts
	World     string
	Fork      *Fork // what commands see at World's path; nil: the world itself
	ReadOnly  bool  // the world is read-only
	Writable  []string
	Protected []string // read-only, in the world
	Hidden    []string
	Cache     string
	Temp      string // becomes /tmp and /var/tmp
	Network   bool
	Readable  []string // visible, in a hidden directory
	Sockets   []string // likewise
	Unix      bool     // Unix sockets may be opened
	Processes int      // RLIMIT_NPROC; 0: unchanged
}

// Fork is a copy of the world that takes its place for a command. It needs namespaces.
type Fork struct {
	Dir string // the copy; empty: the world as it is, with what the command changes in Scratch
	// Beneath are directories of the world that the copy does not have, relative to it: the command
	// sees them, and what it writes there goes to Scratch.
	Beneath []string
	Scratch string
}

// Existing returns the paths that exist.
func Existing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		_, err := os.Stat(p)
		return err != nil
	})
}

// realPath returns a path without links, or unchanged if it does not exist.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// NonEmpty returns the paths that are not empty.
func NonEmpty(paths ...string) []string {
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" })
}

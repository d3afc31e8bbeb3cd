package guard

import (
	"io"
	"os"
	"strings"
	"sync"
)

// Writes records which files of the world the commands of sandboxes change; see
// Sandbox.Observes. The zero value is ready; it is safe for concurrent use.
type Writes struct {
	mu   sync.Mutex
	logs []*writeLog
}

// writeLog is the log of one command, in memory that it shares with the supervisor.
type writeLog struct {
	file  *os.File // nil: everything counts as changed
	ended bool
}

func (w *Writes) end(l *writeLog) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.ended = true
}

// Drain returns what commands have changed since the last call, and all that those still
// running have ever changed.
func (w *Writes) Drain() Written {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(Written)
	running := w.logs[:0]
	for _, l := range w.logs {
		data, err := io.ReadAll(io.NewSectionReader(l.file, 0, maxWriteLog))
		if l.file == nil || err != nil {
			out["/"] = true
		}
		for name := range strings.SplitSeq(string(data), "\x00") {
			out[name] = true
		}
		if !l.ended {
			running = append(running, l)
		} else {
			l.file.Close()
		}
	}
	clear(w.logs[len(running):])
	w.logs = running
	return out
}

// maxWriteLog is more than confine.Observe writes.
const maxWriteLog = 64 << 20

// Written is a set of paths relative to the world. A path that ends in a slash means
// everything beneath it, too, "/" the whole world.
type Written map[string]bool

// Has reports whether the set includes a path.
func (w Written) Has(path string) bool {
	path = strings.TrimSuffix(path, "/")
	if w["/"] || w[path] || w[path+"/"] {
		return true
	}
	for i := range len(path) {
		if path[i] == '/' && w[path[:i+1]] {
			return true
		}
	}
	return false
}

package facts

import (
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
)

// Record counts a task from its operations. The zero value is empty; it belongs to one goroutine.
type Record struct {
	Log
	dir   string    // of the world
	began time.Time // of an imported session, whose operations are younger
	calls map[string]string
}

// Add adds the next operation.
func (r *Record) Add(o *op.Op) {
	if !o.Time.IsZero() {
		r.Ended = o.Time.UTC()
	}
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		r.ID, r.dir, r.Agent = b.Task, b.Dir, b.Model
		if b.Origin != nil {
			r.Agent, r.began = b.Origin.Agent, b.Origin.Began
		}
	case *op.ToolCalled:
		if command := shell.Command(b.Args); op.Acts(b.Name) == op.RunsShell && command != "" {
			if r.calls == nil {
				r.calls = map[string]string{}
			}
			r.calls[b.Call] = command
		}
	case *op.ToolReturned:
		r.edited = r.edited || len(b.Writes) > 0
		command := r.calls[b.Call]
		delete(r.calls, b.Call)
		if b.Unknown || command == "" {
			return
		}
		c := Call{Dir: r.dir, Output: failure.Output{
			Command: command, Text: b.Text, Error: b.IsError, Refused: b.Refused, // with the notes about how it ended
		}}
		if c.HasExit = b.Exit != nil; c.HasExit {
			c.Exit = *b.Exit
		}
		r.Log.Add(c)
	case *op.WorldSaved:
		r.edited = r.edited || o.Step > 0 && b.NChanged > 0
	}
}

// Installed reports whether a command that installs something has succeeded.
func (r *Record) Installed() bool { return len(r.setup) > 0 }

// Task returns what the operations so far show; false if they show nothing to count. Paths within top, the top of the
// repository, are relative to it.
func (r *Record) Task(top string) (Task, bool) {
	t := r.Log.Task
	t.Env = strings.TrimSpace(runtime.GOOS + " " + t.Env)
	if !r.began.IsZero() {
		t.Ended = r.began.UTC()
	}
	for i := range t.Commands {
		c := &t.Commands[i]
		if rel, _ := filepath.Rel(top, c.Dir); filepath.IsLocal(rel) {
			if c.Dir = rel; rel == "." {
				c.Dir = ""
			}
		}
	}
	return t, len(t.Commands)+len(t.Programs) > 0
}

package anamnesis

import (
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
)

// tainter tracks text from outside the world through a span: results from the network, files outside the
// world, and the files that calls wrote which had seen such text.
type tainter struct {
	dir   string
	now   uint64            // the current operation
	files map[string]uint64 // tainted files, relative to the world, by the operation that tainted them
}

// unnamedFiles is the entry of tainter.files for files whose names were not recorded. It matches any file.
const unnamedFiles = ""

func newTainter(dir string, before []string) *tainter {
	t := &tainter{dir: dir, files: make(map[string]uint64, len(before))}
	for _, p := range before {
		t.mark(p)
	}
	return t
}

// mark records that a file holds text from outside from the current operation on.
func (t *tainter) mark(p string) {
	if _, ok := t.files[p]; !ok {
		t.files[p] = t.now
	}
}

func (t *tainter) isTainted(p string) bool {
	_, ok := t.files[p]
	return ok
}

// examine reports whether a finished call may have shown text from outside, and marks the files that it
// then wrote. A call that was refused showed nothing.
func (t *tainter) examine(r *record, network bool) bool {
	tainted := network
	if op.Acts(r.tool) == op.RunsShell && !r.refused {
		command := shell.Command(r.args)
		// A program that this one does not know may read any file of the world.
		unknown := len(t.files) > 0 && !shell.Local(command, t.dir)
		tainted = tainted || unknown || shell.ShowsOutside(command, t.dir, r.isolated) || t.mayRead(command)
	}
	for _, p := range r.reads {
		tainted = tainted || shell.Outside(p, t.dir) || t.isTainted(p) || t.isTainted(unnamedFiles)
	}
	for _, p := range r.writes {
		if tainted {
			t.mark(p)
		}
	}
	return tainted
}

// mayRead reports whether a command names a tainted file, a folder above one,
// or everything below a folder.
func (t *tainter) mayRead(command string) bool {
	if len(t.files) == 0 {
		return false
	}
	if strings.ContainsAny(command, "*?[{") || strings.Contains(command, "...") {
		return true
	}
	words := shell.Words(command)
	for p := range t.files {
		if p == unnamedFiles {
			return true
		}
		for dir := p; dir != "." && dir != "/"; dir = path.Dir(dir) {
			// Base names are compared, since after a cd a command names the file by another path. This taints too much
			// rather than too little.
			if slices.ContainsFunc(words, func(w string) bool { return path.Base(path.Clean(w)) == path.Base(dir) }) {
				return true
			}
		}
	}
	// A command that searches the whole world need not name the file that it reads.
	return slices.ContainsFunc(words, func(w string) bool {
		if w == "grep" || w == "rg" || w == "git" {
			return true
		}
		recursive := strings.HasPrefix(w, "-") && strings.ContainsAny(w, "rR")
		return recursive || path.Clean(w) == "." || path.Clean(w) == path.Clean(t.dir)
	})
}

// recordChanges marks all files that a step changed in which a command showed text from outside: the
// command's own writes are not known. all is false if the step changed more files than changed names.
func (t *tainter) recordChanges(changed []string, all bool) {
	for _, p := range changed {
		t.mark(p)
	}
	if !all {
		t.mark(unnamedFiles)
	}
}

// TaintLog tracks which files of a task hold text from outside the world. It keeps files and not
// operations, so that a pass over a long task need not read the stream from its beginning. It is not safe
// for concurrent use.
type TaintLog struct {
	c *recorder
}

// NewTaintLog begins with the first operation of a task on the world in dir
// (absolute).
func NewTaintLog(dir string) *TaintLog {
	return &TaintLog{newRecorder(&Request{WorldDir: dir})}
}

// Last is the operation added last, 0 where there is none.
func (l *TaintLog) Last() uint64 { return l.c.taint.now }

// Add adds the next operation.
func (l *TaintLog) Add(o *op.Op) {
	l.c.add(o)
	if _, ended := o.Body.(*op.WorldSaved); ended { // no call outlives its step, so its records can go
		l.c.out, l.c.stepFrom = nil, 0
		clear(l.c.open)
		clear(l.c.asked)
	}
}

// Before lists the files, relative to the world, that held text from outside
// before operation seq, sorted. An empty name means files whose names were
// not recorded.
func (l *TaintLog) Before(seq uint64) []string {
	var out []string
	for p, since := range l.c.taint.files {
		if since < seq {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

package anamnesis

import (
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
)

// tainter follows what came from outside the world through a span: network
// results, files outside the world, and the files that tainted calls wrote.
type tainter struct {
	dir   string
	now   uint64            // the operation that is looked at
	files map[string]uint64 // relative to the world, with the operation since which; unnamedFiles stands for all
}

// unnamedFiles is the path of files whose names are not known.
const unnamedFiles = ""

func newTainter(dir string, before []string) *tainter {
	t := &tainter{dir: dir, files: make(map[string]uint64, len(before))}
	for _, p := range before {
		t.mark(p)
	}
	return t
}

// mark notes that a file holds text from outside from now on.
func (t *tainter) mark(p string) {
	if _, ok := t.files[p]; !ok {
		t.files[p] = t.now
	}
}

func (t *tainter) isTainted(p string) bool {
	_, ok := t.files[p]
	return ok
}

// examine judges one finished call and remembers the files it wrote. A call
// refused before it ran showed nothing of the outside.
func (t *tainter) examine(r *record, network bool) bool {
	tainted := network
	if op.Acts(r.tool) == op.RunsShell && !r.refused {
		command := shell.Command(r.args)
		local := shell.Local(command, t.dir)
		// What an unknown program reads of the world is not known.
		tainted = tainted || shell.ShowsOutside(command, t.dir, r.isolated) || !local && len(t.files) > 0 || t.mayRead(command)
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
			if slices.ContainsFunc(words, func(w string) bool { return path.Base(path.Clean(w)) == path.Base(dir) }) {
				return true
			}
		}
	}
	// A walk over the whole world may name nothing at all.
	return slices.ContainsFunc(words, func(w string) bool {
		return path.Clean(w) == "." || path.Clean(w) == path.Clean(t.dir) || strings.HasPrefix(w, "-") && strings.ContainsAny(w, "rR") || w == "grep" || w == "rg" || w == "git"
	})
}

// recordChanges marks what a step changed when one of its calls showed text from
// outside: a command does not say which files it writes.
func (t *tainter) recordChanges(changed []string, all bool) {
	for _, p := range changed {
		t.mark(p)
	}
	if !all {
		t.mark(unnamedFiles)
	}
}

// TaintLog follows, operation by operation, which files hold text from outside
// the world. It remembers files and not operations, so that a long task is not
// read again for every pass. It is not safe for concurrent use.
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

// Add takes the next operation.
func (l *TaintLog) Add(o *op.Op) {
	l.c.add(o)
	if _, ended := o.Body.(*op.WorldSaved); ended { // what a step asked for ends with it
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

package scan

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

// examine scans one name. at is its index among the directory's previous items and o its
// previous Other; -1 and nil for a new name.
func (v *visit) examine(name string, at int, o *tree.Other) {
	if tree.AlwaysIgnored(name) || v.s.excluded[fsys.Join(v.path, name)] {
		return
	}
	st, err := fsys.Lstatat(v.fd, name)
	if err != nil {
		v.unreadableName(name, at, o, err)
		return
	}
	onlyTracked := false
	switch {
	// First, and at each scan: the size decides as well as the rules, and it may have changed under the same rules.
	case st.IsRegular() && !v.tracked && v.s.isSecret(name):
		path := fsys.Join(v.path, name)
		if ignored := v.chain.Ignored(path, false) && !v.tracks(path); ignored && st.Size > MaxSecretBytes {
			v.leaveOut(o, tree.Other{Name: name})
			return
		} else if ignored {
			v.s.addSecret(path)
		}
	// Under the rules of the previous scan a name is in or out as it was, unless its being a directory changed.
	case v.same && at >= 0 && v.prev.Items[at].IsDir() == st.IsDir():
		onlyTracked = v.prev.Seen.Items[at].OnlyTracked
	case v.same && o != nil && o.Why == "" && o.IsDir == st.IsDir():
		return // as before
	default:
		path := fsys.Join(v.path, name)
		if !v.tracked && !v.chain.Ignored(path, st.IsDir()) {
			break
		}
		switch {
		case !st.IsDir() && v.tracks(path):
		case st.IsDir() && v.tracksBeneath(path):
			onlyTracked = true
		default:
			v.leaveOut(o, tree.Other{Name: name, IsDir: st.IsDir()})
			return
		}
	}
	switch {
	case st.IsDir() && v.tooDeep(name):
		v.leaveOut(o, tree.Other{Name: name, Why: ReasonTooDeep, IsDir: true})
	case st.IsDir():
		v.descend(name, at, st, onlyTracked)
	case st.IsRegular(), st.IsLink():
		v.file(name, at, o, st)
	case st.Mode&unix.S_IFMT == unix.S_IFIFO:
		v.leaveOut(o, tree.Other{Name: name, Why: tree.ReasonFIFO})
	case st.Mode&unix.S_IFMT == unix.S_IFSOCK:
		v.leaveOut(o, tree.Other{Name: name, Why: tree.ReasonSocket})
	default:
		v.leaveOut(o, tree.Other{Name: name, Why: tree.ReasonDevice})
	}
}

// unreadableName records a name that could not be read. A name that has vanished is simply
// absent.
func (v *visit) unreadableName(name string, at int, o *tree.Other, err error) {
	switch {
	case errors.Is(err, unix.ENOENT):
		if at >= 0 || o != nil {
			v.putRemoved(name)
		}
	case fsys.IsErrno(err, unix.ENOTDIR, unix.ELOOP, unix.ENXIO):
		v.leaveOut(o, tree.Other{Name: name, Why: objects.ErrContentChanged.Error()})
	case fsys.Exhausted(err):
		v.s.fail(fmt.Errorf("%s: %w", fsys.Join(v.path, name), err))
	default:
		v.leaveOut(o, tree.Other{Name: name, Why: "unreadable: " + usergit.Reason(err)})
	}
}

// descend starts the visit of a directory.
func (v *visit) descend(name string, at int, st fsys.Stamp, onlyTracked bool) {
	c := &visit{
		s: v.s, up: v, name: name, path: fsys.Join(v.path, name), deep: v.deep + 1, at: at, fd: -1,
		st: fsys.Sight{Stamp: st, OnlyTracked: onlyTracked}, same: v.same, tracked: onlyTracked, chain: v.chain,
		nest: v.nest, nestAt: v.nestAt,
	}
	if at >= 0 {
		c.prev = v.prev.Items[at].Sub
	}
	v.left.Add(1)
	// If the directory cannot be opened, the visit ends before run, so this counts as the one thing that it waits for.
	c.left.Store(1)
	if c.open() {
		v.s.do(c.run)
	}
}

// open opens the directory in its parent. If that fails, it records why and ends the visit.
func (v *visit) open() bool {
	up := v.up
	var err error
	if v.fd, err = fsys.Openat(up.fd, v.name, fsys.DirFlags, 0); err == nil {
		return true
	}
	if errors.Is(err, unix.ENOENT) {
		if v.at >= 0 {
			up.putRemoved(v.name)
		}
		up.left.Add(-1) // never the last: up is still running
		return false
	}
	v.unreadable(err)
	v.finish()
	return false
}

// tooDeep reports whether the content of a directory in this one is beyond the limits of a
// snapshot.
func (v *visit) tooDeep(name string) bool {
	return v.deep+1 >= tree.MaxDepth || len(v.path)+1+len(name)+1+tree.MaxNameBytes > tree.MaxPathBytes
}

// putDir records the result of a directory in v.
func (v *visit) putDir(c *visit, n *tree.Node) {
	s := tree.State{Kind: tree.KindDir, Perm: c.st.Mode & 0o777}
	if c.at >= 0 {
		was, saw := &v.prev.Items[c.at], &v.prev.Seen.Items[c.at]
		same := saw.Ino == c.st.Ino && saw.Dev == c.st.Dev && saw.OnlyTracked == c.st.OnlyTracked
		if same && was.State == s && was.Sub == n {
			return
		}
	}
	v.put(edit{item: v.withStoredName(tree.Item{Name: c.name, State: s, Sub: n}), sight: c.st})
}

// withStoredName sets the name that an item is stored under.
func (v *visit) withStoredName(it tree.Item) tree.Item {
	if tree.HostileName(v.path, it.Name, it.State, it.Size) {
		it.Stored = tree.StoredName(it.Name)
	}
	return it
}

func (v *visit) file(name string, at int, o *tree.Other, st fsys.Stamp) {
	if why := v.s.tooLarge(st); why != "" {
		v.leaveOut(o, tree.Other{Name: name, Why: why})
		return
	}
	if at >= 0 && v.prev.Seen.Items[at].Sure(st) && !v.prev.Items[at].IsDir() {
		v.s.countFile(st.Size)
		return
	}
	v.s.changed.Add(1)
	if st.IsLink() {
		target, err := fsys.Readlinkat(v.fd, name)
		if err != nil {
			v.unreadableName(name, at, o, err)
			return
		}
		h := gitfmt.HashObject(gitfmt.BlobObject, target)
		if err := v.s.store(h, target); err != nil {
			v.s.fail(err)
			return
		}
		it := tree.Item{Name: name, State: tree.State{Kind: tree.KindLink, Hash: h}, Size: int64(len(target))}
		v.put(edit{item: v.withStoredName(it), sight: fsys.Sight{Stamp: st, Racy: fsys.Racy(st, v.now)}})
		v.s.countFile(it.Size)
		return
	}
	v.left.Add(1)
	v.s.do(func() {
		defer v.finish()
		if !v.s.stop.Load() {
			v.readFile(name, at, o, st)
		}
	})
}

// readFile reads a file, again if it changes meanwhile. before is its present stamp.
func (v *visit) readFile(name string, at int, o *tree.Other, before fsys.Stamp) {
	for try := 0; ; try++ {
		h, st, err := v.s.content(v.fd, name, v.path, before)
		switch {
		case err == nil:
			s := tree.State{Kind: tree.KindFile, Perm: st.Mode & 0o777, Hash: h}
			it := v.withStoredName(tree.Item{Name: name, State: s, Size: st.Size})
			v.put(edit{item: it, sight: fsys.Sight{Stamp: st.Stamp, Racy: st.Racy}})
			v.s.countFile(it.Size)
		case errors.Is(err, objects.ErrContentChanged) && try+1 < readTries:
			if before, err = fsys.Lstatat(v.fd, name); err == nil {
				continue
			}
			v.unreadableName(name, at, o, err)
		case errors.Is(err, objects.ErrContentChanged):
			v.leaveOut(o, tree.Other{Name: name, Why: objects.ErrContentChanged.Error()})
		case errors.As(err, new(*objects.StoreFault)):
			v.s.fail(err)
		default:
			v.unreadableName(name, at, o, err)
		}
		return
	}
}

// readRules adds the directory's own rules to the chain. has reports whether there is a
// .gitignore.
func (v *visit) readRules(has bool) {
	if has && !v.tracked {
		v.readRulesFile()
	}
	var own []ignore.Pattern
	if v.nest != nil && v.nestAt == v.path { // the directory is the top of a repository
		own = v.nest.Excludes()
	}
	if len(own) > 0 { // first, since those of the file take precedence
		v.seen.Rules = ignore.Rules{Base: v.path, Patterns: append(own, v.seen.Rules.Patterns...)}
	}
	if v.prev == nil || !slices.Equal(v.prev.Seen.Rules.Patterns, v.seen.Rules.Patterns) {
		v.same = false
	}
	v.chain = v.chain.With(v.seen.Rules)
	name := fsys.Join(v.path, ".gitignore")
	v.seen.Frozen = len(own) > 0 || len(v.seen.Rules.Patterns) > 0 && v.chain.Ignored(name, false) && !v.tracks(name)
}

func (v *visit) readRulesFile() {
	st, err := fsys.Lstatat(v.fd, ".gitignore")
	if err != nil || !st.IsRegular() {
		return
	}
	// At the top of a repository the rules seen before include its own excludes, so the file is read again.
	if v.prev != nil && !v.isTop && v.prev.Seen.RuleSight.Sure(st) {
		was := v.prev.Seen
		v.seen.Rules, v.seen.RuleSight, v.seen.RulesNote = was.Rules, was.RuleSight, was.RulesNote
		return
	}
	if st.Size > tree.MaxIgnoreBytes {
		v.seen.RulesNote = fmt.Sprintf("over %d bytes: its rules were not read", tree.MaxIgnoreBytes)
		return
	}
	fd, err := fsys.Openat(v.fd, ".gitignore", fsys.FileFlags, 0)
	if err != nil {
		return // the file itself is listed as unreadable
	}
	f := os.NewFile(uintptr(fd), ".gitignore")
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, tree.MaxIgnoreBytes))
	if err != nil {
		return
	}
	v.seen.Rules = ignore.Parse(v.path, "", data)
	v.seen.RuleSight = fsys.Sight{Stamp: st, Racy: fsys.Racy(st, v.now)}
}

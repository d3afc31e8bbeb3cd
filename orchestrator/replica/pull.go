package replica

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// MaxGets is how many objects are read at once: a read takes a bucket tens of milliseconds.
const MaxGets = 16

// chunkObjects is how many objects are applied before the cursor is written and their snapshots are imported.
const chunkObjects = 256

var ErrNoTask = errors.New("the bucket has no task of this name")

// Tasks lists the tasks of a bucket, sorted.
func Tasks(ctx context.Context, b bucket.Bucket) ([]string, error) {
	names, err := b.List(ctx, indexPrefix, "")
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], indexPrefix)
	}
	return slices.DeleteFunc(names, func(name string) bool { return taskdir.CheckTaskID(name) != nil }), err
}

type Pulled struct {
	Cursor
	Aside []string // files with lines of this home that another process's replaced
	Rival bool     // another home's process extended the log last
}

// Pull brings a home's copy of a task, its subagents and their snapshots up to the bucket's log. Lines that never
// got there are left where the log does not contradict them, and are otherwise moved to files beside the stream.
// No process may write the task meanwhile.
func Pull(ctx context.Context, b bucket.Bucket, h taskdir.Home, task string) (*Pulled, error) {
	return pullTask(ctx, b, h, task, false)
}

// pullTask is Pull. With records it leaves the snapshots out, unless the copy has earlier ones.
func pullTask(ctx context.Context, b bucket.Bucket, h taskdir.Home, task string, records bool) (*Pulled, error) {
	if err := taskdir.CheckTaskID(task); err != nil {
		return nil, err
	}
	c, err := ReadCursor(h, task)
	switch {
	case err != nil:
		return nil, err
	case c == nil && h.HasTask(task):
		return nil, fmt.Errorf("task %s exists in this home and is not the bucket's: %s", task, h.Task(task))
	case c == nil || c.Records && !records: // what was left out is read now
		c = &Cursor{Remote: b.String(), Task: task, Records: records}
	}
	p := &pull{bucket: b, home: h, Pulled: Pulled{Cursor: *c}}
	if err := p.run(ctx); err != nil {
		return nil, fmt.Errorf("pull task %s from %s: %w", task, b, err)
	}
	return &p.Pulled, nil
}

type pull struct {
	Pulled
	bucket bucket.Bucket
	home   taskdir.Home
	packs  map[string]*packs
}

// packs are the snapshots of a store that are to be imported.
type packs struct {
	dir string
	ids []worldstate.ID
}

func (p *pull) run(ctx context.Context) error {
	last := logName(p.Task, p.Last.N)
	names, err := withRetries(ctx, func() ([]string, error) {
		// The list begins with the last object that was read: without it, the task was removed or the bucket set back.
		return p.bucket.List(ctx, logPrefix(p.Task), logName(p.Task, max(p.Last.N, 1)-1))
	})
	names = slices.DeleteFunc(names, func(name string) bool { return !isLog(p.Task, name) })
	switch {
	case err != nil:
		return err
	case len(names) > 0 && names[0] == last:
		names = names[1:]
	case p.Last.N > 0:
		return fmt.Errorf("%w: %s, which this home has read, is not there: the task was removed, or the bucket "+
			"was set back", ErrDamaged, last)
	case len(names) == 0:
		return ErrNoTask
	}
	if !p.home.HasTask(p.Task) { // if this is cut off, the cursor marks the folder as a copy
		if err := errors.Join(os.MkdirAll(p.home.Task(p.Task), 0o700), p.Cursor.write(p.home)); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(names, chunkObjects) {
		if err := p.chunk(ctx, chunk); err != nil {
			return err
		}
	}
	if p.Rival = p.Last.Holder != p.Own; p.Rival {
		return p.cutTails()
	}
	return nil
}

type object struct {
	about About
	files []file
	sum   string
}

func (p *pull) get(ctx context.Context, name string) (*object, error) {
	data, err := withRetries(ctx, func() ([]byte, error) { return p.bucket.Get(ctx, name) })
	if err != nil {
		return nil, err
	}
	if bucket.IsSealed(data) {
		return nil, fmt.Errorf("%w: the task is sealed; set ANAMNESIS_REMOTE_KEY to its key", bucket.ErrKey)
	}
	o := new(object)
	if o.about, o.files, err = decode(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	sum := sha256.Sum256(data)
	o.sum = hex.EncodeToString(sum[:])
	if p.Records {
		o.files = slices.DeleteFunc(o.files, func(f file) bool {
			return strings.HasPrefix(f.name, worldsPrefix) || strings.Contains(f.name, "/"+taskdir.BundlesName+"/")
		})
	}
	for i := range o.files {
		if err := o.files[i].load(ctx, p.bucket); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return o, nil
}

// chunk applies some objects: they are read at once and applied in order.
func (p *pull) chunk(ctx context.Context, names []string) error {
	objects := make([]*object, len(names))
	group, getting := errgroup.WithContext(ctx)
	group.SetLimit(MaxGets)
	for i, name := range names {
		group.Go(func() (err error) {
			objects[i], err = p.get(getting, name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	p.packs = make(map[string]*packs)
	defer func() {
		for _, s := range p.packs {
			os.RemoveAll(s.dir)
		}
	}()
	// The cursor is a copy until everything is written: after a failure the same objects are read again.
	next := p.Cursor
	next.Seqs, next.Ends, next.Vaults = maps.Clone(next.Seqs), maps.Clone(next.Ends), maps.Clone(next.Vaults)
	for i, o := range objects {
		switch want := logName(next.Task, next.Last.N+1); {
		case names[i] != want:
			return fmt.Errorf("%w: %s is missing", ErrDamaged, want)
		// The sum of the object before makes the log a chain: no object can be left out, replaced or put in.
		case o.about.Task != next.Task || o.about.N != next.Last.N+1 || o.about.After != next.Sum:
			return fmt.Errorf("%w: %s does not follow the object before it", ErrDamaged, want)
		}
		for _, f := range o.files {
			if err := p.apply(&next, f, o.about.Time); err != nil {
				return fmt.Errorf("%s: %w", names[i], err)
			}
		}
		if next.Last, next.Sum = o.about, o.sum; o.about.Holder != next.Own {
			next.Place = ""
		}
	}
	for store, s := range p.packs {
		if err := worldstate.Import(ctx, filepath.Join(p.home.Worlds(), store), next.Task, s.dir, s.ids); err != nil {
			return err
		}
	}
	p.Cursor = next
	return next.write(p.home)
}

// apply writes one file's bytes into the home.
func (p *pull) apply(c *Cursor, f file, sent time.Time) error {
	kind, rest, _ := strings.Cut(f.name, "/")
	owner, name, ok := strings.Cut(rest, "/")
	if !ok || !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name {
		return fmt.Errorf("%w: a file named %q", ErrDamaged, f.name)
	}
	switch kind {
	case strings.TrimSuffix(worldsPrefix, "/"):
		return p.applyPack(owner, name, f.data)
	case "tasks":
		if owner != c.Task && !strings.HasPrefix(owner, c.Task+".") || taskdir.CheckTaskID(owner) != nil {
			return fmt.Errorf("%w: a file of task %q", ErrDamaged, owner)
		}
		return p.applyTask(c, owner, name, f, sent)
	}
	return fmt.Errorf("%w: a file named %q", ErrDamaged, f.name)
}

func (p *pull) applyPack(store, name string, data []byte) error {
	id, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
	if !strings.HasSuffix(store, ".git") || ext != ".pack" && ext != ".idx" || strings.Contains(name, "/") {
		return fmt.Errorf("%w: a pack named %q in store %q", ErrDamaged, name, store)
	}
	s := p.packs[store]
	if s == nil {
		dir, err := emptyDir(p.home, p.Task, "import", store)
		if err != nil {
			return err
		}
		s = &packs{dir: dir}
		p.packs[store] = s
	}
	if ext == ".idx" {
		s.ids = append(s.ids, worldstate.ID(id))
	}
	return os.WriteFile(filepath.Join(s.dir, "pack-"+id+ext), data, 0o600)
}

func (p *pull) applyTask(c *Cursor, task, name string, f file, sent time.Time) error {
	lines, vault := strings.HasPrefix(name, "ops/"), name == taskdir.VaultName
	if !lines && !vault && !strings.HasPrefix(name, "blobs/") && !strings.HasPrefix(name, taskdir.BundlesName+"/") {
		return fmt.Errorf("%w: a file named %q", ErrDamaged, f.name)
	}
	path := filepath.Join(p.home.Task(task), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	at := end{File: name, Size: f.offset + int64(len(f.data))}
	m := mark{seq: c.Seqs[task], vault: c.Vaults[task]}
	switch {
	case lines:
		m.seq += uint64(bytes.Count(f.data, []byte("\n")))
		m.file, m.end = at.File, at.Size
	case vault:
		m.vault = at.Size
	}
	c.move(task, m)
	if err := p.write(path, f.offset, f.data); err != nil {
		return err
	}
	return os.Chtimes(path, sent, sent) // a list of tasks says when each was written last
}

// write writes bytes into a file unless they are there. Other bytes there, and what follows them, are moved to a
// file beside the stream first: no log has them.
func (p *pull) write(path string, off int64, data []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	have := make([]byte, len(data))
	n, _ := f.ReadAt(have, off)
	if bytes.Equal(have[:n], data) {
		return nil
	}
	if info, err := f.Stat(); err != nil {
		return err
	} else if info.Size() < off {
		return fmt.Errorf("%w: %s has %d bytes, and the next are those from %d on", ErrDamaged, path, info.Size(), off)
	}
	if !bytes.HasPrefix(data, have[:n]) {
		if err := p.setAside(path, off); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt(data, off); err != nil {
		return err
	}
	return f.Sync()
}

// setAside moves what a file has from an offset on to a file beside the stream.
func (p *pull) setAside(path string, off int64) error {
	data, err := os.ReadFile(path)
	if err != nil || int64(len(data)) <= off {
		return err
	}
	aside := fmt.Sprintf("%s.aside-%s", path, time.Now().UTC().Format("20060102T150405.000"))
	if dir := filepath.Dir(path); filepath.Base(dir) == "ops" { // it holds segments only
		aside = filepath.Join(filepath.Dir(dir), filepath.Base(aside))
	}
	err = durable.WriteVia(durable.OS{}, aside+".tmp", aside, data[off:])
	if err == nil {
		err = os.Truncate(path, off)
	}
	p.Aside = append(p.Aside, aside)
	return err
}

// cutTails sets aside what streams have after their ends in the log: another process has continued the task
// without it.
func (p *pull) cutTails() error {
	for task, at := range p.Ends {
		ops := filepath.Join(p.home.Task(task), "ops")
		entries, err := os.ReadDir(ops)
		if err != nil {
			return err
		}
		for _, e := range entries {
			switch c := cmp.Compare("ops/"+e.Name(), at.File); {
			case c == 0:
				err = p.setAside(filepath.Join(ops, e.Name()), at.Size)
			case c > 0:
				if err = p.setAside(filepath.Join(ops, e.Name()), 0); err == nil {
					err = os.Remove(filepath.Join(ops, e.Name()))
				}
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"anamnesis/opstream/durable"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

const (
	// gcLevel is the compression level: a collection may take its time, since its result is read for long.
	gcLevel = 9
	// deltaChain bounds the length of a chain of deltas; git's own limit is 50.
	deltaChain = 50
	// deltaBytes: larger objects are not stored as deltas, which are made in memory.
	deltaBytes = 4 << 20
)

// line names the versions of one path, the newest first. Each is a delta to the previous, so that
// the newest, which a restore or a diff is most likely to need, is whole.
type line struct {
	path string
	kind gitfmt.ObjectType
}

// repack writes the objects to keep without the store's lock, and, with it, what was added meanwhile. Then
// it switches over.
func (g *collector) repack(ctx context.Context) error {
	most, err := g.write(ctx)
	defer most.Abort()
	if err != nil {
		return err
	}
	g.o.Hook("gathered")
	return g.locked(ctx, func() error {
		if err := g.catchUp(ctx); err != nil {
			return err
		}
		rest, err := g.write(ctx)
		defer rest.Abort()
		if err != nil {
			return err
		}
		return g.switchOver(most, rest)
	})
}

// write writes the pack of g.todo without making it visible. The pack is empty if there is nothing
// to write, and must be aborted in any case.
func (g *collector) write(ctx context.Context) (*objects.Writer, error) {
	todo := g.todo
	g.todo = batch{}
	out := objects.NewWriter(g.s.PackDir(), g.o.Hook, &objects.Pool{})
	out.Temp, out.Level = g.s.CollectDir(), gcLevel
	for _, h := range todo.commits {
		if err := g.writeWhole(out, gitfmt.CommitObject, "snapshot", h); err != nil {
			return out, err
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	byPath := func(a, b line) int { return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.kind, b.kind)) }
	for _, l := range slices.SortedFunc(maps.Keys(todo.lines), byPath) {
		group.Go(func() error {
			if gctx.Err() != nil {
				return gctx.Err()
			}
			return g.writeVersions(out, l, todo.lines[l])
		})
	}
	if err := group.Wait(); err != nil {
		return out, err
	}
	return out, out.Ready()
}

// switchOver shows the new packs, then removes refs, then the old packs: at every moment all
// objects that refs reach are there. The caller holds the store's lock.
func (g *collector) switchOver(packs ...*objects.Writer) error {
	var names []string
	for _, p := range packs {
		idx, err := p.Show()
		if err != nil {
			return err
		}
		if idx == "" { // empty
			continue
		}
		names = append(names, fsys.Base(idx))
		if err := g.s.Published(idx); err != nil {
			return err
		}
	}
	g.o.Hook("repacked")
	if err := g.refStore.Update(g.gone); err != nil {
		return err
	}
	g.o.Hook("refs-written")
	if err := g.s.RemovePacks(g.old, names, g.o.Hook); err != nil {
		return err
	}
	if err := os.Remove(g.s.AlternatesPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove alternates: %w", err) // all of its objects are in the new pack
	}
	if err := durable.Sync(filepath.Join(g.s.Dir, "objects", "info")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var err error
	g.report.BytesAfter, err = g.s.SizeBytes()
	g.report.Over = g.o.MaxBytes > 0 && g.report.BytesAfter > g.o.MaxBytes
	return err
}

func (g *collector) writeVersions(out *objects.Writer, l line, ids []gitfmt.Hash) error {
	var last []byte // the previous version, nil if it cannot be a base
	var lastID gitfmt.Hash
	chain := 0
	for _, h := range ids {
		if len(ids) == 1 {
			return g.writeWhole(out, l.kind, l.path, h)
		}
		data, err := g.s.ReadUpTo(h, l.kind, l.path, deltaBytes)
		if errors.Is(err, objects.ErrTooLarge) {
			last = nil
			if err := g.writeWhole(out, l.kind, l.path, h); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		done := false
		if last != nil && chain < deltaChain {
			if done, err = out.AddDelta(h, lastID, last, data); err != nil {
				return err
			}
		}
		if chain++; !done {
			chain = 0
			if err := out.Add(h, l.kind, data); err != nil {
				return err
			}
		}
		last, lastID = data, h
	}
	return nil
}

// writeWhole writes an object without a delta. If it is stored well compressed, its bytes are
// copied.
func (g *collector) writeWhole(out *objects.Writer, t gitfmt.ObjectType, path string, h gitfmt.Hash) error {
	if p, it := g.s.Locate(h); p != nil {
		if tight, err := p.Tight(it.Off); err == nil && tight {
			buf := g.s.Buffer()
			defer g.s.Buffers.Put(buf)
			if out.CopyRaw(p, it, *buf) == nil {
				return nil
			} // this copy is damaged
		}
	}
	_, err := g.s.Copy(out, t, h, path)
	return err
}

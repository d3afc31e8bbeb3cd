package gitdir

import (
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/memory"
)

const (
	packBatchBytes = 64 << 20
	packWindow     = 10
)

// Packer writes objects into packs of a bounded size.
type Packer struct {
	St    *filesystem.Storage
	batch *memory.Storage
	ids   []plumbing.Hash
	size  int
	Done  map[plumbing.Hash]bool
}

func (p *Packer) Add(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	id := plumbing.ComputeHash(t, data)
	if p.Done[id] {
		return id, nil
	}
	p.Done[id] = true
	if p.batch == nil {
		p.batch = memory.NewStorage()
	}
	o := new(plumbing.MemoryObject)
	o.SetType(t)
	if _, err := o.Write(data); err != nil {
		return id, err
	}
	if _, err := p.batch.SetEncodedObject(o); err != nil {
		return id, err
	}
	p.ids, p.size = append(p.ids, id), p.size+len(data)
	if p.size < packBatchBytes {
		return id, nil
	}
	return id, p.Flush()
}

func (p *Packer) Flush() error {
	if len(p.ids) == 0 {
		return nil
	}
	w, err := p.St.PackfileWriter()
	if err != nil {
		return err
	}
	_, err = packfile.NewEncoder(w, p.batch, false).Encode(p.ids, packWindow)
	p.batch, p.ids, p.size = nil, nil, 0
	return errors.Join(err, w.Close())
}

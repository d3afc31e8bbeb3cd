package worldstate

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/zlib"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// compressionLevel trades a few percent of size for most of the speed.
const compressionLevel = zlib.BestSpeed

// rawBytes: a save stores objects up to so many bytes, and trees, which are
// mostly ids, as they are: compressing one takes longer than reading its file,
// for a fifth of a tree's bytes. GC compresses them.
const rawBytes = 2 << 10

// packWriter writes one pack: all objects of one save, undeltified, made
// durable by one sync. Safe for concurrent use until finish.
type packWriter struct {
	dir   string // objects/pack
	temp  string // where it is written; "": in dir
	hook  func(string)
	pool  *packPool
	level int // 0: compressionLevel
	mu    sync.Mutex
	f     *os.File
	w     *bufio.Writer
	off   int64
	items []gitfmt.PackItem
	seen  map[gitfmt.Hash]struct{}
	large chan struct{} // held by those who compress a large blob

	sum   gitfmt.Hash // once it is ready
	index string      // likewise: the index's temporary file
	keep  string      // likewise: that of its .keep
}

const packHeaderBytes = 12

// packPool is what one pack after the other is written with. A small save would
// otherwise spend most of its time on two megabytes of fresh memory.
type packPool struct{ compressors, buffers, entries sync.Pool }

// packBufferBytes is how much of a pack is gathered before it is written.
const packBufferBytes = 1 << 20

func newPackWriter(dir string, hook func(string), pool *packPool) *packWriter {
	return &packWriter{dir: dir, hook: hook, pool: pool, large: make(chan struct{}, largeAtOnce)}
}

// buffer is a writer to f that gathers what is written.
func (p *packPool) buffer(f io.Writer) *bufio.Writer {
	if w, ok := p.buffers.Get().(*bufio.Writer); ok {
		w.Reset(f)
		return w
	}
	return bufio.NewWriterSize(f, packBufferBytes)
}

// entry is an empty buffer for one compressed object.
func (p *packPool) entry() *bytes.Buffer {
	if b, ok := p.entries.Get().(*bytes.Buffer); ok {
		b.Reset()
		return b
	}
	return new(bytes.Buffer)
}

func (p *packWriter) compressor(w io.Writer) *zlib.Writer {
	if z, ok := p.pool.compressors.Get().(*zlib.Writer); ok {
		z.Reset(w)
		return z
	}
	level := p.level
	if level == 0 {
		level = compressionLevel
	}
	z, err := zlib.NewWriterLevel(w, level)
	if err != nil {
		panic("worldstate: " + err.Error()) // the level is a constant
	}
	return z
}

// holds reports whether the pack has the object already.
func (p *packWriter) holds(h gitfmt.Hash) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.seen[h]
	return ok
}

// add stores an object whose id the caller computed.
func (p *packWriter) add(h gitfmt.Hash, t gitfmt.ObjectType, data []byte) error {
	if p.holds(h) {
		return nil
	}
	buf := p.pool.entry()
	defer p.pool.entries.Put(buf)
	buf.Write(gitfmt.PackEntryHeader(t, int64(len(data))))
	if p.level == 0 && (t == gitfmt.TreeObject || len(data) <= rawBytes) {
		buf.Write(gitfmt.AppendRaw(buf.AvailableBuffer(), data))
		return p.write(h, buf)
	}
	return p.compress(h, buf, data)
}

// put stores an object's header and, compressed, what follows it.
func (p *packWriter) put(h gitfmt.Hash, head, data []byte) error {
	buf := p.pool.entry()
	defer p.pool.entries.Put(buf)
	buf.Write(head)
	return p.compress(h, buf, data)
}

// compress writes an entry whose header is in buf.
func (p *packWriter) compress(h gitfmt.Hash, buf *bytes.Buffer, data []byte) error {
	z := p.compressor(buf)
	_, err := z.Write(data)
	if cerr := z.Close(); err == nil {
		err = cerr
	}
	p.pool.compressors.Put(z)
	if err != nil {
		return err
	}
	return p.write(h, buf)
}

// write takes an entry into the pack.
func (p *packWriter) write(h gitfmt.Hash, buf *bytes.Buffer) error {
	sum := crc32.ChecksumIEEE(buf.Bytes())
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.seen[h]; twice {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	if _, err := p.w.Write(buf.Bytes()); err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	p.record(h, sum, int64(buf.Len()))
	return nil
}

// copyRaw stores an object as it stands in another pack, and not at all where
// its bytes are not as they were written there.
func (p *packWriter) copyRaw(from *packFile, it packEntry, buf []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.seen[it.Hash]; twice {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	count := &countWriter{w: p.w}
	if _, err := from.intact(it, count, buf); err != nil {
		return errors.Join(err, p.truncate())
	}
	p.record(it.Hash, it.Crc, count.n)
	return nil
}

type countWriter struct {
	w io.Writer
	n int64
}

func (c *countWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// begin makes the file at the first object; p.mu is held.
func (p *packWriter) begin() error {
	if p.f != nil {
		return nil
	}
	f, err := os.CreateTemp(cmp.Or(p.temp, p.dir), fsys.TempPrefix)
	if err != nil {
		return fmt.Errorf("begin pack: %w", err)
	}
	p.f, p.w, p.off, p.seen = f, p.pool.buffer(f), packHeaderBytes, make(map[gitfmt.Hash]struct{})
	if _, err := p.w.Write(make([]byte, packHeaderBytes)); err != nil {
		return fmt.Errorf("begin pack: %w", err)
	}
	return nil
}

// truncate forgets what was written after the last recorded object.
func (p *packWriter) truncate() error {
	if err := p.w.Flush(); err != nil {
		return err
	}
	if err := p.f.Truncate(p.off); err != nil {
		return err
	}
	_, err := p.f.Seek(p.off, io.SeekStart)
	return err
}

func (p *packWriter) record(h gitfmt.Hash, crc uint32, n int64) {
	p.items = append(p.items, gitfmt.PackItem{Hash: h, Off: p.off, Crc: crc})
	p.seen[h] = struct{}{}
	p.off += n
}

// size is what the pack takes on disk once it is finished, its index and
// .keep included, 0 while it holds nothing.
func (p *packWriter) size() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.items) == 0 {
		return 0
	}
	far := 0
	for _, it := range p.items {
		if it.Off >= 1<<31 {
			far++
		}
	}
	index := indexEntries + 28*len(p.items) + 8*far + indexEnd
	return p.off + int64(sha1.Size+index+len(keepWord)+1)
}

// abort removes what was written. Harmless after finish.
func (p *packWriter) abort() {
	if p.f == nil {
		return
	}
	p.f.Close()
	os.Remove(p.f.Name())
	for _, temp := range []string{p.index, p.keep} {
		if temp != "" {
			os.Remove(temp)
		}
	}
	p.w.Reset(nil) // the pool must not hold the file
	p.pool.buffers.Put(p.w)
	p.f, p.w = nil, nil
}

// finish makes the pack durable and visible. It returns the index's path, ""
// when there was nothing to write.
func (p *packWriter) finish() (string, error) {
	if err := p.ready(); err != nil {
		return "", err
	}
	return p.show()
}

// ready makes the pack and its index durable under their temporary names.
// Nothing can be added afterwards.
func (p *packWriter) ready() error {
	if p.f == nil || p.index != "" {
		return nil
	}
	var err error
	if p.sum, err = p.seal(); err != nil {
		p.abort()
		return fmt.Errorf("finish pack: %w", err)
	}
	synced := make(chan error, 2) // together, so that they share the disk's waiting
	go func() { synced <- p.f.Sync() }()
	go func() {
		var err error
		p.keep, err = p.writeTemp([]byte(keepWord + "\n"))
		synced <- err
	}()
	p.index, err = p.writeTemp(gitfmt.EncodePackIndex(p.items, p.sum))
	err = errors.Join(err, <-synced, <-synced)
	if err != nil {
		p.abort()
		return fmt.Errorf("finish pack: %w", err)
	}
	p.hook("pack-written")
	return nil
}

// show makes a pack that is ready visible: its .keep, so that no git takes it away,
// the pack, then its index, which git takes as the sign that a pack is there. It
// returns as finish does.
func (p *packWriter) show() (string, error) {
	if p.f == nil {
		return "", nil
	}
	defer p.abort()
	name := filepath.Join(p.dir, "pack-"+p.sum.String())
	for _, ext := range []string{".pack", keepExt} {
		if _, err := os.Lstat(name + ext); err == nil {
			// Who made the one of that name may be about to remove it.
			name = filepath.Join(p.dir, "pack-"+gitfmt.HashObject(gitfmt.BlobObject, []byte(name+fsys.NewNonce())).String())
			break
		}
	}
	err := os.Rename(p.keep, name+keepExt)
	if err == nil {
		err = os.Rename(p.f.Name(), name+".pack")
	}
	if err == nil {
		err = fsys.SyncDir(p.dir) // a file system may make renames durable in another order
	}
	if err != nil {
		return "", fmt.Errorf("finish pack: %w", err)
	}
	p.hook("pack-renamed")
	if err := os.Rename(p.index, name+".idx"); err != nil {
		return "", fmt.Errorf("finish pack: %w", err)
	}
	p.hook("pack-indexed")
	return name + ".idx", fsys.SyncDir(p.dir)
}

// writeTemp writes a file, durably, under a temporary name.
func (p *packWriter) writeTemp(data []byte) (name string, err error) {
	f, err := os.CreateTemp(cmp.Or(p.temp, p.dir), fsys.TempPrefix)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

// seal writes the header's count and the trailing checksum; it does not sync.
func (p *packWriter) seal() (gitfmt.Hash, error) {
	var sum gitfmt.Hash
	if err := p.w.Flush(); err != nil {
		return sum, err
	}
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(p.items)))
	if _, err := p.f.WriteAt(head, 0); err != nil {
		return sum, err
	}
	h := sha1.New()
	if _, err := io.Copy(h, io.NewSectionReader(p.f, 0, p.off)); err != nil {
		return sum, err
	}
	sum = gitfmt.Hash(h.Sum(nil))
	if _, err := p.f.WriteAt(sum[:], p.off); err != nil {
		return sum, err
	}
	return sum, nil
}

package objects

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

	"anamnesis/opstream/durable"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// compressionLevel gives up a few percent of size for most of the speed.
const compressionLevel = zlib.BestSpeed

// Writer writes one pack: all objects of one save, made durable by one sync. Safe for
// concurrent use until Finish or Ready.
type Writer struct {
	dir   string       // objects/pack
	Temp  string       // the directory for temporary files; "" for dir
	hook  func(string) // Options.Hook of a World
	pool  *Pool
	Level int // 0: compressionLevel
	mu    sync.Mutex
	f     *os.File
	w     *bufio.Writer
	Off   int64
	Items []gitfmt.PackItem
	seen  map[gitfmt.Hash]struct{}

	sum   gitfmt.Hash // set by Ready
	index string      // set by Ready: the index's temporary file
}

const PackHeaderBytes = 12

// Pool reuses the compressors and buffers of objects. A small save would otherwise spend most of
// its time allocating a megabyte.
type Pool struct{ compressors, entries sync.Pool }

const packBufferBytes = 64 << 10

func NewWriter(dir string, hook func(string), pool *Pool) *Writer {
	return &Writer{dir: dir, hook: hook, pool: pool}
}

// entry returns an empty buffer for one compressed object.
func (p *Pool) entry() *bytes.Buffer {
	if b, ok := p.entries.Get().(*bytes.Buffer); ok {
		b.Reset()
		return b
	}
	return new(bytes.Buffer)
}

func (p *Writer) compressor(w io.Writer) *zlib.Writer {
	if z, ok := p.pool.compressors.Get().(*zlib.Writer); ok {
		z.Reset(w)
		return z
	}
	level := cmp.Or(p.Level, compressionLevel)
	z, err := zlib.NewWriterLevel(w, level)
	if err != nil {
		panic("worldstate: " + err.Error()) // the level is a constant
	}
	return z
}

// Add stores an object; h is its id.
func (p *Writer) Add(h gitfmt.Hash, t gitfmt.ObjectType, data []byte) error {
	p.mu.Lock()
	_, twice := p.seen[h]
	p.mu.Unlock()
	if twice { // write checks again; here it saves the compression
		return nil
	}
	buf := p.pool.entry()
	defer p.pool.entries.Put(buf)
	buf.Write(gitfmt.PackEntryHeader(t, int64(len(data))))
	return p.compress(h, buf, data)
}

// compress stores an entry whose header is in buf.
func (p *Writer) compress(h gitfmt.Hash, buf *bytes.Buffer, data []byte) error {
	z := p.compressor(buf)
	_, err := z.Write(data)
	err = cmp.Or(err, z.Close())
	p.pool.compressors.Put(z)
	if err != nil {
		return err
	}
	return p.write(h, buf)
}

// write appends an entry to the pack.
func (p *Writer) write(h gitfmt.Hash, buf *bytes.Buffer) error {
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

// CopyRaw copies an object from another pack as it is stored. If its checksum is wrong, nothing
// is stored.
func (p *Writer) CopyRaw(from *Pack, it Entry, buf []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.seen[it.Hash]; twice {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	count := &countWriter{w: p.w}
	if _, err := from.Intact(it, count, buf); err != nil {
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

// begin creates the file at the first object; p.mu is held.
func (p *Writer) begin() error {
	if p.f != nil {
		return nil
	}
	f, err := os.CreateTemp(cmp.Or(p.Temp, p.dir), fsys.TempPrefix)
	if err != nil {
		return fmt.Errorf("begin pack: %w", err)
	}
	p.f, p.w = f, bufio.NewWriterSize(f, packBufferBytes)
	p.Off, p.seen = PackHeaderBytes, make(map[gitfmt.Hash]struct{})
	// The header holds the number of objects, which only seal knows.
	if _, err := p.w.Write(make([]byte, PackHeaderBytes)); err != nil {
		return fmt.Errorf("begin pack: %w", err)
	}
	return nil
}

// truncate drops what was written after the last recorded object.
func (p *Writer) truncate() error {
	if err := p.w.Flush(); err != nil {
		return err
	}
	if err := p.f.Truncate(p.Off); err != nil {
		return err
	}
	_, err := p.f.Seek(p.Off, io.SeekStart)
	return err
}

func (p *Writer) record(h gitfmt.Hash, crc uint32, n int64) {
	p.Items = append(p.Items, gitfmt.PackItem{Hash: h, Off: p.Off, Crc: crc})
	p.seen[h] = struct{}{}
	p.Off += n
}

// size returns the size of the finished pack on disk, with its index and .keep; 0 if it is
// empty.
func (p *Writer) size() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.Items) == 0 {
		return 0
	}
	index := gitfmt.EncodePackIndex(p.Items, gitfmt.Hash{})
	return p.Off + int64(sha1.Size+len(index)+len(KeepWord)+1)
}

// Abort removes what was written. It does nothing after Finish or Show.
func (p *Writer) Abort() {
	if p.f == nil {
		return
	}
	p.f.Close()
	os.Remove(p.f.Name())
	if p.index != "" {
		os.Remove(p.index)
	}
	p.f, p.w = nil, nil
}

// Finish makes the pack durable and visible. It returns the index's path, "" if the pack is
// empty.
func (p *Writer) Finish() (string, error) {
	if err := p.Ready(); err != nil {
		return "", err
	}
	return p.Show()
}

// Ready makes the pack and its index durable under temporary names. Nothing can be added
// afterwards.
func (p *Writer) Ready() error {
	if p.f == nil || p.index != "" {
		return nil
	}
	var err error
	if p.sum, err = p.seal(); err != nil {
		p.Abort()
		return fmt.Errorf("finish pack: %w", err)
	}
	synced := make(chan error, 1) // concurrently, so that both share the disk's latency
	go func() { synced <- p.f.Sync() }()
	p.index = fsys.Temp(cmp.Or(p.Temp, p.dir))
	err = durable.WriteTemp(durable.OS{}, p.index, gitfmt.EncodePackIndex(p.Items, p.sum))
	err = errors.Join(err, <-synced)
	if err != nil {
		p.Abort()
		return fmt.Errorf("finish pack: %w", err)
	}
	p.hook("pack-written")
	return nil
}

// Show makes a pack that is ready visible: first its .keep, which stops git from
// removing the pack, then the pack, then its index, by which git finds the pack.
// One sync makes the names durable. The content of the .keep is not synced: if a
// power failure empties it, the pack counts as the user's, remains readable and is
// never consolidated or collected. Show returns as Finish does.
func (p *Writer) Show() (string, error) {
	if p.f == nil {
		return "", nil
	}
	defer p.Abort()
	name := filepath.Join(p.dir, "pack-"+p.sum.String())
	for _, ext := range []string{".pack", KeepExt} {
		if _, err := os.Lstat(name + ext); err == nil {
			// The process that made the existing one may be about to remove it.
			other := gitfmt.HashObject(gitfmt.BlobObject, []byte(name+fsys.NewNonce()))
			name = filepath.Join(p.dir, "pack-"+other.String())
			break
		}
	}
	err := os.WriteFile(name+KeepExt, []byte(KeepWord+"\n"), 0o600)
	if err == nil {
		err = os.Rename(p.f.Name(), name+".pack")
	}
	if err != nil {
		os.Remove(name + KeepExt)
		return "", fmt.Errorf("finish pack: %w", err)
	}
	p.hook("pack-renamed")
	if err := os.Rename(p.index, name+".idx"); err != nil {
		return "", fmt.Errorf("finish pack: %w", err)
	}
	p.hook("pack-indexed")
	return name + ".idx", durable.Sync(p.dir)
}

// seal writes the count into the header and the checksum at the end. It does not sync.
func (p *Writer) seal() (gitfmt.Hash, error) {
	var sum gitfmt.Hash
	if err := p.w.Flush(); err != nil {
		return sum, err
	}
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(p.Items)))
	if _, err := p.f.WriteAt(head, 0); err != nil {
		return sum, err
	}
	h := sha1.New()
	if _, err := io.Copy(h, io.NewSectionReader(p.f, 0, p.Off)); err != nil {
		return sum, err
	}
	sum = gitfmt.Hash(h.Sum(nil))
	_, err := p.f.WriteAt(sum[:], p.Off)
	return sum, err
}

package refs

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

const (
	// packedHeader begins packed-refs, as git writes it but for "peeled": what a
	// tag leads to is not written, and git looks for it. What follows, git's
	// passes over: the length and the checksum of all that stands behind the
	// first line, so that a file that was cut short is not taken for one with
	// fewer refs. Git leaves it out where it writes the file.
	packedHeader = "# pack-refs with: sorted "
	PackedSum    = "sum="
	// packedBlockBytes is how much of packed-refs is read to find one ref in it,
	// a line more at most.
	packedBlockBytes = 4 << 10
	// packedLineBytes is the longest line that is read.
	packedLineBytes = 64 << 10
)

// refSource is packed-refs' open file; tests give another.
type refSource interface {
	io.ReaderAt
	io.Closer
}

// packedRefs is a packed-refs file, as it was when it was read through. It is
// replaced by another one, never written over, so it stays open and holds what
// it held. Each step of each task has a ref, for as long as the store lives:
// memory holds of each stretch of the file with which name it begins, where,
// and its checksum. A stretch that does not have it any more is ErrCorrupt: that
// a ref is not there is said only of bytes that are what they were.
type packedRefs struct {
	src    refSource // nil: no ref stands in a file
	blocks []packedBlock
	n      int // refs
	// unsorted are the refs of a file that is not in the order of their names; it
	// is not kept open.
	unsorted map[string]gitfmt.Hash
}

type packedBlock struct {
	first string
	off   int64
	size  int
	crc   uint32
}

// readPackedRefs reads a packed-refs file through. held are the refs that are no
// step's: they are few, and asked for at each save. The refs of a file that is
// not in the order of their names, which git no longer writes, are all held.
func readPackedRefs(path string) (_ *packedRefs, held map[string]gitfmt.Hash, err error) {
	held = make(map[string]gitfmt.Hash)
	f, err := fsys.OpenFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return &packedRefs{}, held, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read refs: %w", err)
	}
	p := &packedRefs{src: f}
	unsorted, sum := false, ""
	index := blockIndex{p: p}
	err = packedLines(f, func(line, name []byte, h gitfmt.Hash) {
		if index.off == 0 && line[0] == '#' {
			sum, index.off, index.body = sumIn(string(line)), int64(len(line)), int64(len(line))
			return
		}
		if name == nil {
			index.skip(line)
			return
		}
		unsorted = !index.add(line, name) || unsorted
		if !IsStepRef(name) {
			held[string(name)] = h
		}
	})
	index.end()
	if err == nil && index.off == 0 {
		err = fmt.Errorf("read refs: %w: packed-refs is empty", gitfmt.ErrCorrupt) // git writes a first line in any case
	}
	if err == nil && sum != "" && sum != index.sum() {
		err = fmt.Errorf("read refs: %w: packed-refs was cut short or changed by something else than git; 'git pack-refs --all' takes it as it stands", gitfmt.ErrCorrupt)
	}
	if err == nil && unsorted {
		err = packedLines(io.NewSectionReader(f, 0, 1<<62), func(_, name []byte, h gitfmt.Hash) {
			if name != nil {
				held[string(name)] = h
			}
		})
		p.close()
		p = &packedRefs{unsorted: maps.Clone(held)}
	}
	if err != nil {
		p.close()
		return nil, nil, err
	}
	return p, held, nil
}

func IsStepRef[T string | []byte](name T) bool {
	return len(name) >= len(TaskPrefix) && string(name[:len(TaskPrefix)]) == TaskPrefix
}

// packedLines calls f with each line of a packed-refs file, its end included,
// and with what it says; name is nil for a remark and for what a tag leads to.
// What f gets is f's until it returns.
func packedLines(r io.Reader, f func(line, name []byte, h gitfmt.Hash)) error {
	in := bufio.NewReaderSize(r, packedLineBytes)
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("read refs: %w", err)
		}
		h, name, ok := parsePackedLine(line)
		if !ok {
			return fmt.Errorf("read refs: %w: bad line %.200q in packed-refs", gitfmt.ErrCorrupt, line)
		}
		f(line, name, h)
	}
}

// parsePackedLine takes a line apart. One without its end is bad: a file that
// was cut short there may name another ref.
func parsePackedLine(line []byte) (h gitfmt.Hash, name []byte, ok bool) {
	text, whole := bytes.CutSuffix(line, []byte{'\n'})
	if !whole {
		return h, nil, false
	}
	if len(text) == 0 || text[0] == '#' || text[0] == '^' {
		return h, nil, true
	}
	const id = 2 * len(h)
	if len(text) < id+1 || text[id] != ' ' || !bytes.HasPrefix(text[id+1:], []byte("refs/")) {
		return h, nil, false
	}
	for _, c := range text[:id] {
		if c >= 'A' && c <= 'F' {
			return h, nil, false
		}
	}
	_, err := hex.Decode(h[:], text[:id])
	return h, text[id+1:], err == nil
}

// sumIn gives what a first line says of the others; "" where it is git's.
func sumIn(header string) string {
	for trait := range strings.FieldsSeq(header) {
		if sum, ok := strings.CutPrefix(trait, PackedSum); ok {
			return sum
		}
	}
	return ""
}

// blockIndex makes the blocks of a packed-refs file of its lines.
type blockIndex struct {
	p    *packedRefs
	last []byte // the name before
	off  int64
	body int64       // where the first line ends
	crc  uint32      // of what follows it
	now  packedBlock // size 0: none has begun
}

// sum is what the first line says of the others.
func (b *blockIndex) sum() string { return fmt.Sprintf("%012x-%08x", b.off-b.body, b.crc) }

// add takes the line of a ref, and reports whether it stands where the order of
// the names wants it.
func (b *blockIndex) add(line, name []byte) bool {
	if b.now.size >= packedBlockBytes {
		b.end()
	}
	if b.now.size == 0 {
		b.now = packedBlock{first: string(name), off: b.off}
	}
	sorted := b.p.n == 0 || bytes.Compare(b.last, name) < 0
	b.last = append(b.last[:0], name...)
	b.p.n++
	b.take(line)
	return sorted
}

// skip takes a line that is no ref's.
func (b *blockIndex) skip(line []byte) {
	if b.now.size > 0 {
		b.take(line)
		return
	}
	b.off += int64(len(line))
	b.crc = crc32.Update(b.crc, crc32.IEEETable, line)
}

func (b *blockIndex) take(line []byte) {
	b.now.crc = crc32.Update(b.now.crc, crc32.IEEETable, line)
	b.now.size += len(line)
	b.off += int64(len(line))
	b.crc = crc32.Update(b.crc, crc32.IEEETable, line)
}

// end ends the last block.
func (b *blockIndex) end() {
	if b.now.size > 0 {
		b.p.blocks = append(b.p.blocks, b.now)
	}
	b.now = packedBlock{}
}

// block reads the i-th block into buf, which is made longer where it must be.
func (p *packedRefs) block(i int, buf []byte) ([]byte, error) {
	b := &p.blocks[i]
	buf = slices.Grow(buf[:0], b.size)[:b.size]
	switch _, err := p.src.ReadAt(buf, b.off); {
	case err == io.EOF:
		return nil, fmt.Errorf("read refs: %w: packed-refs was cut short", gitfmt.ErrCorrupt)
	case err != nil:
		return nil, fmt.Errorf("read refs: %w", err)
	case crc32.ChecksumIEEE(buf) != b.crc:
		return nil, fmt.Errorf("read refs: %w: packed-refs is not what it was, from byte %d on", gitfmt.ErrCorrupt, b.off)
	}
	return buf, nil
}

// get gives the id of a name, zero where there is none.
func (p *packedRefs) get(name string) (gitfmt.Hash, error) {
	if h, ok := p.unsorted[name]; ok {
		return h, nil
	}
	i := sort.Search(len(p.blocks), func(i int) bool { return p.blocks[i].first > name }) - 1
	if i < 0 {
		return gitfmt.Hash{}, nil
	}
	data, err := p.block(i, nil)
	if err != nil {
		return gitfmt.Hash{}, err
	}
	end := []byte(" " + name + "\n")
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, end) {
			continue
		}
		if h, n, _ := parsePackedLine(line); string(n) == name {
			return h, nil
		}
	}
	return gitfmt.Hash{}, nil
}

// each calls f with each ref's line and what it says, in the order of the names.
// What f gets is f's until it returns.
func (p *packedRefs) each(f func(line, name []byte, h gitfmt.Hash) error) error {
	var buf []byte
	for i := range p.blocks {
		var err error
		if buf, err = p.block(i, buf); err != nil {
			return err
		}
		for line := range bytes.Lines(buf) {
			h, name, _ := parsePackedLine(line)
			if name == nil {
				continue
			}
			if err := f(line, name, h); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *packedRefs) close() {
	if p.src != nil {
		p.src.Close()
	}
}

// packedWriter writes a packed-refs file.
type packedWriter struct {
	w     *bufio.Writer
	index blockIndex
}

func (w *packedWriter) put(line, name []byte) error {
	w.index.add(line, name)
	_, err := w.w.Write(line)
	return err
}

// write writes the refs of p and over them those of set, a zero id for one that
// is not to stand there, to another file, durably, and gives that. p is not
// changed.
func (p *packedRefs) write(path string, set map[string]gitfmt.Hash) (out *packedRefs, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), fsys.TempPrefix)
	if err != nil {
		return nil, fmt.Errorf("write refs: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	out = &packedRefs{src: f}
	w := packedWriter{w: bufio.NewWriter(f), index: blockIndex{p: out}}
	head := w.header()
	w.index.off, w.index.body = int64(len(head)), int64(len(head))
	_, err = w.w.WriteString(head)
	if err == nil {
		err = w.merge(p, set)
	}
	w.index.end()
	if err == nil {
		err = w.w.Flush()
	}
	if err == nil {
		_, err = f.WriteAt([]byte(w.header()), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("write refs: %w", err)
	}
	return out, nil
}

// header is the first line, of the same length whatever follows.
func (w *packedWriter) header() string {
	return packedHeader + PackedSum + w.index.sum() + " \n"
}

// merge writes the refs' lines, in the order of the names.
func (w *packedWriter) merge(p *packedRefs, set map[string]gitfmt.Hash) error {
	names, next := slices.Sorted(maps.Keys(set)), []byte(nil)
	putNext := func() error {
		name := names[0]
		h := set[name]
		if names = names[1:]; h.IsZero() {
			return nil
		}
		next = append(append(hex.AppendEncode(next[:0], h[:]), ' '), name...)
		next = append(next, '\n')
		return w.put(next, next[2*len(h)+1:len(next)-1])
	}
	err := p.each(func(line, name []byte, _ gitfmt.Hash) error {
		for len(names) > 0 && names[0] < string(name) {
			if err := putNext(); err != nil {
				return err
			}
		}
		if len(names) > 0 && names[0] == string(name) {
			return nil // its turn is next
		}
		return w.put(line, name)
	})
	for err == nil && len(names) > 0 {
		err = putNext()
	}
	return err
}

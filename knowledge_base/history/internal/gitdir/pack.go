package gitdir

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/klauspost/compress/zlib"

	"anamnesis/opstream/durable"
)

// A commit's objects are added to the newest pack: its bytes are copied with
// them behind, beside it, and it is removed. Each commit of one card holds a new tree of the
// month; it is written as the difference to one of the trees before it.
const (
	packHead     = 12      // "PACK", version, number of objects
	growBytes    = 1 << 20 // a pack longer than this and growTrees of the commit's largest tree stays as it is
	growTrees    = 2
	MaxChain     = 5   // differences a tree is put together from at most
	leastDelta   = 540 // bytes that a difference of the deepest level may have: about six cards;
	deltaGrowth  = 6   // at each level above so many times as many
	deltaPercent = 50  // of the tree's own size is a difference worth while
)

// grown is a pack that objects are added to.
type grown struct {
	git   string // the repository
	from  string // path of the pack without .pack; "" for none
	data  []byte // header and objects, without the sum at the end
	index *idxfile.MemoryIndex
	more  []idxfile.Entry
	at    map[plumbing.Hash]int64 // of what was added
}

// Grow opens the newest pack to add to, or begins one. tree is the size of the
// largest tree that will be added.
func Grow(git string, tree int) (*grown, error) {
	g := &grown{git: git, data: make([]byte, packHead), at: make(map[plumbing.Hash]int64)}
	name, err := newestPack(git, int64(growBytes+growTrees*tree))
	if err != nil || name == "" {
		return g, err
	}
	data, err := os.ReadFile(name + ".pack")
	if err != nil {
		return g, err
	}
	idx, err := os.ReadFile(name + ".idx")
	if err != nil {
		return g, err
	}
	index := idxfile.NewMemoryIndex()
	if len(data) < packHead+sha1.Size || idxfile.NewDecoder(bytes.NewReader(idx)).Decode(index) != nil {
		return g, nil // git says what is wrong with it
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	if sha1.Sum(body) == [sha1.Size]byte(sum) {
		g.from, g.data, g.index = name, body, index
	}
	return g, nil
}

// newestPack returns the pack written last that may be added to: of at most so many
// bytes, not kept by a .keep, and in no multi-pack-index.
func newestPack(git string, most int64) (string, error) {
	dir := filepath.Join(git, "objects", "pack")
	var after time.Time
	if info, err := os.Stat(filepath.Join(dir, "multi-pack-index")); err == nil {
		after = info.ModTime()
	}
	names, err := fs.Glob(os.DirFS(dir), "pack-*.pack")
	if err != nil {
		return "", err
	}
	newest := ""
	for _, name := range names {
		base := filepath.Join(dir, strings.TrimSuffix(name, ".pack"))
		info, err := os.Stat(base + ".pack")
		if err != nil || info.Size() > most || !info.ModTime().After(after) || Exists(base+".keep") || Exists(base+".promisor") || !Exists(base+".idx") {
			continue
		}
		newest, after = base, info.ModTime()
	}
	return newest, nil
}

// offset says where an object begins in the pack.
func (g *grown) offset(id plumbing.Hash) (int64, bool) {
	if at, ok := g.at[id]; ok {
		return at, true
	}
	if g.index == nil {
		return 0, false
	}
	at, err := g.index.FindOffset(id)
	return at, err == nil
}

// Add puts an object into the pack, unless it is there.
func (g *grown) Add(id plumbing.Hash, t plumbing.ObjectType, data []byte, like plumbing.Hash) error {
	if _, ok := g.offset(id); ok {
		return nil
	}
	at := int64(len(g.data))
	base, delta, err := g.delta(data, like)
	if err != nil {
		return err
	}
	if delta != nil {
		g.data = appendEntryHead(g.data, plumbing.OFSDeltaObject, len(delta))
		g.data = appendBack(g.data, at-base)
		data = delta
	} else {
		g.data = appendEntryHead(g.data, t, len(data))
	}
	var b bytes.Buffer
	zw := zlib.NewWriter(&b)
	_, err = zw.Write(data)
	if err = errors.Join(err, zw.Close()); err != nil {
		return err
	}
	g.data = append(g.data, b.Bytes()...)
	g.at[id] = at
	g.more = append(g.more, idxfile.Entry{Hash: id, Offset: uint64(at), CRC32: crc32.ChecksumIEEE(g.data[at:])})
	return nil
}

// delta returns the difference of a tree to one that like comes from, and where
// that begins; nil where the whole is better. The deeper a tree is in its
// chain, the shorter its difference must be: so chains stay short, and together
// the differences take a few times what changed.
func (g *grown) delta(data []byte, like plumbing.Hash) (base int64, delta []byte, err error) {
	at, ok := g.offset(like)
	if like.IsZero() || !ok {
		return 0, nil, nil
	}
	chain := []int64{at}
	for {
		t, back, _, err := g.entry(chain[len(chain)-1])
		if err != nil {
			return 0, nil, err
		}
		if t != plumbing.OFSDeltaObject {
			if t != plumbing.TreeObject {
				return 0, nil, nil // git wrote it another way
			}
			break
		}
		chain = append(chain, chain[len(chain)-1]-back)
	}
	for i, at := range chain {
		depth := len(chain) - i
		if depth > MaxChain {
			continue
		}
		was, err := g.tree(chain[i:])
		if err != nil {
			return 0, nil, err
		}
		most := leastDelta
		for range MaxChain - depth {
			most *= deltaGrowth
		}
		if depth == 1 {
			most = len(data) * deltaPercent / 100
		}
		if d := TreeDelta(was, data); len(d) <= most {
			return at, d, nil
		}
	}
	return 0, nil, nil
}

// tree puts a tree together from the chain that it begins.
func (g *grown) tree(chain []int64) ([]byte, error) {
	var out []byte
	for i := len(chain) - 1; i >= 0; i-- {
		_, _, from, err := g.entry(chain[i])
		if err != nil {
			return nil, err
		}
		zr, err := zlib.NewReader(bytes.NewReader(g.data[from:]))
		if err != nil {
			return nil, fmt.Errorf("read pack %s: %w", g.from, err)
		}
		data, err := io.ReadAll(zr)
		if err != nil {
			return nil, fmt.Errorf("read pack %s: %w", g.from, err)
		}
		if i == len(chain)-1 {
			out = data
		} else if out, err = packfile.PatchDelta(out, data); err != nil {
			return nil, fmt.Errorf("read pack %s: %w", g.from, err)
		}
	}
	return out, nil
}

// entry reads an object's head: its type, for a difference how far back the
// other begins, and where its bytes begin.
func (g *grown) entry(at int64) (t plumbing.ObjectType, back, from int64, err error) {
	p := g.data[min(at, int64(len(g.data))):]
	i := 0
	next := func() byte {
		if i >= len(p) {
			err = fmt.Errorf("read pack %s: an object ends early", g.from)
			return 0
		}
		i++
		return p[i-1]
	}
	b := next()
	t = plumbing.ObjectType(b >> 4 & 7)
	for b&0x80 != 0 {
		b = next()
	}
	if t == plumbing.OFSDeltaObject {
		b = next()
		for back = int64(b & 0x7f); b&0x80 != 0; {
			b = next()
			back = (back+1)<<7 | int64(b&0x7f)
		}
		if err == nil && (back <= 0 || back > at-packHead) {
			err = fmt.Errorf("read pack %s: a difference to nothing", g.from)
		}
	}
	return t, back, at + int64(i), err
}

// appendEntryHead adds an object's type and size.
func appendEntryHead(b []byte, t plumbing.ObjectType, size int) []byte {
	c := byte(t)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		b = append(b, c|0x80)
		c = byte(size & 0x7f)
	}
	return append(b, c)
}

// appendBack adds how far back a difference's base begins.
func appendBack(b []byte, n int64) []byte {
	var rev []byte
	rev = append(rev, byte(n&0x7f))
	for n >>= 7; n > 0; n >>= 7 {
		n--
		rev = append(rev, 0x80|byte(n&0x7f))
	}
	for i := len(rev) - 1; i >= 0; i-- {
		b = append(b, rev[i])
	}
	return b
}

// Write makes the pack durable in the place of the one it comes from.
func (g *grown) Write() error {
	if len(g.more) == 0 {
		return nil
	}
	w := new(idxfile.Writer)
	n := len(g.more)
	if g.index != nil {
		entries, err := g.index.Entries()
		if err != nil {
			return err
		}
		for e, err := entries.Next(); ; e, err = entries.Next() {
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			w.Add(e.Hash, e.Offset, e.CRC32)
			n++
		}
	}
	for _, e := range g.more {
		w.Add(e.Hash, e.Offset, e.CRC32)
	}
	copy(g.data, "PACK\x00\x00\x00\x02")
	binary.BigEndian.PutUint32(g.data[8:], uint32(n))
	sum := plumbing.Hash(sha1.Sum(g.data))
	if err := w.OnFooter(sum); err != nil {
		return err
	}
	index, err := w.Index()
	if err != nil {
		return err
	}
	var idx bytes.Buffer
	if _, err := idxfile.NewEncoder(&idx).Encode(index); err != nil {
		return err
	}
	dir := filepath.Join(g.git, "objects", "pack")
	if err := os.MkdirAll(dir, durable.DirMode); err != nil {
		return err
	}
	base := filepath.Join(dir, "pack-"+sum.String())
	for _, file := range []struct {
		path string
		data []byte
	}{{base + ".idx", idx.Bytes()}, {base + ".pack", append(g.data, sum[:]...)}} { // go-git refuses a pack without its index
		if err := replace(durable.OS{Mode: 0o400}, dir, file.path, file.data); err != nil {
			return err
		}
	}
	if g.from == "" || g.from == base {
		return nil
	}
	for _, ending := range []string{".pack", ".idx", ".rev", ".bitmap", ".mtimes"} { // what stays holds nothing that is not in the new one
		if err := os.Remove(g.from + ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// TreeDelta returns the difference between two trees in git's form: runs of
// entries that both have are copied.
func TreeDelta(was, is []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(len(was)))
	out = binary.AppendUvarint(out, uint64(len(is)))
	var from, to, written int // the run being copied; what of is is in out
	flush := func(until int) {
		out = appendCopy(out, from, to-from)
		written += to - from
		for new := is[written:until]; len(new) > 0; {
			n := min(len(new), 127)
			out = append(append(out, byte(n)), new[:n]...)
			new = new[n:]
		}
		written = until
	}
	i, j := 0, 0
	for j < len(is) {
		a, b := firstEntry(was[i:]), firstEntry(is[j:])
		switch {
		case len(a) > 0 && bytes.Equal(a, b):
			if i != to || written+to-from != j { // another run
				flush(j)
				from, to = i, i
			}
			to += len(a)
			i, j = i+len(a), j+len(b)
		case len(a) > 0 && bytes.Compare(entryKey(a), entryKey(b)) <= 0:
			i += len(a)
		default:
			j += len(b)
		}
	}
	flush(len(is))
	return out
}

// firstEntry cuts a tree's first entry: mode, name, zero, id.
func firstEntry(tree []byte) []byte {
	end := bytes.IndexByte(tree, 0)
	if end < 0 || end+1+sha1.Size > len(tree) {
		return tree
	}
	return tree[:end+1+sha1.Size]
}

// entryKey is what a tree's entries are in order of: a folder's name ends with a
// slash.
func entryKey(entry []byte) []byte {
	head, _, _ := bytes.Cut(entry, []byte{0})
	mode, name, _ := bytes.Cut(head, []byte(" "))
	if bytes.Equal(mode, []byte("40000")) {
		name = append(bytes.Clone(name), '/')
	}
	return name
}

const maxCopy = 1<<24 - 1

// appendCopy adds the copying of a run.
func appendCopy(out []byte, from, n int) []byte {
	for n > 0 {
		size := min(n, maxCopy)
		op, at := byte(0x80), len(out)
		out = append(out, 0)
		for k := range 4 {
			if b := byte(from >> (8 * k)); b != 0 {
				op |= 1 << k
				out = append(out, b)
			}
		}
		for k := range 3 {
			if b := byte(size >> (8 * k)); b != 0 {
				op |= 0x10 << k
				out = append(out, b)
			}
		}
		out[at] = op
		from, n = from+size, n-size
	}
	return out
}

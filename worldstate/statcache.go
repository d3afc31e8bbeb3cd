package worldstate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// The stat cache remembers, for one world in one store, the hash a file had
// under a stat. It is derived: any doubt (a checksum, a version, another
// world, a pack gone from the store) drops it whole and costs a full read.
//
// The racy rule: a file whose newest time stamp is not older than the moment
// it was read by the clock's granularity could change again without a new
// stamp; it is not remembered, so the next scan reads it again.

// cacheMagic begins a cache file and names its version.
const cacheMagic = "anamnesis-statcache 1\n"

const (
	// racySlack covers the kernel's coarse clock (a tick, at most 10 ms).
	racySlack = 100 * time.Millisecond
	// coarseSlack covers file systems with whole seconds (FAT counts two).
	coarseSlack = 2100 * time.Millisecond
)

// racy reports whether a stamp is too young at the moment of reading for a
// later change to be sure to show.
func racy(st stamp, read time.Time) bool {
	newest := max(st.mtime, st.ctime)
	slack := racySlack
	if st.mtime%int64(time.Second) == 0 && st.ctime%int64(time.Second) == 0 {
		slack = coarseSlack
	}
	return newest+int64(slack) > read.UnixNano()
}

type cached struct {
	size, mtime, ctime int64
	ino, dev           uint64
	mode               uint32
	hash               hash
}

func (c *cached) matches(st stamp) bool {
	return c.size == st.size && c.mtime == st.mtime && c.ctime == st.ctime && c.ino == st.ino && c.dev == st.dev && c.mode == st.mode
}

type statCache map[string]cached

func (w *World) cachePath() string {
	return filepath.Join(w.store, stateDir, "statcache-"+w.key)
}

// loadCache reads the cache; an empty one when there is none to trust.
func (w *World) loadCache() statCache {
	data, err := os.ReadFile(w.cachePath())
	if err != nil {
		return statCache{}
	}
	packs, c, err := decodeCache(data)
	if err != nil {
		return statCache{}
	}
	have := make(map[string]bool)
	for _, name := range w.objects.generation() {
		have[name] = true
	}
	for _, name := range packs {
		if !have[name] {
			return statCache{}
		}
	}
	return c
}

// storeCache replaces the cache file. It is not synced: a torn one fails its
// checksum.
func (w *World) storeCache(c statCache) error {
	tmp, err := os.CreateTemp(filepath.Dir(w.cachePath()), tempPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(encodeCache(w.objects.generation(), c))
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), w.cachePath())
}

func encodeCache(packs []string, c statCache) []byte {
	out := make([]byte, 0, len(c)*120)
	out = append(out, cacheMagic...)
	str := func(s string) {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	out = binary.AppendUvarint(out, uint64(len(packs)))
	for _, p := range packs {
		str(p)
	}
	out = binary.AppendUvarint(out, uint64(len(c)))
	for path, e := range c {
		str(path)
		for _, v := range []uint64{uint64(e.size), uint64(e.mtime), uint64(e.ctime), e.ino, e.dev, uint64(e.mode)} {
			out = binary.AppendUvarint(out, v)
		}
		out = append(out, e.hash[:]...)
	}
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

var errBadCache = errors.New("not a stat cache")

func decodeCache(data []byte) (packs []string, c statCache, err error) {
	n := len(data) - sha256.Size
	if n < len(cacheMagic) || !bytes.HasPrefix(data, []byte(cacheMagic)) {
		return nil, nil, errBadCache
	}
	if sum := sha256.Sum256(data[:n]); !bytes.Equal(sum[:], data[n:]) {
		return nil, nil, errBadCache
	}
	d := cacheDecoder{b: data[len(cacheMagic):n]}
	for range d.count() {
		packs = append(packs, d.str())
	}
	entries := d.count()
	c = make(statCache, entries)
	for range entries {
		path := d.str()
		e := cached{size: int64(d.uint()), mtime: int64(d.uint()), ctime: int64(d.uint()), ino: d.uint(), dev: d.uint(), mode: uint32(d.uint())}
		copy(e.hash[:], d.take(len(e.hash)))
		c[path] = e
	}
	if d.bad || len(d.b) != 0 {
		return nil, nil, errBadCache
	}
	return packs, c, nil
}

// cacheDecoder reads fields until the first that does not fit.
type cacheDecoder struct {
	b   []byte
	bad bool
}

func (d *cacheDecoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a number of things to come, each at least one byte long.
func (d *cacheDecoder) count() int {
	v := d.uint()
	if v > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return 0
	}
	return int(v)
}

func (d *cacheDecoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *cacheDecoder) str() string { return string(d.take(d.count())) }

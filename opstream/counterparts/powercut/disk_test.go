package powercut

import (
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
)

// wholeBytes is how many bytes at the disk's beginning are never torn. ext4's superblock is
// there; it has a checksum and is overwritten in place, so half of it would destroy the file
// system with any content.
const wholeBytes = 4096

// event is one request to the disk: a flush or a write.
type event struct {
	flush bool
	off   int64
	data  []byte
}

// Recorder is a disk in memory that records every request. Its methods may be called
// concurrently.
type Recorder struct {
	mu     sync.Mutex
	base   []byte // as it was at first
	image  []byte // as it is read now
	events []event
	broken bool
}

// NewRecorder makes a disk that holds the image, which it copies.
func NewRecorder(image []byte) *Recorder {
	return &Recorder{base: slices.Clone(image), image: slices.Clone(image)}
}

// SizeBytes returns the disk's size.
func (r *Recorder) SizeBytes() int64 { return int64(len(r.base)) }

// Events returns how many writes and flushes were recorded.
func (r *Recorder) Events() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// Flushes returns how many of the recorded events are flushes.
func (r *Recorder) Flushes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.flush {
			n++
		}
	}
	return n
}

// ReadAt returns how many bytes were read; fewer than asked for at the disk's
// end.
func (r *Recorder) ReadAt(p []byte, off int64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if off >= int64(len(r.image)) {
		return 0
	}
	return copy(p, r.image[off:])
}

// WriteAt records a write, which must lie within the disk.
func (r *Recorder) WriteAt(p []byte, off int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.broken:
		return syscall.EIO
	case off < 0 || off+int64(len(p)) > int64(len(r.image)):
		return syscall.EFBIG
	}
	copy(r.image[off:], p)
	r.events = append(r.events, event{off: off, data: slices.Clone(p)})
	return nil
}

// Flush records a flush: what was written before is durable when it returns.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken {
		return syscall.EIO
	}
	r.events = append(r.events, event{flush: true})
	return nil
}

// Break makes every write and flush from now on fail with EIO; reading still works.
func (r *Recorder) Break() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = true
}

// Cut returns the image a disk may hold when its power ends after the first n
// events: what had been flushed, and of each later write any sectors. The first
// wholeBytes count as one sector.
func (r *Recorder) Cut(n, sectorBytes int, rng *rand.Rand) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	flushed := n
	for flushed > 0 && !r.events[flushed-1].flush {
		flushed--
	}
	out := slices.Clone(r.base)
	for _, e := range r.events[:flushed] {
		copy(out[e.off:], e.data)
	}
	keep := keeper(rng)
	for i, e := range r.events[flushed:n] {
		for at := 0; at < len(e.data); {
			size := sectorBytes
			if e.off+int64(at) < wholeBytes {
				size = wholeBytes
			}
			if keep(i, n-flushed) {
				copy(out[e.off+int64(at):], e.data[at:min(at+size, len(e.data))])
			}
			at += size
		}
	}
	return out
}

// keeper returns one of the ways in which a disk's cache may have been written
// back: all of it, nothing, the newer half first, or sectors at random.
func keeper(rng *rand.Rand) func(i, of int) bool {
	switch way := rng.IntN(8); way {
	case 0:
		return func(int, int) bool { return true }
	case 1:
		return func(int, int) bool { return false }
	case 2:
		return func(i, of int) bool { return i >= of/2 }
	default:
		share := float64(way-2) / 6
		return func(int, int) bool { return rng.Float64() < share }
	}
}

package knowledgebase

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/disk"
	"anamnesis/knowledge_base/usage"
)

const (
	// readers is how many files are read at once: a slow disk answers several
	// requests in the time of one.
	readers = 8
	// readRun is how many files a reader takes at a time, at most: mostly they are
	// only looked at, which takes less than passing each one on.
	readRun = 32
)

// read is what became of one file.
type read struct {
	st  *stored
	err error
}

// contents is what the folder holds.
type contents struct {
	cards   map[string]*stored
	lessons map[lessonMark]string // to the id of a card that says it
	broken  []BrokenCard
	usage   *usage.Tally
	// against has the ids of the cards that say, or once said, that they
	// contradict an id.
	against map[string][]string
	trusted map[string]bool // lessons reviewed on this machine
	arrived map[string]bool // lessons that arrived from elsewhere
}

// noteAgainst enters what a card says it contradicts.
func (c *contents) noteAgainst(h *card.Head) {
	for _, id := range h.Links().Contradicts {
		if !slices.Contains(c.against[id], h.ID) {
			c.against[id] = append(c.against[id], h.ID)
		}
	}
}

// opposing returns the ids of the cards that contradict one, whichever of the two
// says so: those the card names itself first, then the others sorted.
func (c *contents) opposing(id string) []string {
	var out, others []string
	if st := c.cards[id]; st != nil {
		out = slices.Clone(st.Links().Contradicts)
	}
	for _, other := range c.against[id] {
		if st := c.cards[other]; st != nil && slices.Contains(st.Links().Contradicts, id) && !slices.Contains(out, other) {
			others = append(others, other)
		}
	}
	slices.Sort(others)
	return append(out, others...)
}

// load reads the files into memory, but for those that are as they are in known,
// which is by path; the caller holds no lock that readers could be waiting for,
// or the write lock. What was read is kept for the next opening.
func (s *Store) load(ctx context.Context, known map[string]*stored) error {
	now, differ, err := s.scan(ctx, known)
	if err != nil {
		return err
	}
	s.keepCards(now.cards, differ)
	s.dropIndex()
	s.contents = now
	return nil
}

// scan reads the folder. Files that are as known, by path, are not read again; differ
// is how many of the settled ones are not known as they are, and how many of the known
// are no more.
func (s *Store) scan(ctx context.Context, known map[string]*stored) (out contents, differ int, err error) {
	trusted, arrived, err := readReviews(s.opts.reviews)
	if err != nil {
		return out, 0, err
	}
	s.trusted, s.arrived = trusted, arrived
	paths, broken, err := s.cardPaths()
	if err != nil {
		return out, 0, err
	}
	all, err := s.readAll(ctx, paths, known)
	if err != nil {
		return out, 0, err
	}
	differ = len(known)
	out = contents{cards: make(map[string]*stored, len(all)), lessons: make(map[lessonMark]string, len(all)), broken: broken, against: make(map[string][]string), trusted: trusted, arrived: arrived}
	for i, r := range all {
		if r.err == nil && out.cards[r.st.ID] != nil {
			r.err = card.Errorf(0, "id %s is also used by %s; give one of them another", r.st.ID, out.cards[r.st.ID].path())
		}
		if r.err != nil {
			out.broken = append(out.broken, BrokenCard{paths[i], r.err})
			continue
		}
		if len(out.cards) == MaxCards {
			return out, 0, fmt.Errorf("more than %d cards; move some to another folder", MaxCards)
		}
		if r.st.marks.Settled {
			if was := known[paths[i]]; was != nil && was.marks == r.st.marks {
				differ--
			} else {
				differ++
			}
		}
		out.cards[r.st.ID] = r.st
		out.noteAgainst(&r.st.Head)
		out.lessons[r.st.lesson.mark()] = r.st.ID
	}
	out.usage, err = usage.Read(s.usagePath())
	return out, differ, err
}

// cardPaths lists the files that hold cards, in the order of their paths, and
// the folders that cannot be listed.
func (s *Store) cardPaths() (paths []string, broken []BrokenCard, err error) {
	months, err := s.months()
	if err != nil {
		return nil, nil, err
	}
	for _, m := range months {
		entries, err := os.ReadDir(filepath.Join(s.dir, m))
		if err != nil {
			broken = append(broken, BrokenCard{filepath.Join(s.dir, m), err})
			continue
		}
		for _, e := range entries {
			if isCardFile(m + "/" + e.Name()) {
				paths = append(paths, filepath.Join(s.dir, m, e.Name()))
			}
		}
	}
	return paths, broken, nil
}

// readAll reads the files that are not as known, several at once, and tells
// how far it is.
func (s *Store) readAll(ctx context.Context, paths []string, known map[string]*stored) ([]read, error) {
	out := make([]read, len(paths))
	var next atomic.Int64
	var wg sync.WaitGroup
	done := make(chan int, readers)
	run := min(max(len(paths)/(2*readers), 1), readRun)
	for range min(readers, len(paths)) {
		wg.Go(func() {
			for from := int(next.Add(int64(run))) - run; from < len(paths) && ctx.Err() == nil; from = int(next.Add(int64(run))) - run {
				to := min(from+run, len(paths))
				for i := from; i < to; i++ {
					out[i].st, out[i].err = s.readNow(paths[i], known[paths[i]])
				}
				done <- to - from
			}
		})
	}
	go func() {
		wg.Wait()
		close(done)
	}()
	n := 0
	for some := range done {
		for range some {
			if n++; s.opts.Progress != nil {
				s.opts.Progress(n, len(paths))
			}
		}
	}
	return out, ctx.Err()
}

// readCard reads one card as it counts here.
func (s *Store) readCard(path string) (*stored, error) {
	st, err := readCardFile(path, s.opts.clock)
	if err != nil {
		return nil, err
	}
	return s.judge(st), nil
}

// readCardFile reads one regular file of bounded size, as the file says it.
func readCardFile(path string, clock func() time.Time) (*stored, error) {
	before, err := disk.MarksOf(path, clock())
	if err != nil {
		return nil, err
	}
	if !before.Regular {
		return nil, fmt.Errorf("read %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, card.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	c, err := card.Parse(src)
	if err != nil {
		return nil, err
	}
	if c.ID == "" {
		return nil, card.Errorf(2, "id is missing; add 'id: %s'", card.NewID("file", string(src)))
	}
	st := newStored(c, path, src)
	// The marks say what was read only if they are the same before and after.
	if after, err := disk.MarksOf(path, clock()); err == nil && before.Vouch(after) {
		st.marks = before
	}
	return st, nil
}

package knowledgebase

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/disk"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/usage"
)

// MaxCards is how many cards one folder may hold; opening more is an error.
const MaxCards = 1_000_000

const (
	indexDir    = ".index"
	replacedDir = ".replaced"
	slugBytes   = 96
)

var (
	// ErrNotFound is returned for an id no readable card has.
	ErrNotFound = errors.New("no such card")
	// ErrClosed is returned by every method of a closed store.
	ErrClosed = errors.New("knowledge base is closed")
)

// ConflictError says that a card was not written because that would have
// overwritten what somebody else wrote. The file is as it was.
type ConflictError struct {
	ID, Path string
	Why      string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("card %s not written: %s (%s)", e.ID, e.Why, e.Path)
}

// Options are the settings of a store; the zero value is the default.
type Options struct {
	// Embedder makes the vectors; nil is the built-in one, which needs no
	// network and is trained on the cards themselves.
	Embedder retrieval.Embedder
	// VectorWait is how long a search waits for vectors that Embedder is to make
	// before it answers without them; they are made meanwhile. 0 is
	// [retrieval.DefaultVectorWait].
	VectorWait time.Duration
	// Now is the clock for creation and expiry dates; nil is time.Now.
	Now func() time.Time
	// NoHistory is for a folder that lies in another repository: it gets no
	// git repository of its own.
	NoHistory bool
	// Progress, where it is given, is told how many of the cards' files have
	// been read while the folder is opened or read anew, and of how many; calls
	// come one at a time, the last with read equal to of.
	Progress func(read, of int)
	// Person is whom reviews and edits by hand are by in the history; zero
	// is who git says sits here.
	Person history.Person
	// Watch has changes that others make to the folder seen before the next
	// answer, until the store is closed. Where the system can watch no more
	// folders, the files' marks are looked at before each answer instead.
	Watch bool

	// Redact gives a text with markers in the place of its secrets, and the
	// markers; nil: texts are stored as they are. Every card passes through it on
	// its way in, and into an export.
	Redact func(text string) (redacted string, markers []string)
	// Notice, where it is given, is told in one line what was changed in what
	// came in, or left out of it.
	Notice func(line string)

	usage, reviews string // where they are kept; "" is beside the cards

	fs    disk.FS          // for tests
	clock func() time.Time // for tests: what the age of files is measured by
}

// Entry is a stored card in a listing.
type Entry struct {
	ID      string     `json:"id"`
	Topic   string     `json:"topic"`
	State   card.State `json:"state"`
	Task    string     `json:"source_task"`
	Created time.Time  `json:"created"`
	Tainted bool       `json:"tainted"`
	Expired bool       `json:"expired"`
	Path    string     `json:"path"`
	// Fingerprint names the file's bytes; see [Store.Edit].
	Fingerprint string       `json:"fingerprint"`
	Contradicts []string     `json:"contradicts,omitempty"` // and those that contradict it
	Supersedes  []string     `json:"supersedes,omitempty"`
	Generalizes []string     `json:"generalizes,omitempty"`
	VerifiedAt  *time.Time   `json:"verified_at,omitempty"`
	Counts      usage.Counts `json:"counts"`
}

// BrokenCard is a file in the store that cannot be used. It is left as it is.
type BrokenCard struct {
	Path string
	Err  error // a *[card.Error] where the text is to blame
}

// Store is an open knowledge base. Its methods may be called concurrently.
// Changes made to the folder by others are seen after [Store.Rebuild], or at
// once with [Options.Watch].
type Store struct {
	dir   string
	opts  Options
	watch *watch // nil: nobody asked for it

	mu     sync.RWMutex
	closed bool
	contents
	repo    *history.Repo         // nil before the first change
	histErr error                 // why the history lacks something
	clean   string                // the commit that stored.committed speaks of; "" for none
	looked  bool                  // this process has looked for changes by hand before
	index   *retrieval.Index      // nil: to be built before the next search
	vecErr  atomic.Pointer[error] // why there are no vectors
}

// stored is a card with its file. It is never changed, only replaced.
type stored struct {
	card.Head                       // as the card counts here
	whole     card.Packed           // as the file says it
	dir       unique.Handle[string] // of the file, which many have
	name      string                // of the file; "" is the one that fileName gives it
	lesson    lesson
	sum       [sha256.Size]byte // of the file
	text      [sha256.Size]byte // of what the card is found by
	marks     disk.Marks        // of the file that was read; none of what was written here
	claimed   bool              // the file says reviewed, and that does not count here
	outside   bool              // the card arrived from elsewhere, and was not reviewed here
	committed bool              // the commit Store.clean holds the file as it is here
}

// newStored is a card parsed from src.
func newStored(c *card.Card, path string, src []byte) *stored {
	st := &stored{Head: c.Head(), whole: c.Pack(), lesson: lessonOf(c), sum: sha256.Sum256(src), text: sha256.Sum256([]byte(findableText(c)))}
	st.stand(path)
	return st
}

// stand notes where the card's file is.
func (st *stored) stand(path string) {
	dir, name := filepath.Split(path)
	st.dir, st.name = unique.Make(dir), ""
	if name != fileName(st.Topic, st.ID) {
		st.name = strings.Clone(name)
	}
}

// path is where the card's file is.
func (st *stored) path() string { return st.dir.Value() + st.base() }

// base is the file's name in its folder.
func (st *stored) base() string {
	if st.name == "" {
		return fileName(st.Topic, st.ID)
	}
	return st.name
}

// lesson names what a card says: the bytes of its [card.Card.Hash].
type lesson [sha256.Size]byte

func lessonOf(c *card.Card) (l lesson) {
	if n, err := hex.Decode(l[:], []byte(c.Hash())); err != nil || n != len(l) {
		panic("knowledge base: a card's hash is no SHA-256 in hex")
	}
	return l
}

func (l lesson) String() string { return hex.EncodeToString(l[:]) }

// mark is enough of a lesson to look cards up by: who finds one compares the
// whole.
func (l lesson) mark() lessonMark { return lessonMark(l[:8]) }

type lessonMark [8]byte

// card returns the card as it counts here, for the caller to change.
func (st *stored) card() *card.Card {
	c := unpack(st.whole)
	c.State = st.State
	if st.claimed {
		c.VerifiedAt = nil
	}
	if st.outside {
		c.Provenance.Tainted = true
	}
	return c
}

// unpack returns a card that was packed here.
func unpack(p card.Packed) *card.Card {
	c, ok := p.Card()
	if !ok {
		panic("knowledge base: a card in memory cannot be read")
	}
	return c
}

// fingerprint is how people and other programs name the file's bytes.
func (st *stored) fingerprint() string { return fingerprint(st.sum) }

// fingerprint names a file's bytes by their sum.
func fingerprint(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:8]) }

func (s *Store) lockPath() string { return filepath.Join(s.dir, indexDir, "lock") }

// isMonth reports whether a folder's name is a year and a month.
func isMonth(name string) bool {
	if len(name) != len("2006-01") || name[4] != '-' {
		return false
	}
	for i, c := range []byte(name) {
		if i != 4 && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// months lists the folders that hold cards, sorted.
func (s *Store) months() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && isMonth(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// isCardFile reports whether a path within the folder, with slashes, is a
// card's. It is asked of every file at every change.
func isCardFile(path string) bool {
	month, name, ok := strings.Cut(path, "/")
	return ok && isMonth(month) && !strings.Contains(name, "/") && !strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".md")
}

// cardFiles lists the paths of all cards within the folder, with slashes,
// sorted.
func (s *Store) cardFiles() ([]string, error) {
	months, err := s.months()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range months {
		entries, err := os.ReadDir(filepath.Join(s.dir, m))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if name := m + "/" + e.Name(); isCardFile(name) {
				out = append(out, name)
			}
		}
	}
	return out, nil
}

// remember makes st the card of its id in memory.
func (s *Store) remember(st *stored) {
	id := st.ID
	path := st.path()
	if was := s.cards[id]; was != nil && was.sum == st.sum && was.path() == path && was.State == st.State {
		return
	}
	s.cards[id] = st
	s.lessons[st.lesson.mark()] = id
	s.noteAgainst(&st.Head)
	s.broken = slices.DeleteFunc(s.broken, func(b BrokenCard) bool { return b.Path == path })
	if s.index != nil {
		enter(s.index, st)
	}
}

// Get returns a copy of the card with that id, to read or to edit and [Store.Put].
func (s *Store) Get(id string) (*card.Card, error) {
	if err := s.freshen(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	st := s.cards[id]
	if st == nil {
		return nil, fmt.Errorf("card %q: %w", id, ErrNotFound)
	}
	return st.card(), nil
}

// Opposing returns the ids of the cards that contradict the card id, whichever of
// the two says so.
func (s *Store) Opposing(id string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.opposing(id)
}

// List returns all cards, newest first, then by id.
func (s *Store) List() []Entry {
	_ = s.freshen() // what cannot be looked at is as it was; a search says why
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := s.opts.Now()
	out := make([]Entry, 0, len(s.cards))
	for id, st := range s.cards {
		links := st.Links()
		out = append(out, Entry{ID: id, Topic: st.Topic, State: st.State, Task: st.SourceTask, Created: st.Created,
			Tainted: st.Tainted, Expired: st.Expired(now), Path: st.path(), Fingerprint: st.fingerprint(),
			Contradicts: s.opposing(id), Supersedes: slices.Clone(links.Supersedes), Generalizes: slices.Clone(links.Generalizes), VerifiedAt: st.VerifiedAt, Counts: s.usage.Of(id)})
	}
	slices.SortFunc(out, func(a, b Entry) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Broken lists the files that could not be read as cards, by path.
func (s *Store) Broken() []BrokenCard {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.broken)
}

// Rebuild reads all files anew, throws the derived index away and builds it
// from them. Searches wait meanwhile.
func (s *Store) Rebuild(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.forgetCards(); err != nil {
		return fmt.Errorf("rebuild knowledge base %s: %w", s.dir, err)
	}
	if err := s.load(ctx, nil); err != nil {
		return fmt.Errorf("rebuild knowledge base %s: %w", s.dir, err)
	}
	if err := s.buildIndex(ctx, true); err != nil {
		return fmt.Errorf("rebuild knowledge base %s: %w", s.dir, err)
	}
	return nil
}

// Close releases the store. What was Put stays; closing twice is harmless.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.dropIndex()
	s.contents = contents{}
	s.mu.Unlock()
	if s.watch == nil {
		return nil
	}
	return s.watch.close()
}

package knowledgebase

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/retrieval"
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
	// Now is the clock for creation and expiry dates; nil is time.Now.
	Now func() time.Time

	fs fileSystem // for tests
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
}

// BrokenCard is a file in the store that cannot be used. It is left as it is.
type BrokenCard struct {
	Path string
	Err  error // a *[card.Error] where the text is to blame
}

// Store is an open knowledge base. Its methods may be called concurrently.
// Changes made to the folder by others are seen after [Store.Rebuild].
type Store struct {
	dir  string
	opts Options

	mu     sync.RWMutex
	closed bool
	cards  map[string]*stored
	broken []BrokenCard
	index  *retrieval.Index // nil: to be built before the next search
	vecErr error            // why there are no vectors
}

// stored is a card with its file. The card is never changed, only replaced.
type stored struct {
	card *card.Card
	path string
	sum  [sha256.Size]byte // of the file
}

// Open opens the knowledge base in dir, creating it 0700 where it is absent,
// and reads its cards. Files that cannot be read as cards are listed by
// [Store.Broken]; they never make Open fail and are never changed.
func Open(dir string, o *Options) (*Store, error) {
	s := &Store{dir: dir}
	if o != nil {
		s.opts = *o
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.fs == nil {
		s.opts.fs = osFileSystem{}
	}
	if dir == "" {
		return nil, errors.New("open knowledge base: no directory given")
	}
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("open knowledge base: %w", err)
	}
	if err := s.load(context.Background()); err != nil {
		return nil, fmt.Errorf("open knowledge base %s: %w", dir, err)
	}
	return s, nil
}

// prepare makes the folders and sweeps what dead writers left.
func (s *Store) prepare() error {
	for _, d := range []string{s.dir, filepath.Join(s.dir, indexDir)} {
		if err := makeDir(s.opts.fs, d); err != nil {
			return err
		}
	}
	release, err := lockFile(s.lockPath(), false)
	if err != nil {
		return err
	}
	if release == nil {
		return nil // somebody is writing; the next one sweeps
	}
	defer release()
	ignore := filepath.Join(s.dir, indexDir, ".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, fs.ErrNotExist) {
		if err := writeAtomic(s.opts.fs, ignore, []byte("*\n")); err != nil {
			return err
		}
	}
	months, err := s.months()
	if err != nil {
		return err
	}
	for _, d := range append(months, indexDir, replacedDir) {
		if err := sweepTemp(filepath.Join(s.dir, d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (s *Store) lockPath() string { return filepath.Join(s.dir, indexDir, "lock") }

var monthPattern = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}$`)

// months lists the folders that hold cards, sorted.
func (s *Store) months() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && monthPattern.MatchString(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// load reads all files into memory; the caller holds no lock that readers
// could be waiting for, or the write lock.
func (s *Store) load(ctx context.Context) error {
	months, err := s.months()
	if err != nil {
		return err
	}
	cards := make(map[string]*stored)
	var broken []BrokenCard
	for _, m := range months {
		entries, err := os.ReadDir(filepath.Join(s.dir, m))
		if err != nil {
			broken = append(broken, BrokenCard{filepath.Join(s.dir, m), err})
			continue
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !strings.HasSuffix(e.Name(), ".md") || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			path := filepath.Join(s.dir, m, e.Name())
			st, err := readCard(path)
			if err == nil && cards[st.card.ID] != nil {
				err = card.Errorf(0, "id %s is also used by %s; give one of them another", st.card.ID, cards[st.card.ID].path)
			}
			if err != nil {
				broken = append(broken, BrokenCard{path, err})
				continue
			}
			if len(cards) == MaxCards {
				return fmt.Errorf("more than %d cards; move some to another folder", MaxCards)
			}
			cards[st.card.ID] = st
		}
	}
	s.cards, s.broken, s.index = cards, broken, nil
	return nil
}

// readCard reads one regular file of bounded size.
func readCard(path string) (*stored, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
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
	return &stored{card: c, path: path, sum: sha256.Sum256(src)}, nil
}

// Put stores the card and gives its path. It is durable when Put returns.
//
// created tells whether there was no card of that id before. Where there is
// one:
//   - the same lesson ([card.Card.Hash]) from a card that was not read from this
//     store changes nothing, whatever state the stored one has reached;
//   - a card read from this store ([Store.Get]) and edited replaces the file,
//     unless the file was changed since: *[ConflictError];
//   - anything else replaces a draft, whose former text is kept in .replaced,
//     and is a *[ConflictError] for a card a person has reviewed or retired.
//
// A card that cannot be stored is a *[card.Error]. Zero Created and State are
// filled in the stored copy; c itself is not changed.
func (s *Store) Put(ctx context.Context, c *card.Card) (path string, created bool, err error) {
	if err := ctx.Err(); err != nil {
		return "", false, fmt.Errorf("put card: %w", err)
	}
	c = c.Clone()
	if c.State == "" {
		c.State = card.Draft
	}
	if c.Created.IsZero() {
		c.Created = s.opts.Now().UTC()
	}
	if err := c.Validate(); err != nil {
		return "", false, fmt.Errorf("put card %s: %w", c.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", false, ErrClosed
	}
	release, err := lockFile(s.lockPath(), true)
	if err != nil {
		return "", false, fmt.Errorf("put card %s: %w", c.ID, err)
	}
	defer release()
	path, created, err = s.put(c)
	if err != nil {
		return "", false, fmt.Errorf("put card %s: %w", c.ID, err)
	}
	return path, created, nil
}

// put writes under both locks.
func (s *Store) put(c *card.Card) (string, bool, error) {
	old, err := s.current(c.ID)
	if err != nil {
		return "", false, err
	}
	data := c.Markdown()
	path := filepath.Join(s.dir, c.Created.UTC().Format("2006-01"), fileName(c))
	if old != nil {
		path = old.path
		write, err := s.mayReplace(old, c, data)
		if err != nil || !write {
			s.remember(old)
			return path, false, err
		}
	} else if _, err := os.Lstat(path); err == nil {
		return "", false, &ConflictError{c.ID, path, "a file of that name is there that is not this card; move it away"}
	}
	if err := makeDir(s.opts.fs, filepath.Dir(path)); err != nil {
		return "", false, err
	}
	if err := writeAtomic(s.opts.fs, path, data); err != nil {
		return "", false, err
	}
	kept, err := card.Parse(data)
	if err != nil {
		return "", false, err // Validate has read it back before
	}
	s.remember(&stored{card: kept, path: path, sum: sha256.Sum256(data)})
	return path, old == nil, nil
}

// current reads the card of that id from disk, where another process or a
// person may have changed it since; nil when there is none.
func (s *Store) current(id string) (*stored, error) {
	if st := s.cards[id]; st != nil {
		now, err := readCard(st.path)
		switch {
		case err == nil && now.card.ID == id:
			return now, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, &ConflictError{id, st.path, fmt.Sprintf("the file there cannot be read as a card: %v", err)}
		}
	}
	months, err := s.months()
	if err != nil {
		return nil, err
	}
	for _, m := range months {
		entries, err := os.ReadDir(filepath.Join(s.dir, m))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), id+".md") || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			path := filepath.Join(s.dir, m, e.Name())
			st, err := readCard(path)
			if err == nil && st.card.ID == id {
				return st, nil
			}
			if err != nil && strings.HasSuffix(e.Name(), "-"+id+".md") {
				return nil, &ConflictError{id, path, fmt.Sprintf("the file there cannot be read as a card: %v", err)}
			}
		}
	}
	return nil, nil
}

// mayReplace decides what Put's contract says about a card that is there.
func (s *Store) mayReplace(old *stored, c *card.Card, data []byte) (bool, error) {
	src := old.card.Source()
	fromHere := c.ParsedID() == c.ID && s.cards[c.ID] != nil
	switch {
	case bytes.Equal(src, data):
		return false, nil
	case fromHere && bytes.Equal(c.Source(), src):
		return true, nil
	case fromHere && bytes.Equal(c.Source(), s.cards[c.ID].card.Source()):
		return false, &ConflictError{c.ID, old.path, "the file was changed meanwhile; read it again"}
	case old.card.Hash() == c.Hash():
		return false, nil
	case old.card.State != card.Draft:
		return false, &ConflictError{c.ID, old.path, fmt.Sprintf("the card there is %s and says something else; edit that file", old.card.State)}
	}
	dir := filepath.Join(s.dir, replacedDir)
	if err := makeDir(s.opts.fs, dir); err != nil {
		return false, err
	}
	keep := filepath.Join(dir, fmt.Sprintf("%s.%x.md", c.ID, old.sum[:6]))
	return true, writeAtomic(s.opts.fs, keep, src)
}

// remember makes st the card of its id in memory.
func (s *Store) remember(st *stored) {
	id := st.card.ID
	if was := s.cards[id]; was != nil && was.sum == st.sum && was.path == st.path {
		return
	}
	s.cards[id] = st
	s.broken = slices.DeleteFunc(s.broken, func(b BrokenCard) bool { return b.Path == st.path })
	if s.index != nil {
		enter(s.index, st.card)
	}
}

// fileName gives <slug>-<id>.md.
func fileName(c *card.Card) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(c.Topic) {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			dash = b.Len() > 0
			continue
		}
		if b.Len()+utf8.RuneLen(r) >= slugBytes {
			break
		}
		if dash {
			b.WriteByte('-')
			dash = false
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		b.WriteString("card")
	}
	return b.String() + "-" + c.ID + ".md"
}

// Get gives a copy of the card with that id, to read or to edit and [Store.Put].
func (s *Store) Get(id string) (*card.Card, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	st := s.cards[id]
	if st == nil {
		return nil, fmt.Errorf("card %q: %w", id, ErrNotFound)
	}
	return st.card.Clone(), nil
}

// List gives all cards, newest first, then by id.
func (s *Store) List() []Entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := s.opts.Now()
	out := make([]Entry, 0, len(s.cards))
	for id, st := range s.cards {
		c := st.card
		out = append(out, Entry{ID: id, Topic: c.Topic, State: c.State, Task: c.SourceTask, Created: c.Created,
			Tainted: c.Provenance.Tainted, Expired: c.Expired(now), Path: st.path})
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
	if err := s.load(ctx); err != nil {
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
	defer s.mu.Unlock()
	s.closed = true
	s.cards, s.index = nil, nil
	return nil
}

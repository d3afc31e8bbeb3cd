package knowledgebase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/durable"
)

// MaxCards is how many cards one folder may hold; opening more is an error.
const MaxCards = 1_000_000

const (
	indexDir    = ".index"
	replacedDir = ".replaced"
)

var (
	// ErrNotFound is returned for an id no readable card has.
	ErrNotFound = errors.New("no such card")
	// ErrClosed is returned by every method of a closed store.
	ErrClosed = errors.New("knowledge base is closed")
)

// ConflictError says that a card was not written because that would have
// overwritten another change. The file is as it was.
type ConflictError struct {
	ID, Path string
	Why      string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("card %s not written: %s (%s)", e.ID, e.Why, e.Path)
}

// Options are the settings of a store; the zero value is the default.
type Options struct {
	// Embedder makes vectors of the cards; nil: they are found by their words alone.
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
	// Progress, if not nil, receives how many of a change's files have been written. Calls come
	// one at a time, the last with done equal to of.
	Progress func(done, of int)
	// Person is the author of reviews and edits by hand in the history; if zero, git's configured
	// user.
	Person history.Person
	// Watch makes each answer include the changes that others made to the folder: sizes and times of
	// the files are compared, which takes a few milliseconds for 2,000 cards.
	Watch bool

	// Redact returns a text with markers in place of its secrets, and the markers.
	// If nil, texts are stored as they are. Every card passes through it when it is
	// stored and when it is exported.
	Redact func(text string) (redacted string, markers []string)
	// Notice, if not nil, receives one line about each change to, or omission from,
	// cards that arrive.
	Notice func(line string)

	// SharedReviews is a folder with files that are named after lessons ([card.Card.Hash]): these count as reviewed.
	SharedReviews string
	// Reviewed, if not nil, is called with each lesson that a user reviewed.
	Reviewed func(lesson string) error

	usage, reviews string // where they are kept; "" is beside the cards
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
	dir    string
	opts   Options
	fs     durable.FS
	folder *folder.Folder
	watch  watch

	mu     sync.RWMutex
	closed bool
	contents
	repo    *history.Repo // nil before the first change
	histErr error         // why the history lacks something
	index   *retrieval.Index
	filled  bool                  // the index holds the cards
	vecErr  atomic.Pointer[error] // why there are no vectors
}

func (s *Store) lockPath() string { return filepath.Join(s.dir, indexDir, "lock") }

// setCard makes st the card of its id in memory.
func (s *Store) setCard(st *folder.File) {
	id := st.ID
	path := st.Path
	if was := s.cards[id]; was != nil && was.Sum == st.Sum && was.Path == path && was.State == st.State {
		return
	}
	s.cards[id] = st
	s.lessons[st.Lesson] = id
	s.addContradictions(st.Card)
	s.broken = slices.DeleteFunc(s.broken, func(b BrokenCard) bool { return b.Path == path })
	s.filled = false
}

func (s *Store) byPath() map[string]*folder.File {
	out := make(map[string]*folder.File, len(s.cards))
	for _, st := range s.cards {
		out[st.Path] = st
	}
	return out
}

// Get returns a copy of the card with that id, to read or to edit and [Store.Put].
func (s *Store) Get(id string) (*card.Card, error) {
	st, err := s.stored(id)
	if err != nil {
		return nil, err
	}
	return st.Card.Clone(), nil
}

// stored returns a card's file, which is not changed any more: another one takes its place.
func (s *Store) stored(id string) (*folder.File, error) {
	if err := s.refreshWatched(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	if st := s.cards[id]; st != nil {
		return st, nil
	}
	return nil, fmt.Errorf("card %q: %w", id, ErrNotFound)
}

// Cards returns the cards of entries, in their order; one that was removed meanwhile is left out. A watched folder is
// looked at once for all of them.
func (s *Store) Cards(entries []Entry) []*card.Card {
	_ = s.refreshWatched() // as in List
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*card.Card
	for _, e := range entries {
		if st := s.cards[e.ID]; st != nil {
			out = append(out, st.Card.Clone())
		}
	}
	return out
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
	_ = s.refreshWatched() // what cannot be looked at is as it was; a search says why
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := s.opts.Now()
	out := make([]Entry, 0, len(s.cards))
	for id, st := range s.cards {
		out = append(out, Entry{ID: id, Topic: st.Topic, State: st.State, Task: st.SourceTask, Created: st.Created,
			Tainted: st.Provenance.Tainted, Expired: st.Expired(now), Path: st.Path, Fingerprint: st.Fingerprint(),
			Contradicts: s.opposing(id), Supersedes: slices.Clone(st.Supersedes),
			Generalizes: slices.Clone(st.Generalizes), VerifiedAt: st.VerifiedAt, Counts: s.usage.Counts(id)})
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

// ReviewsDamage says in one line what the list of reviews lacks, so that reviewed cards may count as drafts; "" if
// nothing is known to be missing.
func (s *Store) ReviewsDamage() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.closed:
	case s.reviews.Bad > 0:
		return fmt.Sprintf("%s is damaged: unreadable lines: %d; cards whose review stood there count as drafts: "+
			"approve them again, then remove these lines", s.opts.reviews, s.reviews.Bad)
	case s.unrecorded > 0 && !s.opts.NoHistory: // a project ships its cards without this machine's reviews
		return fmt.Sprintf("%s does not record the reviews of cards that say they were reviewed (%d): "+
			"they count as drafts until you approve them", s.opts.reviews, s.unrecorded)
	}
	return ""
}

// Rebuild reads all files again, throws the derived index away and builds it
// from them. Searches wait meanwhile.
func (s *Store) Rebuild(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.load(ctx, nil); err != nil {
		return fmt.Errorf("rebuild knowledge base %s: %w", s.dir, err)
	}
	if err := s.rebuildIndex(ctx); err != nil {
		return fmt.Errorf("rebuild knowledge base %s: %w", s.dir, err)
	}
	return nil
}

// Close releases the store. What was Put stays; closing twice is harmless.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.contents, s.index = contents{}, nil
	return nil
}

package knowledgebase

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/opstream/durable"
)

// Actor says who wants a change; the history names them as its author.
type Actor int

// The actors. Only people review.
const (
	Program Actor = iota
	Person
)

// Change is a change of some cards that is made as a whole: one commit, and
// after a crash either all of it or nothing.
type Change struct {
	// Message is the commit's, as a user would write it; "" is made from
	// what the change does.
	Message string
	By      Actor
	Cards   []*card.Card
	// Over names, by id, the fingerprint of the file that a card is meant to
	// replace. Such a card replaces that file whatever state it has reached,
	// and is a *[ConflictError] where the file is another by now.
	Over map[string]string
	// TakesBack means that a user restores earlier texts of the cards. That is no
	// review and sets no date.
	TakesBack bool
}

// Stored is what became of one card of a change.
type Stored struct {
	ID   string `json:"id"` // of the card that holds the lesson now
	Path string `json:"path"`
	// Created: there was no card of that id before.
	Created bool `json:"created"`
	// Rediscovered: another card says this; that one is named, and nothing was written.
	Rediscovered bool `json:"rediscovered,omitempty"`
}

// Put stores one card on the program's behalf and returns its path: [Store.Apply]
// of that card alone.
func (s *Store) Put(ctx context.Context, c *card.Card) (path string, created bool, err error) {
	out, err := s.Apply(ctx, Change{Cards: []*card.Card{c}})
	if err != nil {
		return "", false, err
	}
	return out[0].Path, out[0].Created, nil
}

// Apply stores the change's cards, all or none, and returns what became of each
// in order. It is durable when Apply returns. Files that people changed since
// the last commit become a commit of their own before.
//
// Where there is no card of an id, the card is created, unless another card
// says the same: then that one counts as rediscovered. Where
// there is one:
//   - the same lesson ([card.Card.Hash]) from a card that was not read from this
//     store changes nothing, whatever state the stored one has reached;
//   - a card read from this store ([Store.Get]) and edited replaces the file,
//     unless the file was changed since: *[ConflictError];
//   - anything else replaces a draft, whose former text the history keeps (.replaced
//     in a store without one), and is a *[ConflictError] for a card a user
//     has reviewed or retired.
//
// A card that cannot be stored is a *[card.Error]. Zero Created and State are
// filled in the stored copies; the given cards are not changed. If the change could not
// be committed to the history, [Store.HistoryError] returns why.
func (s *Store) Apply(ctx context.Context, ch Change) ([]Stored, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("put card: %w", err)
	}
	cards, err := s.complete(ch.Cards)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	lock, err := durable.Lock(s.lockPath())
	if err != nil {
		return nil, fmt.Errorf("put cards: %w", err)
	}
	defer lock.Close()
	if err := s.prepareChange(); err != nil {
		return nil, fmt.Errorf("put cards: %w", err)
	}
	if err := s.redactChange(&ch, cards); err != nil {
		return nil, err
	}
	out := make([]Stored, len(cards))
	var todo []planned
	for i, c := range cards {
		p, err := s.plan(c, &ch)
		if errors.As(err, new(*ConflictError)) {
			return nil, err // it names the card
		}
		if err != nil {
			return nil, fmt.Errorf("put card %s: %w", c.ID, err)
		}
		out[i] = p.Stored
		if p.data != nil {
			todo = append(todo, p)
		}
	}
	if err := s.applyChange(ch, todo); err != nil {
		return nil, fmt.Errorf("put card %s: %w", cards[0].ID, err)
	}
	return out, s.countRediscovered(cards, out)
}

// complete fills and checks copies of the cards.
func (s *Store) complete(cards []*card.Card) ([]*card.Card, error) {
	out := make([]*card.Card, len(cards))
	for i, c := range cards {
		c = c.Clone()
		c.State = cmp.Or(c.State, card.Draft)
		if c.Created.IsZero() {
			c.Created = s.opts.Now().UTC()
		}
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("put card %s: %w", c.ID, err)
		}
		out[i] = c
	}
	return out, nil
}

// planned is what is to be written for one card; nil data: nothing.
type planned struct {
	Stored
	card *card.Card
	old  *folder.File // what is there
	data []byte
}

// plan decides what becomes of a card. Both locks are held.
func (s *Store) plan(c *card.Card, ch *Change) (planned, error) {
	p := planned{Stored: Stored{ID: c.ID}, card: c}
	old, err := s.current(c.ID)
	if err != nil {
		return p, err
	}
	var was *card.Card
	if old != nil {
		was = old.Card.Clone()
	}
	if err := verify(c, was, ch, s.opts.Now()); err != nil {
		return p, err
	}
	if was != nil && was.State != c.State && bytes.Equal(was.Source(), c.Markdown()) {
		// A claim of the project's made good: the same bytes count as more now.
		p.Path, p.old, p.data = old.Path, old, c.Markdown()
		return p, nil
	}
	if mark, given := ch.Over[c.ID]; given {
		if old == nil || old.Fingerprint() != mark {
			return p, &ConflictError{c.ID, s.pathOf(c, old), "the card has changed since; look at it again"}
		}
		if p.Path, p.old = old.Path, old; !bytes.Equal(was.Source(), c.Markdown()) {
			p.data = c.Markdown()
		}
		return p, nil
	}
	if old == nil {
		twin, err := s.duplicateOf(c)
		if err != nil {
			return p, err
		}
		if twin != nil {
			p.ID, p.Path, p.Rediscovered = twin.ID, twin.Path, true
			return p, nil
		}
		p.Path, p.Created = s.pathOf(c, nil), true
		if _, err := os.Lstat(p.Path); err == nil {
			return p, &ConflictError{c.ID, p.Path, "a file of that name is there that is not this card; move it away"}
		}
		p.data = c.Markdown()
		return p, nil
	}
	p.Path, p.old = old.Path, old
	data := c.Markdown()
	write, err := s.mayReplace(old, was, c, data)
	if err != nil || !write {
		// The file was read just now: others may have changed it since memory was filled.
		s.setCard(old)
		return p, err
	}
	p.data = data
	return p, nil
}

// pathOf returns the path of a card's file, which need not exist yet.
func (s *Store) pathOf(c *card.Card, old *folder.File) string {
	if old != nil {
		return old.Path
	}
	return s.PathOf(c)
}

// PathOf returns the path that the file of a new card gets.
func (s *Store) PathOf(c *card.Card) string {
	return filepath.Join(s.dir, c.Created.UTC().Format("2006-01"), folder.FileName(c.Topic, c.ID))
}

// Now is the time by the store's clock.
func (s *Store) Now() time.Time { return s.opts.Now() }

// duplicateOf returns another card that says exactly what c says; nil when there is none. A card that other
// tasks may not see yet is no twin of one they may.
func (s *Store) duplicateOf(c *card.Card) (*folder.File, error) {
	says := folder.LessonOf(c)
	id := s.lessons[says]
	if id == "" {
		return nil, nil
	}
	st, err := s.current(id)
	if err != nil || st == nil || st.Lesson != says || ownTaskOnly(st.Card) && !ownTaskOnly(c) {
		return nil, err
	}
	return st, nil
}

// ownTaskOnly reports whether the card is a draft that is shown to its own task only: one with outside
// text, or one drawn from other cards, which say it themselves meanwhile.
func ownTaskOnly(c *card.Card) bool {
	return c.State == card.Draft && (c.Provenance.Tainted || len(c.Generalizes) > 0)
}

// current reads the card of that id from disk, where another process or a
// user may have changed it since; nil when there is none.
func (s *Store) current(id string) (*folder.File, error) {
	if st := s.cards[id]; st != nil {
		now, err := s.readCard(st.Path)
		switch {
		case err == nil && now.ID == id:
			return now, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, &ConflictError{id, st.Path, fmt.Sprintf("the file there cannot be read as a card: %v", err)}
		}
	}
	files, err := s.folder.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if !strings.HasSuffix(name, id+".md") {
			continue
		}
		path := filepath.Join(s.dir, filepath.FromSlash(name))
		st, err := s.readCard(path)
		if err == nil && st.ID == id {
			return st, nil
		}
		// Only a name in the form that this program gives says that the unreadable file is this card's.
		if err != nil && strings.HasSuffix(name, "-"+id+".md") {
			return nil, &ConflictError{id, path, fmt.Sprintf("the file there cannot be read as a card: %v", err)}
		}
	}
	return nil, nil
}

// mayReplace reports whether a card's file is replaced; see Apply for the rules.
func (s *Store) mayReplace(old *folder.File, was, c *card.Card, data []byte) (bool, error) {
	src := was.Source()
	fromHere := c.ParsedID() == c.ID && s.cards[c.ID] != nil
	switch {
	case bytes.Equal(src, data):
		return false, nil
	case fromHere && bytes.Equal(c.Source(), src):
		return true, nil
	// The caller edited the text that memory holds, and the file has another one by now.
	case fromHere && sha256.Sum256(c.Source()) == s.cards[c.ID].Sum:
		return false, &ConflictError{c.ID, old.Path, "the file was changed meanwhile; read it again"}
	case old.Lesson == folder.LessonOf(c):
		return false, nil
	case old.State != card.Draft:
		why := fmt.Sprintf("the card there is %s and says something else; edit that file", old.State)
		return false, &ConflictError{c.ID, old.Path, why}
	}
	return true, nil
}

// saveReplaced stores the former text of a draft in a store without a history.
func (s *Store) saveReplaced(old *folder.File) error {
	if !s.opts.NoHistory {
		return nil
	}
	dir := filepath.Join(s.dir, replacedDir)
	if err := durable.MakeDir(s.fs, dir); err != nil {
		return err
	}
	keep := filepath.Join(dir, fmt.Sprintf("%s.%x.md", old.ID, old.Sum[:6]))
	return durable.WriteFile(s.fs, keep, old.Card.Clone().Source())
}

// enter makes what was written the cards in memory.
func (s *Store) enter(todo []planned) error {
	for _, p := range todo {
		kept, err := card.Parse(p.data)
		if err != nil {
			return err // Validate has read it back before
		}
		s.setCard(s.reviews.Judge(folder.NewFile(kept, p.Path, p.data)))
	}
	return nil
}

package review

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

// maxUndo is how many decisions a [Desk] can take back; older ones stand.
const maxUndo = 200

// ErrNothingToUndo is returned by [Desk.Undo] when nothing was decided at the
// desk that is not taken back already.
var ErrNothingToUndo = errors.New("nothing was decided here that could be taken back")

// LaterError says that the act to be taken back is not the last one any more.
type LaterError struct{ Last Done }

func (e *LaterError) Error() string {
	return fmt.Sprintf("nothing was taken back: the last that was decided here is now %q", e.Last.What)
}

// Desk records the decisions of one user about cards, so that they can be undone. The records end
// with the Desk; the cards' history remains. Its methods may be called concurrently.
type Desk struct {
	store *knowledgebase.Store

	mu   sync.Mutex // held while cards are changed, so that no other act is between before and after
	seq  int
	done []decided // oldest first
	said map[int]Done
}

// Done is what a user did at the desk.
type Done struct {
	Seq  int    // of this act at this desk, from 1
	What string // in words
	ID   string // of the card it was about
}

// decided is an act with what takes it back.
type decided struct {
	Done
	before map[string][]byte // the changed cards' former texts, by id
	after  map[string]string // the fingerprints of what they became
}

func NewDesk(store *knowledgebase.Store) *Desk {
	return &Desk{store: store, said: make(map[int]Done)}
}

// Decide is [Decide] of a decision that can be taken back. Only one card is restored at a time; dec.Seen must say what
// was read of each card.
func (d *Desk) Decide(ctx context.Context, dec Decision) (Done, error) {
	unread := func(id string) bool { return dec.Seen[id] == "" }
	several := len(dec.IDs) > 1 && dec.Act == Restore
	if len(dec.IDs) == 0 || several || slices.ContainsFunc(dec.IDs, unread) {
		return Done{}, fmt.Errorf("%s: want cards and the fingerprint of what was read of each", dec.Act)
	}
	touched := slices.Clone(dec.IDs)
	switch dec.Act {
	case Supersede:
		touched = append(touched, dec.By)
	case Restore:
		touched = append(touched, d.store.SupersededBy(dec.IDs[0])...)
	}
	verb := pastTense(dec.Act)
	if n := len(dec.IDs); n > 1 {
		verb = fmt.Sprintf("%s %d cards, the first", verb, n)
	}
	return d.act(touched, verb, func() error {
		_, err := Decide(ctx, d.store, dec)
		return err
	})
}

// Edit is [knowledgebase.Store.Edit], so that it can be taken back.
func (d *Desk) Edit(ctx context.Context, id, fingerprint string, text []byte) (Done, error) {
	return d.act([]string{id}, "Changed", func() error {
		_, err := d.store.Edit(ctx, id, fingerprint, text)
		return err
	})
}

func pastTense(a Act) string {
	switch a {
	case Approve:
		return "Approved"
	case Reject:
		return "Rejected"
	case Retire:
		return "Retired"
	case Restore:
		return "Restored"
	}
	return "Superseded"
}

// act changes cards and records their former texts.
func (d *Desk) act(touched []string, verb string, change func() error) (Done, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was, marks, err := d.texts(touched)
	if err != nil {
		return Done{}, err
	}
	if err := change(); err != nil {
		return Done{}, err
	}
	_, now, err := d.texts(touched)
	if err != nil {
		return Done{}, err
	}
	dec := decided{before: make(map[string][]byte), after: make(map[string]string)}
	for id, mark := range now {
		if mark != marks[id] {
			dec.before[id], dec.after[id] = was[id], mark
		}
	}
	if len(dec.before) == 0 {
		return d.record(touched[0], d.word("Nothing to change", touched[0])), nil
	}
	dec.Done = d.record(touched[0], d.word(verb, touched[0]))
	if d.done = append(d.done, dec); len(d.done) > maxUndo {
		d.done = slices.Delete(d.done, 0, 1)
	}
	return dec.Done, nil
}

// texts returns what cards say, and their fingerprints.
func (d *Desk) texts(ids []string) (texts map[string][]byte, marks map[string]string, err error) {
	texts, marks = make(map[string][]byte), make(map[string]string)
	for _, id := range ids {
		if texts[id], marks[id], err = d.store.Text(id); err != nil {
			return nil, nil, err
		}
	}
	return texts, marks, nil
}

// word says what was done with which card.
func (d *Desk) word(verb, id string) string {
	if c, err := d.store.Get(id); err == nil {
		return verb + ": " + c.Title()
	}
	return verb + ": " + id
}

// record stores the words for an act, so that a page can show them after a redirect.
func (d *Desk) record(id, what string) Done {
	d.seq++
	done := Done{Seq: d.seq, ID: id, What: what}
	d.said[d.seq] = done
	delete(d.said, d.seq-maxUndo)
	return done
}

// Act returns an act by its number. The last maxUndo are stored.
func (d *Desk) Act(seq int) (Done, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	done, ok := d.said[seq]
	return done, ok
}

// Last returns the act that Undo would take back, if there is one.
func (d *Desk) Last() (Done, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.done) == 0 {
		return Done{}, false
	}
	return d.done[len(d.done)-1].Done, true
}

// Undo restores the cards of the last act that was not yet undone, in one commit. seq
// is that act's number as returned by [Desk.Last]. If another act came after it,
// nothing is undone and the error is a *[LaterError]. If one of its cards was changed
// since, the error is a *[knowledgebase.ConflictError]; that act then cannot be undone,
// and the next Undo applies to the one before it.
func (d *Desk) Undo(ctx context.Context, seq int) (Done, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.done) == 0 {
		return Done{}, ErrNothingToUndo
	}
	last := d.done[len(d.done)-1]
	if last.Seq != seq {
		return Done{}, &LaterError{last.Done}
	}
	ch := knowledgebase.Change{By: knowledgebase.Person, Message: "Taken back: " + last.What}
	ch.Over, ch.TakesBack = last.after, true
	for _, id := range slices.Sorted(maps.Keys(last.before)) {
		c, err := card.Parse(last.before[id])
		if err != nil {
			return Done{}, fmt.Errorf("undo: %w", err)
		}
		ch.Cards = append(ch.Cards, c)
	}
	_, err := d.store.Apply(ctx, ch)
	if err == nil || errors.As(err, new(*knowledgebase.ConflictError)) {
		d.done = d.done[:len(d.done)-1]
	}
	if err != nil {
		return Done{}, fmt.Errorf("undo: %w", err)
	}
	return d.record(last.ID, "Taken back: "+last.What), nil
}

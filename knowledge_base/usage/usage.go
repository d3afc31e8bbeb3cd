// Package usage counts what became of cards: how often they were shown and
// opened, how the tasks that saw them ended, how often their lesson was
// learned again. The counts are the fold of an append-only log beside the
// cards, so that reading a card changes no card.
//
// The log is JSON, one event a line:
//
//	{"v":1,"at":"2026-01-31T10:00:00Z","card":"4yq2m5pkd3c7xw6a","event":"shown","task":"t","op":12}
//
// Events may be appended again: a showing counts once for its task and
// operation, and of a task's outcomes the last one of a user counts.
// Earlier versions also recorded outcomes that a check decided, which are not counted.
package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"anamnesis/opstream/durable"
)

// MaxLogBytes is how long the log may become.
const MaxLogBytes = 64 << 20

// ErrFull is returned when the log has reached [MaxLogBytes].
var ErrFull = errors.New("the log of card usage is full")

// What is the kind of an event.
type What string

const (
	Shown        What = "shown"        // a card entered a task's context
	Used         What = "used"         // the agent asked for it
	Outcome      What = "outcome"      // the task that saw it ended well or badly, by a user's verdict
	Rediscovered What = "rediscovered" // its lesson was learned again

	Met          What = "met"          // a task met its error, independently of it
	Verified     What = "verified"     // a task that was not shown it met its error, and its change led to success
	Followed     What = "followed"     // a task that was shown it did what it says
	Held         What = "held"         // and that came out as it says
	Contradicted What = "contradicted" // or did not
	Approved     What = "approved"     // a user approved it
)

// Ending is how a task ended.
type Ending string

const (
	Good    Ending = "good"
	Bad     Ending = "bad"
	Unknown Ending = "unknown"
)

// Event is one line.
type Event struct {
	V    int       `json:"v"`
	At   time.Time `json:"at"`
	Card string    `json:"card"`
	What What      `json:"event"`
	Task string    `json:"task,omitempty"`
	Op   uint64    `json:"op,omitempty"`
	// Text is, of a verification, the card's text that held, as card.Card.Hash has it.
	Text string `json:"text,omitempty"`
	// Of an outcome: how the task ended, and whether a user said so.
	Ending Ending `json:"ending,omitempty"`
	Person bool   `json:"person,omitempty"`
	// Trial is "withheld" for an outcome of a task from which an experiment of earlier versions kept the card.
	Trial What `json:"trial,omitempty"`
}

// Counts are a card's figures.
type Counts struct {
	Shown        int `json:"shown"`
	Used         int `json:"used"`
	Helpful      int `json:"helpful"` // tasks that were shown it and ended well, by a user's verdict
	Harmful      int `json:"harmful"` // and badly
	Rediscovered int `json:"rediscovered"`

	// Of these each task counts once.
	Met          int `json:"met"`
	Verified     int `json:"verified"`
	Followed     int `json:"followed"`
	Held         int `json:"held"`
	Contradicted int `json:"contradicted"`
	// Refuted: it was contradicted, and has neither held nor been met nor approved since.
	Refuted bool `json:"refuted,omitempty"`

	VerifiedText string `json:"-"` // the text that held last; a card with another text is not verified
}

// maxContradictions is how many tasks' contradictions end a draft.
const maxContradictions = 3

// Refutes reports whether enough tasks contradicted a card, the last of them since it held last.
func (c *Counts) Refutes() bool { return c.Refuted && c.Contradicted >= maxContradictions }

// Add adds another card's figures.
func (c *Counts) Add(d Counts) {
	c.Shown, c.Used, c.Rediscovered = c.Shown+d.Shown, c.Used+d.Used, c.Rediscovered+d.Rediscovered
	c.Helpful, c.Harmful, c.Verified = c.Helpful+d.Helpful, c.Harmful+d.Harmful, c.Verified+d.Verified
	c.Met, c.Followed = c.Met+d.Met, c.Followed+d.Followed
	c.Held, c.Contradicted = c.Held+d.Held, c.Contradicted+d.Contradicted
}

// Tally folds events into counts. The zero value is empty. It is not safe for
// concurrent use.
type Tally struct {
	counts map[string]*Counts
	seen   map[Event]bool // showings, by what makes them one
	ends   map[[2]string]Event
}

func (t *Tally) Add(e Event) {
	if t.counts == nil {
		t.counts, t.seen, t.ends = make(map[string]*Counts), make(map[Event]bool), make(map[[2]string]Event)
	}
	c := t.counts[e.Card]
	if c == nil {
		c = new(Counts)
		t.counts[e.Card] = c
	}
	switch e.What {
	case Shown, Used, Rediscovered, Met, Verified, Followed, Held, Contradicted:
		key := e.key()
		if e.counted() && t.seen[key] {
			return
		}
		t.seen[key] = true
		*c.counter(e.What)++
		switch e.What {
		case Contradicted:
			c.Refuted = true
		case Verified:
			c.VerifiedText, c.Refuted = e.Text, false
		case Held, Met:
			c.Refuted = false
		}
	case Approved:
		c.Refuted = false
	case Outcome:
		key := [2]string{e.Card, e.Task}
		was := t.ends[key]
		if was.Person && !e.Person {
			return
		}
		t.ends[key] = e
		// A user may change a verdict, and only the last one of a task counts.
		c.end(was, -1)
		c.end(e, 1)
	}
}

// key is what makes two events of one kind the same: their operation, or, of what a
// task counts once for, the task.
func (e Event) key() Event {
	k := Event{Card: e.Card, What: e.What, Task: e.Task}
	if !e.once() {
		k.Op = e.Op
	}
	return k
}

func (e Event) once() bool {
	return e.What != Shown && e.What != Used && e.What != Rediscovered && e.What != Approved
}

// counted reports whether a second, equal event is not counted.
func (e Event) counted() bool { return e.Op > 0 || e.once() }

// Knows reports whether adding the event would change nothing.
func (t *Tally) Knows(e Event) bool {
	if e.What == Outcome {
		was := t.ends[[2]string{e.Card, e.Task}]
		return was.Person && !e.Person || was.Ending == e.Ending && was.Person == e.Person
	}
	return e.counted() && t.seen[e.key()]
}

func (c *Counts) counter(w What) *int {
	switch w {
	case Shown:
		return &c.Shown
	case Used:
		return &c.Used
	case Met:
		return &c.Met
	case Verified:
		return &c.Verified
	case Followed:
		return &c.Followed
	case Held:
		return &c.Held
	case Contradicted:
		return &c.Contradicted
	}
	return &c.Rediscovered
}

// end counts an outcome if a user stated it. Earlier versions also recorded how the last check ended.
func (c *Counts) end(e Event, n int) {
	switch {
	case !e.Person || e.Trial == "withheld":
	case e.Ending == Good:
		c.Helpful += n
	case e.Ending == Bad:
		c.Harmful += n
	}
}

// Counts returns a card's counts.
func (t *Tally) Counts(card string) Counts {
	if c := t.counts[card]; c != nil {
		return *c
	}
	return Counts{}
}

// maxLean is the most that counters alone may add to a card's score or subtract from it.
const maxLean = 0.10

// Lean returns what the counts add to a card's score, -0.10 to +0.10: the more tasks in which the
// card held and the fewer that contradicted it, the higher. It is near 0 while few tasks are
// counted. Being shown or found again adds nothing, so that a card cannot rise by being high, and
// neither does the end of a task.
func (c Counts) Lean() float64 {
	const doubt = 4 // counts as so many tasks in which the card neither held nor was contradicted
	good := c.Held + c.Verified
	return maxLean * float64(good-c.Contradicted) / float64(good+c.Contradicted+doubt)
}

// Read folds the log at path; no log is an empty one. Lines that cannot be
// read (a torn end, another program's) are counted and left out.
func Read(path string) (*Tally, error) {
	t := new(Tally)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read card usage: %w", err)
	}
	for line := range bytes.Lines(data[:min(len(data), MaxLogBytes)]) {
		var e Event
		switch line = bytes.TrimSpace(line); {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil || e.V != 1 || e.Card == "": // it counts nothing
		default:
			t.Add(e)
		}
	}
	return t, nil
}

// Append adds events to the log at path, durably and in one write. Several processes may
// append at a time.
func Append(path string, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	b := bytes.NewBufferString("\n") // ends a line that a crash tore
	for _, e := range events {
		e.V = 1
		if err := json.NewEncoder(b).Encode(e); err != nil {
			return fmt.Errorf("count card usage: event of card %.80q: %w", e.Card, err)
		}
	}
	if info, err := os.Stat(path); err == nil && info.Size()+int64(b.Len()) > MaxLogBytes {
		return fmt.Errorf("%w: %s has %d bytes; move it away to start over", ErrFull, path, info.Size())
	}
	if err := durable.Append(durable.OS{}, path, b.Bytes()); err != nil {
		return fmt.Errorf("count card usage: %w", err)
	}
	return nil
}

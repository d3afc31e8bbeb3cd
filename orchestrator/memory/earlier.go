package memory

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/repair"
	"anamnesis/anamnesis/wording"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/orchestrator/taskdir"
)

// repairsFile is the file in a task's folder that holds its repairs: one JSON object a line, an
// [anamnesis.Repaired]. Of lines with the same card the last counts.
const repairsFile = "repairs.jsonl"

// Limits of the repairs of earlier tasks, the latest of which count: how many are read, and of how many those
// before are asked, which tells how often answers are right. A trial takes about 2 ms.
const (
	maxEarlier = 500
	maxTrials  = 250
)

// Earlier holds the repairs that tasks of this machine made. Not all of them are cards: a repair that may
// fit only its own task becomes one when another task meets the failure or repairs it the same way.
type Earlier struct {
	repairs []anamnesis.Repaired // the oldest first
	tainted []*card.Card         // of repairs that no task is shown before a user reviewed them
	lessons *wording.Lessons
}

// ReadEarlier reads the repairs of all tasks but one. Files and lines that cannot be read are left out.
func ReadEarlier(h taskdir.Home, but string) *Earlier {
	e := &Earlier{lessons: new(wording.Lessons)}
	tasks, _ := h.Tasks()
	for _, id := range tasks {
		if id == but {
			continue
		}
		data, _ := os.ReadFile(filepath.Join(h.Task(id), repairsFile))
		at := map[string]int{}
		for line := range bytes.Lines(data) {
			var r anamnesis.Repaired
			if json.Unmarshal(line, &r) != nil || r.Card == nil {
				continue
			}
			if i, again := at[r.Card.ID]; again {
				e.repairs[i] = r
				continue
			}
			at[r.Card.ID], e.repairs = len(e.repairs), append(e.repairs, r)
		}
	}
	slices.SortStableFunc(e.repairs, func(a, b anamnesis.Repaired) int { return a.Card.Created.Compare(b.Card.Created) })
	e.repairs = slices.DeleteFunc(e.repairs, func(r anamnesis.Repaired) bool {
		if r.Card.Provenance.Tainted {
			e.tainted = append(e.tainted, r.Card)
		}
		return r.Card.Provenance.Tainted
	})
	e.repairs = e.repairs[max(0, len(e.repairs)-maxEarlier):]
	for _, r := range e.repairs {
		e.lessons.Add(r.Card)
	}
	return e
}

// known is a repair that a task may be shown, and the card that says so.
type known struct {
	pair repair.Pair
	card *card.Card // may not be written yet
	own  bool       // pair is what a task made; else it is read from the card
	at   time.Time
}

// known joins the repairs with the cards that a task may be shown, the oldest first. What a user reviewed or
// edited takes the place of the repairs that it is about. A repair is left out if its card is gone or deleted.
func (e *Earlier) known(cards, gone []*card.Card) (out []known) {
	taught, not := wording.LessonsOf(cards), wording.LessonsOf(gone)
	stored, left := byID(cards), byID(gone)
	of := map[string][]known{} // by card
	for _, r := range e.repairs {
		c := stored[r.Card.ID]
		if c == nil && left[r.Card.ID] != nil {
			continue
		}
		if c == nil {
			c, _ = taught.Known(r.Card)
		}
		if other, _ := not.Known(r.Card); c == r.Card && (other != r.Card || r.Pair.General()) {
			continue // the card was rejected, retired or deleted
		}
		k := known{r.Pair, c, true, r.Card.Created}
		k.pair.Card = c.ID
		of[c.ID] = append(of[c.ID], k)
		if c == r.Card {
			out = append(out, k)
		} else if r.Card.Hash() == c.Hash() && c.State == card.Draft {
			stored[c.ID] = nil // its text is that of a task
		}
	}
	for _, c := range cards {
		if stored[c.ID] == nil {
			out = append(out, of[c.ID]...)
		} else if p, ok := wording.PairOf(c); ok {
			out = append(out, known{p, c, false, c.Created})
		}
	}
	slices.SortStableFunc(out, func(a, b known) int { return a.at.Compare(b.at) })
	return out
}

func byID(cards []*card.Card) map[string]*card.Card {
	out := make(map[string]*card.Card, len(cards))
	for _, c := range cards {
		out[c.ID] = c
	}
	return out
}

// Waiting returns the cards of the repairs that no card of a store teaches, the newest first. Those that
// were drawn from texts from outside the world are among them, and are marked as tainted.
func (e *Earlier) Waiting(store *knowledgebase.Store) []*card.Card {
	cards, out := recalled.Layers[*knowledgebase.Store]{store}.InUse(), []*card.Card{}
	for _, k := range e.known(cards, gone(store)) {
		out = append(out, k.card)
	}
	taught := wording.LessonsOf(slices.Concat(cards, gone(store), out))
	for _, c := range e.tainted {
		if other, _ := taught.Known(c); other == c {
			out = append(out, c)
			taught.Add(c)
		}
	}
	out = slices.DeleteFunc(out, func(c *card.Card) bool {
		_, err := store.Get(c.ID)
		return err == nil
	})
	slices.SortStableFunc(out, func(a, b *card.Card) int { return b.Created.Compare(a.Created) })
	return out
}

// Worth returns the cards to write of a task's repair: its own if it is general or taught holds a card of the
// same lesson, and that of an earlier task before it if that task made the same repair.
func (e *Earlier) Worth(r *anamnesis.Repaired, taught *wording.Lessons) []*card.Card {
	if known, _ := taught.Known(r.Card); known != r.Card || r.Pair.General() {
		return []*card.Card{r.Card}
	}
	if other, _ := e.lessons.Known(r.Card); other != r.Card {
		return []*card.Card{other, r.Card}
	}
	return nil
}

// Record appends a task's repairs to its file.
func (e *Earlier) Record(h taskdir.Home, task string, found []anamnesis.Repaired) (err error) {
	var lines bytes.Buffer
	for _, r := range found {
		if err := json.NewEncoder(&lines).Encode(r); err != nil {
			return err
		}
		if !r.Card.Provenance.Tainted {
			e.lessons.Add(r.Card)
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(h.Task(task), repairsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(lines.Bytes())
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

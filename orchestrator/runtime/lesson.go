package runtime

import (
	"encoding/json"
	"strings"
	"sync"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/repair"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// What lessons may take of the context, in tokens.
const (
	lessonTokens   = 200 // on a failed result
	foreseenTokens = 300 // at the task's start
)

// recallFailure is the reason of a card that was shown on a failed result.
const recallFailure = "failure"

// lessons remembers the repairs that the cards of other tasks tell. The zero value is
// ready for use. It is read once a turn; its methods may be called by several
// goroutines.
type lessons struct {
	mu     sync.Mutex
	memory *repair.Memory
	turn   uint64
	cards  map[string]*card.Card
	shown  map[string]bool // ids of the cards that were shown on a result
}

// of returns the memory, anew in another turn.
func (l *lessons) of(t *Task) *repair.Memory {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.memory != nil && l.turn == t.state.Turn.LastWords {
		return l.memory
	}
	l.memory, l.turn, l.cards = repair.NewMemory(), t.state.Turn.LastWords, make(map[string]*card.Card)
	for _, c := range t.layers.Visible(knowledgebase.Query{Task: t.ID}) {
		if p, ok := anamnesis.PairOf(c); ok && c.SourceTask != t.ID {
			l.memory.Add(p)
			l.cards[c.ID] = c
		}
	}
	return l.memory
}

// ref names a card that an answer rests on.
func (l *lessons) ref(c repair.Card) op.CardRef {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.cards[c.From.Card]
	return op.CardRef{ID: from.ID, Topic: from.Topic, State: string(from.State), Score: c.Confidence}
}

// once reports whether a card was not shown on a result before.
func (l *lessons) once(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown[id] {
		return false
	}
	if l.shown == nil {
		l.shown = make(map[string]bool)
	}
	l.shown[id] = true
	return true
}

// lessonOn returns what a failed command's result ends with where other tasks
// repaired such a failure, and the record that it was shown. Each card is named once
// a process.
func (t *Task) lessonOn(c op.Call, res *tool.Result) (string, *op.CardsRecalled) {
	if res.Exit == nil || *res.Exit == 0 || t.layers == nil || t.opts.NoLessons {
		return "", nil
	}
	var command struct{ Command string }
	_ = json.Unmarshal([]byte(c.Args), &command) // another tool's call has none
	out := failure.Output{Command: command.Command, Text: res.Stdout, Stderr: res.Stderr, Exit: *res.Exit, HasExit: true, Error: res.IsError}
	f, failed := failure.Read(out)
	if lesson, _ := failure.Lesson(out); !failed || !lesson || f.Signature == "" {
		return "", nil
	}
	found, ok := t.lessons.of(t).Recall(t.state.Opened.Repo, repair.Call{Output: out}, lessonTokens, t.counter.Count)
	if !ok || !t.lessons.once(found.From.Card) {
		return "", nil
	}
	return found.String(), &op.CardsRecalled{Query: f.Line, Why: recallFailure, Cards: []op.CardRef{t.lessons.ref(found)}}
}

// foresee adds to a recall at the task's start what most tasks of the project had to
// repair.
func (t *Task) foresee(rec *op.CardsRecalled) {
	if t.layers == nil || t.opts.NoLessons {
		return
	}
	var texts []string
	for _, c := range t.lessons.of(t).Foresee(t.state.Opened.Repo, foreseenTokens, t.counter.Count) {
		if strings.Contains(rec.Text, c.From.Card) {
			continue
		}
		texts = append(texts, c.String())
		rec.Cards = append(rec.Cards, t.lessons.ref(c))
	}
	if len(texts) > 0 {
		rec.Text = strings.TrimSpace(rec.Text + "\n\nFailures that earlier tasks of this project met and repaired; quoted data, check before relying on it:\n" + strings.Join(texts, "\n"))
	}
}

package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"anamnesis/anamnesis/experience"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/repair"
	"anamnesis/anamnesis/wording"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/tool"
)

// The size of lessons in the context, in tokens.
const (
	lessonTokens   = 200 // on a failed result
	foreseenTokens = 300 // at the task's start
)

// The reasons of recalls on a failed result, and before a call.
const (
	recallFailure = "failure"
	recallWarning = "warning"
)

// lessons caches the repairs of other tasks and of their cards. The zero value is ready for
// use. It is read once in a turn, and built anew if the repairs are others. Its methods may be called concurrently.
type lessons struct {
	mu     sync.Mutex
	memory *repair.Memory
	key    []byte // of the repairs in it
	turn   uint64
	cards  map[string]*card.Card   // of the repairs; some are not written yet
	began  map[string][]*card.Card // cards about the task's project, by the command with which their path began
	own    map[string]bool         // ids of the cards about the task's project
	about  map[string][]string     // ids of other tasks' cards, by the normal forms of the errors they quote
	shown  map[string]bool         // ids of the cards that were shown on a result
}

// of returns the cached repairs and reads them again in another turn.
func (l *lessons) of(m *Memory) *repair.Memory {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.memory != nil && l.turn == m.State().Turn.LastWords {
		return l.memory
	}
	l.turn, l.cards = m.State().Turn.LastWords, make(map[string]*card.Card)
	l.about, l.own, l.began = make(map[string][]string), make(map[string]bool), make(map[string][]*card.Card)
	var cards []*card.Card
	for _, c := range m.layers.Visible(knowledgebase.Query{}) {
		if m.claims(c) {
			continue
		}
		if repo := m.State().Opened.Repo; repo != "" && c.Scope.Repo == repo {
			l.own[c.ID] = true
			if command := wording.BeganWith(c); command != "" {
				l.began[command] = append(l.began[command], c)
			}
		}
		for _, issue := range c.Issue {
			l.about[errorOf(issue)] = append(l.about[errorOf(issue)], c.ID)
		}
		cards = append(cards, c)
	}
	all := ReadEarlier(m.Home, m.ID).known(cards, gone(m.cards))
	key := sha256.New()
	for _, k := range all {
		l.cards[k.card.ID] = k.card
		fmt.Fprintln(key, k.card.ID, k.card.Hash(), k.card.State, k.pair.Run, k.pair.Failed, m.further(&k))
	}
	if sum := key.Sum(nil); l.memory == nil || !bytes.Equal(sum, l.key) {
		l.memory, l.key = repair.NewMemory(), sum
		for i, k := range all {
			if i < len(all)-maxTrials {
				l.memory.Learn(k.pair)
			} else {
				l.memory.AddTimes(k.pair, m.further(&k))
			}
		}
	}
	return l.memory
}

// further is how many further tasks, whose repairs are not known, made one.
func (m *Memory) further(k *known) int {
	if k.own {
		return 0
	}
	return m.cards.Counts(k.card.ID).Rediscovered
}

// gone returns the cards of a store that are not in use any more.
func gone(store *knowledgebase.Store) (out []*card.Card) {
	for _, e := range store.List() {
		if e.State == card.Retired || e.State == card.Superseded {
			if c, err := store.Get(e.ID); err == nil {
				out = append(out, c)
			}
		}
	}
	return out
}

// write stores the card of another task's repair, if it is not stored, since this task meets the
// failure, too.
func (m *Memory) write(c *card.Card) error {
	if m.card(c.ID) != nil {
		return nil
	}
	_, err := m.cards.Apply(context.Background(), knowledgebase.Change{Cards: []*card.Card{c}})
	return err
}

// project returns the ids of other tasks' cards about the task's project.
func (l *lessons) project(m *Memory) map[string]bool {
	l.of(m)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own
}

// card returns the card that an answer is based on.
func (l *lessons) card(c repair.Card) *card.Card {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cards[c.From.Card]
}

// pathsFrom returns the cards about the task's project whose path began with a command, the
// oldest first.
func (l *lessons) pathsFrom(command string) []*card.Card {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began[command]
}

// cardsAbout returns the ids of the cards about an error.
func (l *lessons) cardsAbout(sign string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.about[sign]
}

// ref returns a reference to the card that an answer is based on.
func (l *lessons) ref(m *Memory, c repair.Card) op.CardRef {
	from := l.card(c)
	return m.cardRef(recalled.Hit{Card: from, Score: c.Confidence, Trust: m.trust(from)})
}

// markShown marks a card as shown on a result, and reports whether it was not before.
func (l *lessons) markShown(id string) bool {
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

// LessonOn returns the text to append to a failed command's result if other tasks repaired such
// a failure, and the record of it. A process names each card once, and none that a call was held for.
func (m *Memory) LessonOn(c op.Call, res *tool.Result) (string, *op.CardsRecalled) {
	if res.Exit == nil || m.o.NoLessons {
		return "", nil
	}
	var command struct{ Command string }
	_ = json.Unmarshal([]byte(c.Args), &command) // another tool's call has none
	out := failure.Output{Command: command.Command, Text: res.Stdout, Stderr: res.Stderr, Exit: *res.Exit, HasExit: true, Error: res.IsError}
	f, failed := failure.Read(out)
	if lesson, _ := failure.Lesson(out); !failed || !lesson || f.Signature == "" {
		return "", nil
	}
	rec := &op.CardsRecalled{Query: f.Line, Why: recallFailure, Cards: []op.CardRef{}}
	found, ok := m.lessons.of(m).Recall(m.State().Opened.Repo, repair.Call{Output: out}, lessonTokens, m.Counter.Count)
	for _, id := range m.lessons.cardsAbout(f.Signature) {
		if m.independent(id) {
			rec.Met = append(rec.Met, id)
		}
	}
	text := ""
	if ok && !m.held(found.From.Card) && m.mayShow(&found, f.Signature, rec) && m.lessons.markShown(found.From.Card) {
		text, rec.Cards = found.String(), []op.CardRef{m.lessons.ref(m, found)}
	}
	if text == "" && len(rec.Met)+len(rec.Withheld) == 0 {
		return "", nil
	}
	return text, rec
}

// Warning returns the text with which a call is held, and the record of it, if a trusted card
// states that the call's program is missing in this project, or that the call began a path that
// failed in the same state of the files. If the record is nil, the call runs. Each card holds
// one call in a task.
func (m *Memory) Warning(c op.Call, world string) (string, *op.CardsRecalled) {
	command := notice.BashCommand(c.Name, c.Args)
	if command == "" || m.o.NoLessons || m.o.NoWarnings {
		return "", nil
	}
	found, ok := m.lessons.of(m).Warn(m.State().Opened.Repo, command, lessonTokens, m.Counter.Count, func(p *repair.Pair) bool {
		from := m.card(p.Card)
		return from != nil && m.trust(from).Rung != recalled.Hypothesis
	})
	if !ok || m.held(found.From.Card) {
		return m.warnPath(c.Name, command, world)
	}
	rec := &op.CardsRecalled{Query: command, Why: recallWarning, Cards: []op.CardRef{}}
	if !m.mayShow(&found, "", rec) {
		return "", nil
	}
	rec.Cards = append(rec.Cards, m.lessons.ref(m, found))
	return notice.Warned(c.Name, found.String()), rec
}

// held reports whether a call was held for a card. If the stream is damaged it reports that one was: the
// damage is reported when it matters.
func (m *Memory) held(id string) bool {
	e, err := m.experienced()
	return err != nil || slices.ContainsFunc(e.Shown, func(s experience.Showing) bool { return s.Held && s.Card == id })
}

// warnPath is Warning for a call that began a path of an earlier task.
func (m *Memory) warnPath(name, command, world string) (string, *op.CardsRecalled) {
	for _, from := range slices.Backward(m.lessons.pathsFrom(wording.CommandLine(command))) {
		h := recalled.Hit{Card: from, Trust: m.trust(from)}
		if e := m.evidence(from); world == "" || e.began != world || m.held(from.ID) || h.Trust.Rung == recalled.Hypothesis || h.Trust.Withheld || m.experiment(from) {
			continue
		}
		rec := &op.CardsRecalled{Query: command, Why: recallWarning, Cards: []op.CardRef{m.cardRef(h)}}
		return notice.WarnedPath(name, strings.Join(recalled.Quote(h), "\n")), rec
	}
	return "", nil
}

// mayShow reports whether a repair may be shown, and adds to it how far it may be trusted. A
// task that has met the error itself (sign) counts as the second witness. Cards that the
// experiment withholds are recorded in rec.
func (m *Memory) mayShow(r *repair.Card, sign string, rec *op.CardsRecalled) bool {
	h := recalled.Hit{Card: m.lessons.card(*r)}
	h.Trust = m.trust(h.Card)
	if slices.ContainsFunc(h.Card.Issue, func(issue string) bool { return errorOf(issue) == sign }) {
		h.Trust = m.trustWhenMet(h.Card)
	}
	switch {
	case h.Trust.Withheld:
		return false
	case m.write(h.Card) != nil: // a card that cannot be looked up is not shown
		return false
	case m.experiment(h.Card):
		rec.Withheld = append(rec.Withheld, m.cardRef(h))
		return false
	}
	r.From.Words = h.Words()
	return true
}

// errorOf returns the normal form of the error that an issue quotes, or of the issue if it
// quotes none.
func errorOf(issue string) string {
	if _, line, ok := strings.Cut(issue, " failed: "); ok {
		issue = line
	}
	return failure.Normal(issue)
}

// addExpected adds to a recall at the task's start the repairs that most tasks of the project
// needed.
func (m *Memory) addExpected(rec *op.CardsRecalled) {
	if m.o.NoLessons {
		return
	}
	var texts []string
	for _, c := range m.lessons.of(m).Foresee(m.State().Opened.Repo, foreseenTokens, m.Counter.Count) {
		if strings.Contains(rec.Text, c.From.Card) || !m.mayShow(&c, "", rec) {
			continue
		}
		texts = append(texts, c.String())
		rec.Cards = append(rec.Cards, m.lessons.ref(m, c))
	}
	if len(texts) > 0 {
		rec.Text = strings.TrimSpace(rec.Text + "\n\nFailures that earlier tasks of this project met and repaired; quoted data, check before relying on it:\n" + strings.Join(texts, "\n"))
	}
}

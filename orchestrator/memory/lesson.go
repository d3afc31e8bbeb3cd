package memory

import (
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
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// What lessons may take of the context, in tokens.
const (
	lessonTokens   = 200 // on a failed result
	foreseenTokens = 300 // at the task's start
)

// The reasons of a card that was shown on a failed result, and before a call.
const (
	recallFailure = "failure"
	recallWarning = "warning"
)

// lessons remembers the repairs that the cards of other tasks tell. The zero value is
// ready for use. It is read once a turn; its methods may be called by several
// goroutines.
type lessons struct {
	mu     sync.Mutex
	memory *repair.Memory
	turn   uint64
	cards  map[string]*card.Card
	began  map[string][]*card.Card // cards about the task's project, by the command with which their path began
	own    map[string]bool         // ids of the cards about the task's project
	about  map[string][]string     // ids of other tasks' cards, by the normal forms of the errors they quote
	shown  map[string]bool         // ids of the cards that were shown on a result
}

// of returns the memory, anew in another turn.
func (l *lessons) of(m *Memory) *repair.Memory {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.memory != nil && l.turn == m.State().Turn.LastWords {
		return l.memory
	}
	l.memory, l.turn, l.cards = repair.NewMemory(), m.State().Turn.LastWords, make(map[string]*card.Card)
	l.about, l.own, l.began = make(map[string][]string), make(map[string]bool), make(map[string][]*card.Card)
	for _, c := range m.layers.Visible(knowledgebase.Query{Task: m.ID}) {
		if c.SourceTask == m.ID {
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
		if p, ok := wording.PairOf(c); ok {
			l.memory.Add(p)
			l.cards[c.ID] = c
		}
	}
	return l.memory
}

// project lists the cards of other tasks about the task's project.
func (l *lessons) project(m *Memory) map[string]bool {
	l.of(m)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own
}

// card is the card that an answer rests on.
func (l *lessons) card(c repair.Card) *card.Card {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cards[c.From.Card]
}

// pathsFrom lists the cards about the task's project whose path began with a command,
// the oldest first.
func (l *lessons) pathsFrom(command string) []*card.Card {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began[command]
}

// met lists the cards about an error.
func (l *lessons) met(sign string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.about[sign]
}

// ref names the card that an answer rests on.
func (l *lessons) ref(m *Memory, c repair.Card) op.CardRef {
	from := l.card(c)
	return m.cardRef(recalled.Hit{Card: from, Score: c.Confidence, Trust: m.trust(from)})
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

// LessonOn returns what a failed command's result ends with where other tasks
// repaired such a failure, and the record that it was shown. Each card is named once
// a process.
func (m *Memory) LessonOn(c op.Call, res *tool.Result) (string, *op.CardsRecalled) {
	if res.Exit == nil || *res.Exit == 0 || m.o.NoLessons {
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
	for _, id := range m.lessons.met(f.Signature) {
		if m.independent(id) {
			rec.Met = append(rec.Met, id)
		}
	}
	text := ""
	if ok && m.believe(&found, f.Signature, rec) && m.lessons.once(found.From.Card) {
		text, rec.Cards = found.String(), []op.CardRef{m.lessons.ref(m, found)}
	}
	if text == "" && len(rec.Met)+len(rec.Withheld) == 0 {
		return "", nil
	}
	return text, rec
}

// Warning returns what a call is held with where a card that may be believed says that
// its program is missing in this project, or that it began a path that failed in the
// same state of the files, and the record of it; nil: the call runs. Each card holds one
// call a task.
func (m *Memory) Warning(c op.Call, world string) (string, *op.CardsRecalled) {
	command := notice.BashCommand(c.Name, c.Args)
	if command == "" || m.o.NoLessons || m.o.NoWarnings {
		return "", nil
	}
	e, err := m.experienced()
	if err != nil {
		return "", nil // the same stream ends the task where it is needed
	}
	found, ok := m.lessons.of(m).Warn(m.State().Opened.Repo, command, lessonTokens, m.Counter.Count, func(p *repair.Pair) bool {
		from := m.card(p.Card)
		return from != nil && m.trust(from).Rung != recalled.Hypothesis
	})
	held := func(id string) bool {
		return slices.ContainsFunc(e.Shown, func(s experience.Showing) bool { return s.Held && s.Card == id })
	}
	if !ok || held(found.From.Card) {
		return m.warnPath(c.Name, command, world, held)
	}
	rec := &op.CardsRecalled{Query: command, Why: recallWarning, Cards: []op.CardRef{}}
	if !m.believe(&found, "", rec) {
		return "", nil
	}
	rec.Cards = append(rec.Cards, m.lessons.ref(m, found))
	return notice.Warned(c.Name, found.String()), rec
}

// warnPath is warning for a call that began a path of an earlier task.
func (m *Memory) warnPath(name, command, world string, held func(id string) bool) (string, *op.CardsRecalled) {
	for _, from := range slices.Backward(m.lessons.pathsFrom(wording.CommandLine(command))) {
		h := recalled.Hit{Card: from, Trust: m.trust(from)}
		if e := m.evidence(from); world == "" || e.began != world || held(from.ID) || h.Trust.Rung == recalled.Hypothesis || h.Trust.Withheld || m.experiment(from) {
			continue
		}
		rec := &op.CardsRecalled{Query: command, Why: recallWarning, Cards: []op.CardRef{m.cardRef(h)}}
		return notice.WarnedPath(name, strings.Join(recalled.Quote(h), "\n")), rec
	}
	return "", nil
}

// believe reports whether a repair may be shown, and has it say how far it may be
// believed. Where the task has met its error itself, sign, it is the second that did.
// What the experiment withholds is noted in rec.
func (m *Memory) believe(r *repair.Card, sign string, rec *op.CardsRecalled) bool {
	h := recalled.Hit{Card: m.lessons.card(*r)}
	h.Trust = m.trust(h.Card)
	if slices.ContainsFunc(h.Card.Issue, func(issue string) bool { return errorOf(issue) == sign }) {
		h.Trust = m.trustWhenMet(h.Card)
	}
	switch {
	case h.Trust.Withheld:
		return false
	case m.experiment(h.Card):
		rec.Withheld = append(rec.Withheld, m.cardRef(h))
		return false
	}
	r.From.Words = h.Words()
	return true
}

// errorOf is the normal form of the error that an issue quotes, or of the issue where
// it quotes none.
func errorOf(issue string) string {
	if _, line, ok := strings.Cut(issue, " failed: "); ok {
		issue = line
	}
	return failure.Normal(issue)
}

// foresee adds to a recall at the task's start what most tasks of the project had to
// repair.
func (m *Memory) foresee(rec *op.CardsRecalled) {
	if m.o.NoLessons {
		return
	}
	var texts []string
	for _, c := range m.lessons.of(m).Foresee(m.State().Opened.Repo, foreseenTokens, m.Counter.Count) {
		if strings.Contains(rec.Text, c.From.Card) || !m.believe(&c, "", rec) {
			continue
		}
		texts = append(texts, c.String())
		rec.Cards = append(rec.Cards, m.lessons.ref(m, c))
	}
	if len(texts) > 0 {
		rec.Text = strings.TrimSpace(rec.Text + "\n\nFailures that earlier tasks of this project met and repaired; quoted data, check before relying on it:\n" + strings.Join(texts, "\n"))
	}
}

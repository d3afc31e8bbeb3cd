package runtime

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/repair"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/tool"
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

// byLesson held a call that a card says fails in this project.
const byLesson = "guard:lesson"

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
func (l *lessons) of(t *Task) *repair.Memory {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.memory != nil && l.turn == t.state.Turn.LastWords {
		return l.memory
	}
	l.memory, l.turn, l.cards = repair.NewMemory(), t.state.Turn.LastWords, make(map[string]*card.Card)
	l.about, l.own, l.began = make(map[string][]string), make(map[string]bool), make(map[string][]*card.Card)
	for _, c := range t.layers.Visible(knowledgebase.Query{Task: t.ID}) {
		if c.SourceTask == t.ID {
			continue
		}
		if repo := t.state.Opened.Repo; repo != "" && c.Scope.Repo == repo {
			l.own[c.ID] = true
			if command := anamnesis.BeganWith(c); command != "" {
				l.began[command] = append(l.began[command], c)
			}
		}
		for _, issue := range c.Issue {
			l.about[errorOf(issue)] = append(l.about[errorOf(issue)], c.ID)
		}
		if p, ok := anamnesis.PairOf(c); ok {
			l.memory.Add(p)
			l.cards[c.ID] = c
		}
	}
	return l.memory
}

// project lists the cards of other tasks about the task's project.
func (l *lessons) project(t *Task) map[string]bool {
	l.of(t)
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
func (l *lessons) ref(t *Task, c repair.Card) op.CardRef {
	from := l.card(c)
	return t.cardRef(knowledgebase.Hit{Card: from, Score: c.Confidence, Trust: t.trust(from)})
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
	rec := &op.CardsRecalled{Query: f.Line, Why: recallFailure, Cards: []op.CardRef{}}
	found, ok := t.lessons.of(t).Recall(t.state.Opened.Repo, repair.Call{Output: out}, lessonTokens, t.counter.Count)
	for _, id := range t.lessons.met(f.Signature) {
		if t.independent(id) {
			rec.Met = append(rec.Met, id)
		}
	}
	text := ""
	if ok && t.believe(&found, f.Signature, rec) && t.lessons.once(found.From.Card) {
		text, rec.Cards = found.String(), []op.CardRef{t.lessons.ref(t, found)}
	}
	if text == "" && len(rec.Met)+len(rec.Withheld) == 0 {
		return "", nil
	}
	return text, rec
}

// warning returns what a call is held with where a card that may be believed says that
// its program is missing in this project, or that it began a path that failed in the
// same state of the files, and the record of it; nil: the call runs. Each card holds one
// call a task.
func (t *Task) warning(c op.Call, world string) (string, *op.CardsRecalled) {
	command := notice.BashCommand(c.Name, c.Args)
	if command == "" || t.layers == nil || t.opts.NoLessons || t.opts.NoWarnings {
		return "", nil
	}
	e, err := t.experienced()
	if err != nil {
		return "", nil // the same stream ends the task where it is needed
	}
	found, ok := t.lessons.of(t).Warn(t.state.Opened.Repo, command, lessonTokens, t.counter.Count, func(p *repair.Pair) bool {
		from := t.card(p.Card)
		return from != nil && t.trust(from).Rung != knowledgebase.Hypothesis
	})
	held := func(id string) bool {
		return slices.ContainsFunc(e.Shown, func(s anamnesis.Showing) bool { return s.Held && s.Card == id })
	}
	if !ok || held(found.From.Card) {
		return t.warnPath(c.Name, command, world, held)
	}
	rec := &op.CardsRecalled{Query: command, Why: recallWarning, Cards: []op.CardRef{}}
	if !t.believe(&found, "", rec) {
		return "", nil
	}
	rec.Cards = append(rec.Cards, t.lessons.ref(t, found))
	return notice.Warned(c.Name, found.String()), rec
}

// warnPath is warning for a call that began a path of an earlier task.
func (t *Task) warnPath(name, command, world string, held func(id string) bool) (string, *op.CardsRecalled) {
	for _, from := range slices.Backward(t.lessons.pathsFrom(anamnesis.CommandLine(command))) {
		h := knowledgebase.Hit{Card: from, Trust: t.trust(from)}
		if e := t.evidence(from); world == "" || e.began != world || held(from.ID) || h.Trust.Rung == knowledgebase.Hypothesis || h.Trust.Withheld || t.experiment(from) {
			continue
		}
		rec := &op.CardsRecalled{Query: command, Why: recallWarning, Cards: []op.CardRef{t.cardRef(h)}}
		return notice.WarnedPath(name, strings.Join(knowledgebase.Quote(h), "\n")), rec
	}
	return "", nil
}

// believe reports whether a repair may be shown, and has it say how far it may be
// believed. Where the task has met its error itself, sign, it is the second that did.
// What the experiment withholds is noted in rec.
func (t *Task) believe(r *repair.Card, sign string, rec *op.CardsRecalled) bool {
	h := knowledgebase.Hit{Card: t.lessons.card(*r)}
	h.Trust = t.trust(h.Card)
	if slices.ContainsFunc(h.Card.Issue, func(issue string) bool { return errorOf(issue) == sign }) {
		h.Trust = t.trustWhenMet(h.Card)
	}
	switch {
	case h.Trust.Withheld:
		return false
	case t.experiment(h.Card):
		rec.Withheld = append(rec.Withheld, t.cardRef(h))
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
func (t *Task) foresee(rec *op.CardsRecalled) {
	if t.layers == nil || t.opts.NoLessons {
		return
	}
	var texts []string
	for _, c := range t.lessons.of(t).Foresee(t.state.Opened.Repo, foreseenTokens, t.counter.Count) {
		if strings.Contains(rec.Text, c.From.Card) || !t.believe(&c, "", rec) {
			continue
		}
		texts = append(texts, c.String())
		rec.Cards = append(rec.Cards, t.lessons.ref(t, c))
	}
	if len(texts) > 0 {
		rec.Text = strings.TrimSpace(rec.Text + "\n\nFailures that earlier tasks of this project met and repaired; quoted data, check before relying on it:\n" + strings.Join(texts, "\n"))
	}
}

// Package replay measures what is learned across tasks: recorded runs are
// replayed in their order in time, each recorded failure asks what was learned
// from earlier runs only, and a judge compares the answer with what later made
// the call succeed.
package replay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/repair"
	"anamnesis/anamnesis/tokens"
)

// Budgets of what is shown, in tokens.
const (
	AnswerTokens  = 200
	ForeseeTokens = 300
	encoding      = "o200k_base"
)

// reportFrom is the first run of the half that is reported, of the one source
// that is split.
const (
	splitSource = "swebench_gemini3pro"
	reportFrom  = 199
)

// Options of a replay.
type Options struct {
	Data    string   // the directory of the recorded runs
	Sources []string // default: all
	Half    string   // "choose", "report", or both if empty
	Answer  func(Answer) error
}

// Answer is what the memory showed for one asked failure.
type Answer struct {
	Source   string   `json:"source"`
	Question string   `json:"id"`
	Shown    []string `json:"suggestions"`
	Right    bool     `json:"right"`
}

// Run replays the sources.
func Run(ctx context.Context, o Options) (*Report, error) {
	if !slices.Contains([]string{"", "choose", "report"}, o.Half) {
		return nil, fmt.Errorf("%w: no half %q: choose or report", ErrUsage, o.Half)
	}
	known, err := Sources(o.Data)
	if err != nil {
		return nil, err
	}
	for _, s := range o.Sources {
		if !slices.Contains(known, s) {
			return nil, fmt.Errorf("%w: no source %q: one of %s", ErrUsage, s, strings.Join(known, ", "))
		}
	}
	if len(o.Sources) == 0 {
		o.Sources = known
	}
	counter, err := tokens.ForEncoding(encoding)
	if err != nil {
		return nil, err
	}
	report := &Report{Half: o.Half, AnswerTokens: AnswerTokens}
	for _, name := range o.Sources {
		s, err := readSource(o.Data, name)
		if err != nil {
			return nil, err
		}
		p := newPlay(s, counter.Count, o)
		for _, r := range s.runs {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := p.run(r); err != nil {
				return nil, err
			}
		}
		if sr := p.report(); sr.Asked > 0 {
			report.Sources = append(report.Sources, sr)
		}
	}
	return report, nil
}

// play is the replay of one source.
type play struct {
	*source
	judge  *Judge
	count  func(string) int
	half   string
	answer func(Answer) error
	memory *repair.Memory
	cards  map[string]repair.Card // that the memory answered with, by question
	arms   []*arm
	asked  map[string][]*Question // by run
	byRun  map[string][]*Question
	rows   map[string][]row // by arm
	early  map[string][]row
	seen   seen
	warned warned
}

// row is one arm's answer to one question.
type row struct {
	q *Question
	Verdict
	tokens int
	rests  string
	sure   float64 // the memory's confidence
}

func newPlay(s *source, count func(string) int, o Options) *play {
	p := &play{
		source: s, judge: NewJudge(s.questions), count: count, half: o.Half, answer: o.Answer,
		memory: repair.NewMemory(), cards: map[string]repair.Card{},
		asked: map[string][]*Question{}, byRun: map[string][]*Question{}, rows: map[string][]row{}, early: map[string][]row{},
		seen: newSeen(),
	}
	for _, q := range s.questions {
		p.byRun[q.Run] = append(p.byRun[q.Run], q)
	}
	for _, q := range p.judge.Asked {
		p.asked[q.Run] = append(p.asked[q.Run], q)
	}
	p.arms = p.newArms()
	return p
}

const (
	memoryArm   = "memory"
	bm25Arm     = "bm25, same repository"
	wordListArm = "word list of the repository"
)

func (p *play) newArms() []*arm {
	known := &pool{rnd: rand.New(rand.NewPCG(11, 0))}
	ranked := &bm25{pool: known, index: map[string][]posting{}}
	within := func(budget int) func(string) bool {
		return func(s string) bool { return p.count(s) <= budget }
	}
	return []*arm{
		{name: "nothing", answer: func(*Question, *recorded) []string { return nil }},
		{name: "shuffled, same repository", answer: func(q *Question, _ *recorded) []string { return known.shuffled(q.Repo) },
			foresee: func(r *recorded) []string { return known.shuffled(r.Repo) }, learn: known.learn},
		{name: bm25Arm, answer: func(q *Question, _ *recorded) []string { return ranked.top(q.Repo, queryText(q)) },
			foresee: func(r *recorded) []string {
				return ranked.top(r.Repo, bm25Word.FindAllString(strings.ToLower(r.Request), -1))
			}, learn: ranked.learn},
		{name: wordListArm, answer: func(q *Question, _ *recorded) []string { return known.wordList(q.Repo, within(AnswerTokens)) },
			foresee: func(r *recorded) []string { return known.wordList(r.Repo, within(ForeseeTokens)) }},
		{name: memoryArm, answer: p.recall, foresee: p.foresee, learn: p.learn},
		{name: "oracle, an earlier repair", answer: func(q *Question, _ *recorded) []string { return known.oracle(p.judge, q.ID, "") }},
		{name: "oracle, same repository", answer: func(q *Question, _ *recorded) []string { return known.oracle(p.judge, q.ID, q.Repo) }},
	}
}

// learn remembers the repairs that the product finds in a run.
func (p *play) learn(r *recorded, _ []*Question) {
	for _, pair := range anamnesis.KeptRepairs(r.Run) {
		p.memory.Add(pair)
	}
}

func (p *play) recall(q *Question, r *recorded) []string {
	if q.Call >= len(r.Calls) {
		return nil
	}
	failed := r.Calls[q.Call]
	failed.Error = true // the question is about a failure
	c, ok := p.memory.Recall(q.Repo, failed, AnswerTokens, p.count)
	if !ok {
		return nil
	}
	p.cards[q.ID] = c
	return []string{c.String()}
}

func (p *play) foresee(r *recorded) (out []string) {
	for _, c := range p.memory.Foresee(r.Repo, ForeseeTokens, p.count) {
		out = append(out, c.String())
	}
	return out
}

// run asks a run's failures and learns from it afterwards.
func (p *play) run(r *recorded) error {
	asked := p.asked[r.ID]
	for _, a := range p.arms {
		var early []string
		if a.foresee != nil && len(asked) > 0 {
			early = p.cut(a.foresee(r), ForeseeTokens)
		}
		for _, q := range asked {
			if !p.counts(q) {
				continue
			}
			budget := AnswerTokens
			if strings.HasPrefix(a.name, "oracle") {
				budget = 1 << 30
			}
			shown := p.cut(a.answer(q, r), budget)
			v := row{q: q, Verdict: p.judge.Judge(q.ID, shown), tokens: p.count(strings.Join(shown, "\n"))}
			if a.name == memoryArm {
				if c, ok := p.cards[q.ID]; ok {
					v.rests, v.sure = c.From.Repo, c.Confidence
				}
				if p.answer != nil {
					if err := p.answer(Answer{p.name, q.ID, shown, v.Hit3}); err != nil {
						return err
					}
				}
			}
			p.rows[a.name] = append(p.rows[a.name], v)
			if a.foresee != nil {
				p.early[a.name] = append(p.early[a.name], row{q: q, Verdict: p.judge.Judge(q.ID, early)})
			}
		}
	}
	for _, q := range asked {
		if p.counts(q) {
			p.seen.ask(q)
		}
	}
	if p.inHalf(r.order) {
		p.warned.run(p.memory, r, asked, p.count)
	}
	for _, a := range p.arms {
		if a.learn != nil {
			a.learn(r, p.byRun[r.ID])
		}
	}
	p.seen.learn(p.byRun[r.ID])
	return nil
}

// counts reports whether a question belongs to the half that is reported.
// Sources that are not split are for choosing.
func (p *play) counts(q *Question) bool { return p.inHalf(q.Order) }

func (p *play) inHalf(order int) bool {
	report := p.name == splitSource && order >= reportFrom
	return p.half == "" || report == (p.half == "report")
}

// cut shortens suggestions, in their order, to the budget together.
func (p *play) cut(suggestions []string, budget int) []string {
	var out []string
	for _, s := range first(suggestions, maxSuggestions) {
		n := p.count(s)
		if n > budget {
			for s != "" && p.count(s) > budget {
				rs := []rune(s)
				s = string(rs[:min(len(rs)-1, len(rs)*budget/n)])
				n = p.count(s)
			}
			if strings.TrimSpace(s) != "" {
				out = append(out, s)
			}
			break
		}
		out = append(out, s)
		budget -= n
	}
	return out
}

// first returns the first n of s.
func first[T any](s []T, n int) []T { return s[:min(len(s), n)] }

// warned counts the calls that are held before they run.
type warned struct {
	calls, right, wrong int // wrong: the call succeeded, or failed otherwise
	first               int // asked failures that were held
}

// run holds each call that the memory warns of, each card once a run.
func (w *warned) run(m *repair.Memory, r *recorded, asked []*Question, count func(string) int) {
	said := map[string]bool{}
	for i, c := range r.Calls {
		w.calls++
		card, ok := m.Warn(r.Repo, c.Command, AnswerTokens, count, func(*repair.Pair) bool { return true })
		if !ok || said[card.From.Card] {
			continue
		}
		said[card.From.Card] = true
		f, failed := failure.Read(c.Output)
		if !failed || f.Signature != card.From.Failure.Signature {
			w.wrong++
			continue
		}
		w.right++
		if slices.ContainsFunc(asked, func(q *Question) bool { return q.Call == i }) {
			w.first++
		}
	}
}

// seen counts how many asked failures have a signature that an earlier run had
// repaired.
type seen struct {
	repaired    map[string]map[string]bool // repositories, by signature
	same, other int
}

func newSeen() seen { return seen{repaired: map[string]map[string]bool{}} }

func (s *seen) ask(q *Question) {
	switch repos := s.repaired[q.Sig]; {
	case repos[q.Repo]:
		s.same++
	case len(repos) > 0:
		s.other++
	}
}

func (s *seen) learn(qs []*Question) {
	for _, q := range qs {
		if q.Repair != nil && q.First {
			addWords(s.repaired, q.Sig, []string{q.Repo})
		}
	}
}

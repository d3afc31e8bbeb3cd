// Package replay measures what is learned across tasks: recorded runs are replayed in their order in
// time, each recorded failure asks what was learned from earlier runs only, and a judge compares the
// answer with what later made the call succeed.
package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/pair"
	"anamnesis/anamnesis/tokens"
)

// answerTokens limits what one answer shows.
const answerTokens = 200

const encoding = "o200k_base"

// The one source that is split, and the first run of the half that is reported.
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

// Answer is what the pairs of earlier runs showed for one failure.
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
	all, err := Sources(o.Data)
	if err != nil {
		return nil, err
	}
	for _, s := range o.Sources {
		if !slices.Contains(all, s) {
			return nil, fmt.Errorf("%w: no source %q: one of %s", ErrUsage, s, strings.Join(all, ", "))
		}
	}
	if len(o.Sources) == 0 {
		o.Sources = all
	}
	counter, err := tokens.ForEncoding(encoding)
	if err != nil {
		return nil, err
	}
	report := &Report{Half: o.Half, AnswerTokens: answerTokens}
	for _, name := range o.Sources {
		s, err := readSource(o.Data, name)
		if err != nil {
			return nil, err
		}
		sr, err := s.replay(ctx, &o, counter.Count)
		if err != nil {
			return nil, err
		}
		if sr.Asked > 0 {
			report.Sources = append(report.Sources, sr)
		}
	}
	return report, nil
}

// row is one arm's answer to one question.
type row struct {
	q *Question
	Verdict
	tokens int
}

// replay asks each run's failures of both arms, and learns from the run afterwards.
func (s *source) replay(ctx context.Context, o *Options, count func(string) int) (SourceReport, error) {
	judge := NewJudge(s.questions)
	byRun, asked := map[string][]*Question{}, map[string][]*Question{}
	for _, q := range s.questions {
		byRun[q.Run] = append(byRun[q.Run], q)
	}
	for _, q := range judge.Asked {
		if report := s.name == splitSource && q.Order >= reportFrom; o.Half == "" || report == (o.Half == "report") {
			asked[q.Run] = append(asked[q.Run], q)
		}
	}
	pairs, ranked := earlierPairs{}, newBM25()
	var byPairs, byRank []row
	for _, r := range s.runs {
		if err := ctx.Err(); err != nil {
			return SourceReport{}, err
		}
		for _, q := range asked[r.ID] {
			answer := func(shown []string) row {
				shown = cut(shown, answerTokens, count)
				return row{q, judge.Judge(q.ID, shown), count(strings.Join(shown, "\n"))}
			}
			shown := pairs.answer(q, r)
			byPairs = append(byPairs, answer(shown))
			byRank = append(byRank, answer(ranked.top(q.Repo, queryText(q))))
			if o.Answer != nil {
				if err := o.Answer(Answer{s.name, q.ID, shown, byPairs[len(byPairs)-1].Hit3}); err != nil {
					return SourceReport{}, err
				}
			}
		}
		pairs.learn(r)
		ranked.learn(byRun[r.ID])
	}
	return SourceReport{
		Source: s.name, Runs: len(s.runs), Asked: len(byPairs), Pairs: len(pairs),
		Arms: []Figures{figures("pairs of the same failure", byPairs), figures("BM25 over the data set's repairs, same repository", byRank)},
	}, nil
}

// earlierPairs holds the latest pair of each repository and failure, in words.
type earlierPairs map[string]string

// learn adds the pairs that the product finds in a run.
func (e earlierPairs) learn(r *recorded) {
	for _, p := range pair.Find(r.Calls) {
		e[r.Repo+"\n"+p.Failure.Signature] = strings.Join(slices.Concat(p.Ran, p.Files, []string{pair.Main(r.Calls[p.Fixed].Command)}), "\n")
	}
}

func (e earlierPairs) answer(q *Question, r *recorded) []string {
	if q.Call >= len(r.Calls) {
		return nil
	}
	failed := r.Calls[q.Call].Output
	failed.Error = true // the question is about a failure
	f, _ := failure.Read(failed)
	if text := e[r.Repo+"\n"+f.Signature]; text != "" && f.Signature != "" {
		return []string{text}
	}
	return nil
}

// cut shortens suggestions, in their order, to the budget together.
func cut(suggestions []string, budget int, count func(string) int) (out []string) {
	for _, s := range first(suggestions, maxSuggestions) {
		n := count(s)
		for s != "" && count(s) > budget {
			rs := []rune(s)
			s = string(rs[:min(len(rs)-1, len(rs)*budget/n)])
		}
		if strings.TrimSpace(s) == "" {
			break
		}
		out, budget = append(out, s), budget-count(s)
	}
	return out
}

// first returns the first n of s.
func first[T any](s []T, n int) []T { return s[:min(len(s), n)] }

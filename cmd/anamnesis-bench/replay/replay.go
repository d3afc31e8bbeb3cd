// Package replay answers recorded failures from what earlier recorded runs of the same repository did
// about the same failure. The judge of the recorded data scores the answers.
package replay

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/pair"
	"anamnesis/anamnesis/shell"
)

// Options of a replay.
type Options struct {
	Data    string             // the directory of the recorded runs
	Sources []string           // default: all
	Answer  func(Answer) error // receives each answer; may be nil
}

// Answer is what the pairs of earlier runs say about one failure, in the form that the data's judge reads.
type Answer struct {
	Source   string   `json:"source"`
	Question string   `json:"id"`
	Shown    []string `json:"suggestions"`
}

// Report counts what a replay answered.
type Report struct {
	Sources []SourceReport `json:"sources"`
}

// SourceReport is the counts of one source.
type SourceReport struct {
	Source   string `json:"source"`
	Runs     int    `json:"runs"`
	Asked    int    `json:"asked"`
	Answered int    `json:"answered"`
	Pairs    int    `json:"pairs"` // of different failures, after the last run
	// Unrepaired are failures that never succeeded in their run, and Spoken those of them that have an answer.
	Unrepaired int `json:"unrepaired"`
	Spoken     int `json:"spoken"`
}

// WriteText prints the report, a line for each source.
func (r *Report) WriteText(w io.Writer) error {
	for _, s := range r.Sources {
		if _, err := fmt.Fprintf(w, "%s: %d runs, %d failures asked, %d answered, %d pairs; %d never repaired, %d of them answered\n",
			s.Source, s.Runs, s.Asked, s.Answered, s.Pairs, s.Unrepaired, s.Spoken); err != nil {
			return err
		}
	}
	return nil
}

// Run replays the sources. Each run's failures are asked first, and the run is learned from afterwards.
func Run(ctx context.Context, o Options) (*Report, error) {
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
	report := new(Report)
	for _, name := range o.Sources {
		s, err := readSource(o.Data, name)
		if err != nil {
			return nil, err
		}
		sr, err := s.replay(ctx, o.Answer)
		if err != nil {
			return nil, err
		}
		report.Sources = append(report.Sources, sr)
	}
	return report, nil
}

func (s *source) replay(ctx context.Context, answer func(Answer) error) (SourceReport, error) {
	asked := map[string][]*question{}
	for _, q := range s.questions {
		if q.First {
			asked[q.Run] = append(asked[q.Run], q)
		}
	}
	out, pairs := SourceReport{Source: s.name, Runs: len(s.runs)}, earlierPairs{}
	for _, r := range s.runs {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		for _, q := range asked[r.ID] {
			shown := pairs.answer(q, r)
			if q.Repair == nil {
				if out.Unrepaired++; len(shown) > 0 {
					out.Spoken++
				}
				continue
			}
			out.Asked++
			if len(shown) > 0 {
				out.Answered++
			}
			if answer == nil {
				continue
			}
			if err := answer(Answer{s.name, q.ID, shown}); err != nil {
				return out, err
			}
		}
		pairs.learn(r)
	}
	out.Pairs = len(pairs)
	return out, nil
}

// earlierPairs holds what pairs say of each repository and failure.
type earlierPairs map[string]earlier

type earlier struct {
	text string // the latest pair, in words
	runs int    // that had one
}

// learn adds the pairs that the product finds in a run.
func (e earlierPairs) learn(r *recorded) {
	here := map[string]string{}
	for _, p := range pair.Find(r.Calls) {
		here[r.Repo+"\n"+p.Failure.Signature] = strings.Join(slices.Concat(p.Ran, p.Files, []string{pair.Main(r.Calls[p.Fixed].Command)}), "\n")
	}
	for key, text := range here {
		e[key] = earlier{text, e[key].runs + 1}
	}
}

// answer is empty where a lesson would not be shown: a failure of a program that the run itself wrote is answered
// once the lesson held in a second run.
func (e earlierPairs) answer(q *question, r *recorded) []string {
	if q.Call >= len(r.Calls) {
		return nil
	}
	failed := r.Calls[q.Call].Output
	failed.Error = true // the question is about a failure
	f, _ := failure.Read(failed)
	found := e[r.Repo+"\n"+f.Signature]
	if f.Signature == "" || found.runs == 0 || found.runs == 1 && namesWritten(failed.Command, r.Calls[:q.Call]) {
		return []string{}
	}
	return []string{found.text}
}

// namesWritten reports whether a command names a file that an earlier one wrote.
func namesWritten(command string, earlier []pair.Call) bool {
	words := shell.Words(command)
	return slices.ContainsFunc(earlier, func(c pair.Call) bool {
		return slices.ContainsFunc(shell.Parts(c.Command), func(p shell.Part) bool {
			return slices.ContainsFunc(p.Redirects, func(r shell.Redirect) bool { return r.Writes() && slices.Contains(words, r.File.Text) })
		})
	})
}

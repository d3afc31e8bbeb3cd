package replay

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
)

// Report is what a replay came to.
type Report struct {
	Half         string         `json:"half,omitempty"`
	AnswerTokens int            `json:"answer_tokens"`
	Sources      []SourceReport `json:"sources"`
}

// SourceReport is the figures of one source. Shares are between 0 and 1.
type SourceReport struct {
	Source     string    `json:"source"`
	Runs       int       `json:"runs"`
	Asked      int       `json:"asked"`
	SeenSame   float64   `json:"seen_same_repository"`  // asked failures whose signature an earlier run of the repository had repaired
	SeenOther  float64   `json:"seen_other_repository"` // or only one of another repository
	CardsKept  int       `json:"cards_kept"`
	Arms       []Figures `json:"arms"`
	Gains      []Gain    `json:"gains"`
	Surest     Rest      `json:"surest"` // the answers of most confidence, as many as surestShare of the asked
	SurestGain Gain      `json:"surest_gain"`
	RestsSame  Rest      `json:"rests_same_repository"`
	RestsOther Rest      `json:"rests_other_repository"`
	// Before a call: warnings that were right, the share of the asked failures among
	// them, and wrong ones in a hundred calls.
	Warned      int     `json:"warned"`
	WarnedFirst float64 `json:"warned_first"`
	WarnedWrong float64 `json:"warned_wrong_per_100_calls"`
}

// surestShare is the coverage at which the memory's answers are compared with
// the word list's on the same questions.
const surestShare = 0.4

// Figures of one arm.
type Figures struct {
	Arm      string   `json:"arm"`
	Answered float64  `json:"answered"`
	Right    float64  `json:"right_of_answered"`
	Hit1     float64  `json:"hit1"`
	Hit3     float64  `json:"hit3"`
	Hit3Runs Interval `json:"hit3_by_run"`
	Hit3Repo Interval `json:"hit3_by_repository"`
	Harm3    float64  `json:"harm3"`
	Tokens   float64  `json:"tokens_an_answer"`
	Foreseen float64  `json:"foreseen"`
}

// Gain is the memory's hits less another arm's on the same questions.
type Gain struct {
	Over     string   `json:"over"`
	Answered bool     `json:"answered_only"` // on the questions that the memory answered
	Asked    int      `json:"asked"`
	Hit3     float64  `json:"hit3"`
	Runs     Interval `json:"by_run"`
	Repo     Interval `json:"by_repository"`
}

// Rest is the answers that rest on a pair of the same or another repository.
type Rest struct {
	Answers int     `json:"answers"`
	Right   float64 `json:"right"`
}

func (p *play) report() SourceReport {
	mine := p.rows[memoryArm]
	n := float64(max(1, len(mine)))
	s := SourceReport{
		Source: p.name, Runs: len(p.runs), Asked: len(mine), CardsKept: p.memory.Len(),
		SeenSame: float64(p.seen.same) / n, SeenOther: float64(p.seen.other) / n,
		Warned: p.warned.right, WarnedFirst: float64(p.warned.first) / n, WarnedWrong: 100 * float64(p.warned.wrong) / float64(max(1, p.warned.calls)),
	}
	for _, a := range p.arms {
		f := figures(a.name, p.rows[a.name])
		f.Foreseen = share(p.early[a.name], func(r row) bool { return r.Hit3 })
		s.Arms = append(s.Arms, f)
	}
	for _, over := range []string{bm25Arm, wordListArm} {
		s.Gains = append(s.Gains, gain(over, mine, p.rows[over], false), gain(over, mine, p.rows[over], true))
	}
	s.Surest, s.SurestGain = surest(mine, p.rows[wordListArm])
	rest := func(same bool) (r Rest) {
		hits := 0
		for _, m := range mine {
			if m.Answered && (m.rests == m.q.Repo) == same {
				r.Answers++
				hits += int(truth(m.Hit3))
			}
		}
		r.Right = float64(hits) / float64(max(1, r.Answers))
		return r
	}
	s.RestsSame, s.RestsOther = rest(true), rest(false)
	return s
}

// surest compares the answers of most confidence with the word list's.
func surest(mine, theirs []row) (Rest, Gain) {
	order := make([]int, 0, len(mine))
	for i, m := range mine {
		if m.Answered {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(mine[b].sure, mine[a].sure) })
	var top, other []row
	for _, i := range first(order, int(math.Ceil(surestShare*float64(len(mine))))) {
		top, other = append(top, mine[i]), append(other, theirs[i])
	}
	return Rest{Answers: len(top), Right: share(top, func(r row) bool { return r.Hit3 })}, gain(wordListArm, top, other, true)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func share(rows []row, is func(row) bool) float64 {
	var n float64
	for _, r := range rows {
		n += truth(is(r))
	}
	return n / float64(max(1, len(rows)))
}

// intervals resamples runs, and beside them repositories.
func intervals(rows []row, value func(row) float64) (runs, repos Interval) {
	var byRun, byRepo []string
	var values []float64
	for _, r := range rows {
		byRun, byRepo = append(byRun, r.q.Run), append(byRepo, r.q.Repo)
		values = append(values, value(r))
	}
	return bootstrap(byRun, values), bootstrap(byRepo, values)
}

func figures(name string, rows []row) Figures {
	hit3 := func(r row) bool { return r.Hit3 }
	f := Figures{
		Arm:      name,
		Answered: share(rows, func(r row) bool { return r.Answered }),
		Hit1:     share(rows, func(r row) bool { return r.Hit1 }),
		Hit3:     share(rows, hit3),
		Harm3:    share(rows, func(r row) bool { return r.Harm }),
	}
	var answered, tokens float64
	for _, r := range rows {
		if r.Answered {
			answered++
			tokens += float64(r.tokens)
		}
	}
	f.Right = f.Hit3 * float64(len(rows)) / max(1, answered)
	f.Tokens = tokens / max(1, answered)
	f.Hit3Runs, f.Hit3Repo = intervals(rows, func(r row) float64 { return truth(r.Hit3) })
	return f
}

func gain(over string, mine, theirs []row, answered bool) Gain {
	g := Gain{Over: over, Answered: answered}
	var rows []row
	diff := map[*Question]float64{}
	for i, m := range mine {
		if answered && !m.Answered {
			continue
		}
		rows = append(rows, m)
		diff[m.q] = truth(m.Hit3) - truth(theirs[i].Hit3)
		g.Hit3 += diff[m.q]
	}
	g.Asked = len(rows)
	g.Hit3 /= float64(max(1, len(rows)))
	g.Runs, g.Repo = intervals(rows, func(r row) float64 { return diff[r.q] })
	return g
}

// WriteText prints the report as tables, in percent.
func (r *Report) WriteText(w io.Writer) error {
	for i, s := range r.Sources {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := s.writeText(w); err != nil {
			return err
		}
	}
	return nil
}

func (s *SourceReport) writeText(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d runs, %d failures asked, %d cards kept\n", s.Source, s.Runs, s.Asked, s.CardsKept)
	fmt.Fprintf(w, "learnable: %.1f %% had a signature that an earlier run of the repository repaired, %.1f %% only one of another repository\n",
		100*s.SeenSame, 100*s.SeenOther)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "arm\tanswered\tright of answered\thit@1\thit@3\tby run\tby repository\tharm@3\ttokens\tforeseen")
	for _, f := range s.Arms {
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%s\t%.1f\t%.0f\t%.1f\n",
			f.Arm, 100*f.Answered, 100*f.Right, 100*f.Hit1, 100*f.Hit3, f.Hit3Runs, f.Hit3Repo, 100*f.Harm3, f.Tokens, 100*f.Foreseen)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, g := range s.Gains {
		on := "all asked"
		if g.Answered {
			on = "answered by the memory"
		}
		fmt.Fprintf(w, "hit@3 gained over %s, %s (%d): %+.1f, by run %s, by repository %s\n", g.Over, on, g.Asked, 100*g.Hit3, g.Runs, g.Repo)
	}
	fmt.Fprintf(w, "the surest %d answers: right %.1f, gained over %s %+.1f, by run %s, by repository %s\n",
		s.Surest.Answers, 100*s.Surest.Right, s.SurestGain.Over, 100*s.SurestGain.Hit3, s.SurestGain.Runs, s.SurestGain.Repo)
	fmt.Fprintf(w, "before a call: %d right warnings, %.1f %% of the asked failures warned of, %.2f wrong warnings in 100 calls\n", s.Warned, 100*s.WarnedFirst, s.WarnedWrong)
	_, err := fmt.Fprintf(w, "answers resting on the same repository: %d, right %.1f; on another: %d, right %.1f\n",
		s.RestsSame.Answers, 100*s.RestsSame.Right, s.RestsOther.Answers, 100*s.RestsOther.Right)
	return err
}

// String returns the interval in percent.
func (i Interval) String() string { return fmt.Sprintf("%.1f to %.1f", 100*i.Low, 100*i.High) }

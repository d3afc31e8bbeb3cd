package replay

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is what a replay came to.
type Report struct {
	Half         string         `json:"half,omitempty"`
	AnswerTokens int            `json:"answer_tokens"`
	Sources      []SourceReport `json:"sources"`
}

// SourceReport is the figures of one source.
type SourceReport struct {
	Source string    `json:"source"`
	Runs   int       `json:"runs"`
	Asked  int       `json:"asked"`
	Pairs  int       `json:"pairs"` // of different failures, after the last run
	Arms   []Figures `json:"arms"`
}

// Figures of one arm. Shares are between 0 and 1.
type Figures struct {
	Arm      string  `json:"arm"`
	Answered float64 `json:"answered"`
	Right    float64 `json:"right_of_answered"`
	Hit1     float64 `json:"hit1"`
	Hit3     float64 `json:"hit3"`
	Harm3    float64 `json:"harm3"`
	Tokens   float64 `json:"tokens_an_answer"`
}

func share(rows []row, is func(row) bool) float64 {
	n := 0
	for _, r := range rows {
		if is(r) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(rows)))
}

func figures(name string, rows []row) Figures {
	f := Figures{
		Arm:      name,
		Answered: share(rows, func(r row) bool { return r.Answered }),
		Hit1:     share(rows, func(r row) bool { return r.Hit1 }),
		Hit3:     share(rows, func(r row) bool { return r.Hit3 }),
		Harm3:    share(rows, func(r row) bool { return r.Harm }),
	}
	answered, tokens := 0, 0
	for _, r := range rows {
		if r.Answered {
			answered, tokens = answered+1, tokens+r.tokens
		}
	}
	f.Right = f.Hit3 * float64(len(rows)) / float64(max(1, answered))
	f.Tokens = float64(tokens) / float64(max(1, answered))
	return f
}

// WriteText prints the report as tables, in percent.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range r.Sources {
		fmt.Fprintf(t, "%s: %d runs, %d failures asked, %d pairs\n", s.Source, s.Runs, s.Asked, s.Pairs)
		fmt.Fprintln(t, "arm\tanswered\tright of answered\thit@1\thit@3\tharm@3\ttokens")
		for _, f := range s.Arms {
			fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\n", f.Arm, 100*f.Answered, 100*f.Right, 100*f.Hit1, 100*f.Hit3, 100*f.Harm3, f.Tokens)
		}
	}
	return t.Flush()
}

// Package extractor measures what the deterministic extractor makes of recorded runs:
// which failed calls its blocks describe, cite or point to, and whether what it quotes
// occurs.
package extractor

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
)

// spanShare is how many EAS a span has that the session is cut into.
const spanShare = 3

// Report is the result of a run.
type Report struct {
	Rows []Row `json:"rows"`
	// Failed calls of the tau-bench runs, and those that were repeated to the letter and
	// failed again: the compliance of the agent in bench memory is compared with them.
	Failed int `json:"failed"`
	Again  int `json:"again"`
}

// Row is one kind of span at one EAS.
type Row struct {
	Name       string  `json:"name"`
	EAS        int     `json:"eas"`
	Spans      int     `json:"spans"`
	Tokens     int     `json:"largest_span"` // tokens
	Failed     int     `json:"failed"`       // failed calls in the spans
	Described  int     `json:"described"`    // with their error or action in the block
	Cited      int     `json:"cited"`        // by number, alone or in a list of what had no room
	Pointed    int     `json:"pointed"`      // or in the block's pointers
	Quotes     int     `json:"quotes"`       // errors quoted
	TrueQuotes int     `json:"true_quotes"`  // that occur in the span
	OverCap    int     `json:"over_cap"`     // blocks above the cap
	Fullest    float64 `json:"fullest"`      // largest share of the cap a block takes
}

// Run runs the extractor over the recorded runs in a folder.
func Run(ctx context.Context, data string) (*Report, error) {
	rep := &Report{}
	runs, err := tauRuns(data)
	if err != nil {
		return nil, fmt.Errorf("bench extractor: %w", err)
	}
	long, err := session(data)
	if err != nil {
		return nil, fmt.Errorf("bench extractor: %w", err)
	}
	for _, r := range runs {
		failed, again := r.repeats()
		rep.Failed, rep.Again = rep.Failed+failed, rep.Again+again
	}
	counter, err := tokens.ForEncoding("r50k_base")
	if err != nil {
		return nil, err
	}
	for _, eas := range []int{4_000, 16_000, 128_000} {
		for _, set := range []struct {
			name  string
			spans []*recorded
		}{
			{"tau-bench, a run a span", runs},
			{"coding session, spans of 3 EAS", long.spans(spanShare*eas, counter.Count)},
			{"coding session, one span", []*recorded{long}},
		} {
			row, err := rowOf(ctx, set.name, set.spans, eas, counter.Count)
			if err != nil {
				return nil, fmt.Errorf("bench extractor: %w", err)
			}
			rep.Rows = append(rep.Rows, row)
		}
	}
	return rep, nil
}

func rowOf(ctx context.Context, name string, spans []*recorded, eas int, count func(string) int) (Row, error) {
	row := Row{Name: name, EAS: eas, Spans: len(spans)}
	limit := note.BlockCap(eas)
	for _, s := range spans {
		ranges := []op.Range{{First: s.ops[0].Seq, Last: s.ops[len(s.ops)-1].Seq}}
		res, err := anamnesis.Pass(ctx, nil, anamnesis.Request{
			Task: "recorded", JumpSeq: ranges[0].Last, From: 2, Reason: "recorded", EAS: eas, Ops: s.ops, Ranges: ranges,
			Count: count, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), WorldDir: "/world",
		}, nil)
		if err != nil {
			return row, fmt.Errorf("%s: %w", s.name, err)
		}
		text, size := s.text(count)
		row.Tokens = max(row.Tokens, size)
		described := make(map[uint64]bool)
		for _, f := range res.Falsified {
			shown := f.Error != "" && strings.Contains(res.Block, f.Error) || strings.Contains(res.Block, "- "+f.Action+"\n")
			for _, seq := range f.Ops {
				described[seq] = described[seq] || shown
			}
			if f.Error != "" {
				row.Quotes++
				if strings.Contains(text, f.Error) {
					row.TrueQuotes++
				}
			}
		}
		cited := citedIn(res.Block)
		for _, seq := range s.failures() {
			row.Failed++
			row.Described += count1(described[seq] || cited.alone[seq])
			row.Cited += count1(described[seq] || cited.names(seq))
			row.Pointed += count1(ranges[0].Contains(seq) && strings.Contains(res.Block, "Pointers: ops "+ranges[0].String()+" "))
		}
		if n := count(res.Block); n > limit {
			row.OverCap++
		} else {
			row.Fullest = max(row.Fullest, float64(n)/float64(limit))
		}
	}
	return row, nil
}

// text is everything a span says, as quotes are compared, and its size in tokens.
func (r *recorded) text(count func(string) int) (string, int) {
	var b strings.Builder
	size := 0
	for _, o := range r.ops {
		if res, ok := o.Body.(*op.ToolReturned); ok {
			b.WriteString(quote.Squash(res.Text) + "\n")
			size += count(res.Text)
		}
	}
	return b.String(), size
}

// citations are the ops a block's lists name, before its pointers.
type citations struct {
	alone map[uint64]bool
	lists []op.Range // of what had no room
}

func (c citations) names(seq uint64) bool {
	if c.alone[seq] {
		return true
	}
	for _, r := range c.lists {
		if r.Contains(seq) {
			return true
		}
	}
	return false
}

func citedIn(block string) citations {
	body, _, _ := strings.Cut(block, "\nPointers: ")
	c := citations{alone: make(map[uint64]bool)}
	for _, m := range regexp.MustCompile(`\(ops? ([\d, -]+)\)|more: ops ([\d, -]+)\)`).FindAllStringSubmatch(body, -1) {
		for part := range strings.SplitSeq(m[1]+m[2], ",") {
			first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
			a, err := strconv.ParseUint(first, 10, 64)
			if err != nil {
				continue
			}
			if !isRange {
				c.alone[a] = true
			} else if z, err := strconv.ParseUint(last, 10, 64); err == nil {
				c.lists = append(c.lists, op.Range{First: a, Last: z})
			}
		}
	}
	return c
}

// WriteText prints the report as a table.
func (r *Report) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "spans\tEAS\tnumber\tlargest\tfailed calls\tdescribed\tor cited\tor pointed to\terrors quoted\toccur in the span\tblocks over the cap\tfullest")
	for _, x := range r.Rows {
		fmt.Fprintf(tw, "%s\t%dk\t%d\t%d\t%d\t%s\t%s\t%s\t%d\t%s\t%d\t%.0f %%\n", x.Name, x.EAS/1000, x.Spans, x.Tokens, x.Failed, share(x.Described, x.Failed), share(x.Cited, x.Failed),
			share(x.Pointed, x.Failed), x.Quotes, share(x.TrueQuotes, x.Quotes), x.OverCap, 100*x.Fullest)
	}
	fmt.Fprintf(tw, "gpt-4o in tau-bench repeated %d of %d failed calls to the letter, and they failed again: %s\n", r.Again, r.Failed, share(r.Again, r.Failed))
	return tw.Flush()
}

// count1 is 1 where b holds.
func count1(b bool) int {
	if b {
		return 1
	}
	return 0
}

func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

package memory

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// maxTasksNamed is how many losing tasks the text names of one comparison; the
// JSON names all.
const maxTasksNamed = 12

// disclaimer ends every text report.
const disclaimer = "These are claims about the mechanism, with a simulated agent: not about language models."

// WriteText prints the report for people.
func (r *Report) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "bench memory, seed %d, %d tasks a row\n", r.Seed, r.Tasks)
	for i, row := range r.Rows {
		row.writeText(tw)
		if i == 0 {
			row.writeClaims(tw)
		}
	}
	if r.Cards != nil {
		r.Cards.writeText(tw)
	}
	if r.Complete != nil {
		r.Complete.writeText(tw)
	}
	fmt.Fprintf(tw, "\n%s\n", disclaimer)
	return tw.Flush()
}

func (r *RowReport) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nWorld B: %s\n", r.Name)
	fmt.Fprintln(w, "arm\tsolved\trepeated dead ends\twrongly suppressed\tsteps\tuncached\tcached\toutput\tof it passes\tprice\tpeak\tpasses\tasked\tunsolved for want of")
	for _, a := range r.Arms {
		fmt.Fprintf(w, "%s\t%s\t%.2f (%.2f–%.2f) of %.1f\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%s\n", a.Arm, percent(a.Solved),
			a.Repeated.Value, a.Repeated.Low, a.Repeated.High, a.DeadEnds, percent(a.Wrongly), a.Steps, a.Uncached, a.Cached, a.Output, a.Pass,
			a.Price, a.Peak, a.Passes, a.Asked, causes(a.Unsolved))
	}
	fmt.Fprintln(w, "\ncompared\tsolved\tuncached tokens\tprice\trepeated, ratio\tlost to it\twon from it")
	for _, c := range r.Comparisons {
		fmt.Fprintf(w, "%s against %s\t%s\t%+.0f (%+.0f to %+.0f)\t%+.0f (%+.0f to %+.0f)\t%s (%s–%s)\t%s\t%d\n", c.Arm, c.Against, points(c.Solved),
			c.Uncached.Value, c.Uncached.Low, c.Uncached.High, c.Price.Value, c.Price.Low, c.Price.High, times(c.Repeated.Value), times(c.Repeated.Low), times(c.Repeated.High), named(c.LostTasks), len(c.WonTasks))
	}
}

// times is a ratio for people; one to nothing has no number.
func times(ratio float64) string {
	if ratio == math.MaxFloat64 {
		return "∞"
	}
	return fmt.Sprintf("%.2f", ratio)
}

// writeClaims holds the row against the bar, for each arm with the pass.
func (r *RowReport) writeClaims(w io.Writer) {
	fmt.Fprintln(w, "\nthe bar\theld\tmeasured")
	for _, a := range r.Arms {
		if !strings.HasPrefix(a.Arm, ArmAnamnesis) {
			continue
		}
		for _, c := range r.Claims(a.Arm) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.Text, yesNo(c.Held), c.Got)
		}
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "NO"
}

// named lists tasks, the first few by number.
func named(tasks []int) string {
	s := fmt.Sprint(len(tasks))
	if len(tasks) == 0 {
		return s
	}
	var parts []string
	for _, t := range tasks[:min(len(tasks), maxTasksNamed)] {
		parts = append(parts, fmt.Sprint(t))
	}
	if len(tasks) > maxTasksNamed {
		parts = append(parts, "…")
	}
	return s + ": " + strings.Join(parts, " ")
}

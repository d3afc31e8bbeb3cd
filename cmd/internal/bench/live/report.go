package live

import (
	"fmt"
	"io"
	"text/tabwriter"

	"anamnesis/anamnesis/probe"
)

// Report is what a run found.
type Report struct {
	Model string   `json:"model"`
	Seed  uint64   `json:"seed"`
	USD   float64  `json:"usd"`
	Rows  []Row    `json:"rows"`
	Dir   string   `json:"dir"` // of the transcripts
	Notes []string `json:"notes"`
}

// Row is one kind of unit.
type Row struct {
	Name  string `json:"name"`
	Units int    `json:"units"`
	// Solved and the mean number of steps, in each arm.
	With         int     `json:"solved_with"`
	Without      int     `json:"solved_without"`
	StepsWith    float64 `json:"steps_with"`
	StepsWithout float64 `json:"steps_without"`
	// Units that one arm alone solved.
	Won  int `json:"won"`
	Lost int `json:"lost"`
}

func newReport(o Options, all []unit, done []result) *Report {
	rep := &Report{Model: o.Model, Seed: o.Seed, Dir: o.Dir, Rows: []Row{{Name: "World B, with and without the rollback"}, {Name: "pairs, with and without the cards"}},
		Notes: []string{"few units: read the intervals; no test is made, and nothing was looked at before the last unit"}}
	of := make(map[string]result)
	for _, d := range done {
		of[d.Unit+" "+d.Arm] = d
		rep.USD += d.USD
	}
	for _, u := range all {
		row := &rep.Rows[0]
		if u.pair != nil {
			row = &rep.Rows[1]
		}
		a, b := of[u.name+" "+with], of[u.name+" "+without]
		row.Units++
		row.StepsWith, row.StepsWithout = row.StepsWith+float64(a.Steps), row.StepsWithout+float64(b.Steps)
		if a.Solved {
			row.With++
		}
		if b.Solved {
			row.Without++
		}
		if a.Solved && !b.Solved {
			row.Won++
		}
		if b.Solved && !a.Solved {
			row.Lost++
		}
	}
	for i := range rep.Rows {
		r := &rep.Rows[i]
		r.StepsWith, r.StepsWithout = r.StepsWith/float64(r.Units), r.StepsWithout/float64(r.Units)
	}
	return rep
}

// WriteText prints the report as a table.
func (r *Report) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "bench memory with %s, seed %d, $%.4f spent; transcripts in %s\n\n", r.Model, r.Seed, r.USD, r.Dir)
	fmt.Fprintln(tw, "units\tnumber\tsolved with\twithout\tonly with\tonly without\tsteps with\twithout")
	share := func(n, of int) string {
		low, high := probe.Wilson(n, of)
		return fmt.Sprintf("%d (%.0f–%.0f %%)", n, 100*low, 100*high)
	}
	for _, x := range r.Rows {
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%d\t%d\t%.1f\t%.1f\n", x.Name, x.Units, share(x.With, x.Units), share(x.Without, x.Units), x.Won, x.Lost, x.StepsWith, x.StepsWithout)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(tw, "\n%s\n", n)
	}
	return tw.Flush()
}

//go:build unix

package world

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// WriteText writes the figures as tables for people.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d files, %d MiB; %s; %d processors, load %s\n", r.Dir, r.Files, r.Bytes>>20, r.Git, r.CPUs, r.Load)
	fmt.Fprintln(w, "medians; git without syncing, ours durable; ratio: the better of git and git-reset over this one")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	var notes []string
	for _, row := range r.Rows {
		fmt.Fprintf(tw, "\n%s\t(%d rounds)\ttime\tprocessor\tratio\t\t\n", row.Name, row.Rounds)
		if row.Note != "" {
			fmt.Fprintf(tw, "\tnot measured\t\t\t\t(%d)\t\n", len(notes)+1)
			notes = append(notes, row.Note)
		}
		for _, f := range row.Figures {
			if f.Note != "" {
				fmt.Fprintf(tw, "\t%s\t-\t-\t-\t(%d)\t\n", f.Subject, len(notes)+1)
				notes = append(notes, f.Note)
				continue
			}
			fmt.Fprintf(tw, "\t%s\t%s\t%s\t%.2f\t\t\n", f.Subject, rounded(f.Wall), rounded(f.CPU), f.Ratio)
			if f.Durable > 0 {
				fmt.Fprintf(tw, "\tdurable after\t%s\t\t\t\t\n", rounded(f.Durable))
			}
		}
		if row.Compared > 0 {
			fmt.Fprintf(tw, "\ttree ids equal to git's\t%d of %d\t\t\t\t\n", row.SameTree, row.Compared)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for i, note := range notes {
		fmt.Fprintf(w, "(%d) %s\n", i+1, note)
	}
	if r.Memory > 0 {
		fmt.Fprintf(w, "\npeak memory of a process of ours doing a first save: %d MiB\n", r.Memory>>20)
	}
	return nil
}

func rounded(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

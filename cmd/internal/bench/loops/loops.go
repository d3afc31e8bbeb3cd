// Package loops compares loop.Detect with the loop rules of other agents on
// recorded runs.
package loops

import (
	"errors"
	"fmt"
	"io"
	"os"

	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/loop"
)

// ErrUsage is wrapped by errors about what the caller named.
var ErrUsage = errors.New("loops")

// Row is the comparison on one run. Every place is a call, from 1; 0 means never.
type Row struct {
	File   string         `json:"file"`
	Run    string         `json:"run"`
	Calls  int            `json:"calls"`
	Ours   int            `json:"ours"`
	Others map[string]int `json:"others"` // by rule
}

// Report is the comparison on all runs in which a call could be read.
type Report struct {
	Runs    []Row          `json:"runs"`
	Flagged int            `json:"flagged"` // runs that loop.Detect flags
	Others  map[string]int `json:"others"`  // runs that each other rule flags
	Later   int            `json:"later"`   // runs that another rule flags before loop.Detect
}

// Run reads tasks' folders and files of recorded runs, and compares the rules on
// each run.
func Run(paths []string) (*Report, error) {
	r := &Report{Runs: []Row{}, Others: make(map[string]int)}
	for _, path := range paths {
		runs, err := readRuns(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrUsage, path, err)
		}
		for _, run := range runs {
			if len(run.Calls) > 0 {
				r.add(path, run)
			}
		}
	}
	return r, nil
}

func readRuns(path string) ([]loop.RecordedRun, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		calls, err := inspect.RecordedCalls(path)
		return []loop.RecordedRun{{Calls: calls}}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return loop.ReadRecording(f)
}

func (r *Report) add(path string, run loop.RecordedRun) {
	row := Row{File: path, Run: run.Name, Calls: len(run.Calls), Others: make(map[string]int)}
	if found := loop.Detect(run.Calls); len(found) > 0 {
		row.Ours = found[0].At
		r.Flagged++
	}
	later := false
	for _, rule := range Rules() {
		at := rule.At(run.Calls)
		row.Others[rule.Name] = at
		if at > 0 {
			r.Others[rule.Name]++
			later = later || row.Ours == 0 || row.Ours > at
		}
	}
	if later {
		r.Later++
	}
	r.Runs = append(r.Runs, row)
}

// WriteText writes one line for each run that any rule flags, and the sums.
func (r *Report) WriteText(w io.Writer) error {
	for _, row := range r.Runs {
		places, flagged := fmt.Sprintf("anamnesis %d", row.Ours), row.Ours > 0
		for _, rule := range Rules() {
			places += fmt.Sprintf(", %s %d", rule.Name, row.Others[rule.Name])
			flagged = flagged || row.Others[rule.Name] > 0
		}
		if !flagged {
			continue
		}
		if _, err := fmt.Fprintf(w, "%q, run %q, %d calls: %s\n", row.File, row.Run, row.Calls, places); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, "%d of %d runs flagged; another rule was earlier in %d\n", r.Flagged, len(r.Runs), r.Later); err != nil {
		return err
	}
	for _, rule := range Rules() {
		if _, err := fmt.Fprintf(w, "  %-10s %4d runs  (%s)\n", rule.Name, r.Others[rule.Name], rule.Text); err != nil {
			return err
		}
	}
	return nil
}

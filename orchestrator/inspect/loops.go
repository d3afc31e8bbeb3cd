package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
)

// argError is the error of an argument. It is a loop.ErrRecording.
type argError string

func (e argError) Error() string        { return string(e) }
func (e argError) Is(target error) bool { return target == loop.ErrRecording }

// Loops is the loop detector's result for one run.
type Loops struct {
	File     string         `json:"file"`
	Run      string         `json:"run"`
	Calls    int            `json:"calls"`
	Findings []loop.Finding `json:"findings"`
	Seqs     []uint64       `json:"ops,omitempty"` // operations of the first finding's calls, of a task
}

// LoopReport is the detector's result for several runs.
type LoopReport struct {
	Runs    []Loops  `json:"runs"`
	NoCalls []string `json:"no_calls"` // arguments of which no call could be read; not among the runs
	Flagged int      `json:"flagged"`
}

// FindLoops looks for loops in each argument: a task, a task's folder, or a file of recorded
// runs.
func FindLoops(h taskdir.Home, args []string) (LoopReport, error) {
	report := LoopReport{Runs: []Loops{}, NoCalls: []string{}}
	for _, arg := range args {
		rows, err := readLoops(h, arg)
		if err != nil {
			return report, err
		}
		if !slices.ContainsFunc(rows, func(r Loops) bool { return r.Calls > 0 }) {
			report.NoCalls = append(report.NoCalls, arg)
			continue
		}
		report.Runs = append(report.Runs, rows...)
		for _, row := range rows {
			if len(row.Findings) > 0 {
				report.Flagged++
			}
		}
	}
	return report, nil
}

func readLoops(h taskdir.Home, arg string) ([]Loops, error) {
	dir := h.Task(arg)
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		dir = arg
	} else if err == nil {
		return readRecording(arg)
	} else if taskdir.CheckTaskID(arg) != nil {
		return nil, argError(arg + ": no such file, and no name of a task")
	}
	if _, err := os.Stat(filepath.Join(dir, "ops")); err != nil {
		return nil, argError(fmt.Sprintf("%s: neither a task, nor a task's folder, nor a file of recorded runs%s", arg, streamHint(dir)))
	}
	calls, err := RecordedCalls(dir)
	if err != nil {
		return nil, err
	}
	row := loopsOf(arg, "", calls)
	if len(row.Findings) > 0 {
		for _, n := range row.Findings[0].Calls {
			row.Seqs = append(row.Seqs, calls[n-1].Seq)
		}
	}
	return []Loops{row}, nil
}

// streamHint returns what to name instead of the folder of a task's stream, or of a file in
// it; empty for any other folder. The folder may be named by ".".
func streamHint(dir string) string {
	ops, err := filepath.Abs(dir)
	if err != nil || filepath.Base(ops) != "ops" {
		return ""
	}
	return "; a task's stream is read as a whole: name the task, or its folder " + filepath.Dir(ops)
}

// readRecording reads a session of another agent, or other recorded runs.
func readRecording(path string) ([]Loops, error) {
	s, err := sessions.Read(path)
	if err == nil {
		steps := make([][]loop.Recorded, len(s.Steps))
		for i, st := range s.Steps {
			for _, c := range st.Calls {
				steps[i] = append(steps[i], loop.Recorded{Tool: c.Tool, Args: c.Args, Result: c.Text, Failed: c.Failed})
			}
		}
		return []Loops{loopsOf(path, s.ID, loop.FromSteps(steps))}, nil
	}
	if errors.Is(err, sessions.ErrNewer) {
		return nil, argError(err.Error())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, argError(err.Error())
	}
	defer f.Close()
	runs, err := loop.ReadRecording(f)
	if errors.Is(err, loop.ErrRecording) {
		hint := cmp.Or(streamHint(filepath.Dir(path)), "; 'anamnesis loops --help' lists the formats")
		return nil, fmt.Errorf("%s: %w%s", path, err, hint)
	}
	if err != nil {
		return nil, err
	}
	var rows []Loops
	for _, r := range runs {
		rows = append(rows, loopsOf(path, r.Name, r.Calls))
	}
	return rows, nil
}

func loopsOf(file, run string, calls []loop.Recorded) Loops {
	row := Loops{File: file, Run: run, Calls: len(calls), Findings: loop.Detect(calls)}
	if row.Findings == nil {
		row.Findings = []loop.Finding{}
	}
	return row
}

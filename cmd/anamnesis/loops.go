//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/taskdir"
)

// loopRow is what `loops` says of one run.
type loopRow struct {
	File     string         `json:"file"`
	Run      string         `json:"run"`
	Calls    int            `json:"calls"`
	Findings []loop.Finding `json:"findings"`
	Seqs     []uint64       `json:"ops,omitempty"` // operations of the first finding's calls, for our own tasks
}

// loopReport is what `loops --json` prints.
type loopReport struct {
	Runs    []loopRow `json:"runs"`
	NoCalls []string  `json:"no_calls"` // arguments of which no call could be read; not among the runs
	Flagged int       `json:"flagged"`
}

func (a *app) loopsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "loops FILE…",
		Short: "Find agents going round in recorded runs",
		Long: "Run the loop detector over recorded runs: tasks of ours by name or by the path of their folder, or files of chat messages\n" +
			"as OpenAI, Anthropic, Gemini or Ollama have them, or OpenHands' events and its evaluations' output (JSON or lines of JSON, gzipped or not).",
		Args: cobra.MinimumNArgs(1),
		RunE: a.withHome(func(_ *cobra.Command, args []string, h taskdir.Home) error {
			report := loopReport{Runs: []loopRow{}, NoCalls: []string{}}
			for _, arg := range args {
				rows, err := readLoops(h, arg)
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(rows, func(r loopRow) bool { return r.Calls > 0 }) {
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
			for _, arg := range report.NoCalls {
				fmt.Fprintln(a.stderr, view.Clean(fmt.Sprintf("anamnesis: %s: no tool call could be read; not counted", arg)))
			}
			return a.show(report, func() { a.printLoops(report, all) })
		}),
	}
	a.jsonFlag(cmd, "a JSON object")
	cmd.Flags().BoolVar(&all, "all", false, "list runs without a loop, too")
	return cmd
}

// readLoops reads what an argument names: a task, a task's folder, or a file.
func readLoops(h taskdir.Home, arg string) ([]loopRow, error) {
	dir := h.Task(arg)
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		dir = arg
	} else if err == nil {
		return readRecording(arg)
	} else if taskdir.CheckTaskID(arg) != nil {
		return nil, usageError("%s: no such file, and no name of a task", arg)
	}
	if _, err := os.Stat(filepath.Join(dir, "ops")); err != nil {
		return nil, usageError("%s: neither a task, nor a task's folder, nor a file of recorded runs%s", arg, streamHint(dir))
	}
	calls, err := inspect.RecordedCalls(dir)
	if err != nil {
		return nil, err
	}
	row := loopsOf(arg, "", calls)
	if len(row.Findings) > 0 {
		for _, n := range row.Findings[0].Calls {
			row.Seqs = append(row.Seqs, calls[n-1].Seq)
		}
	}
	return []loopRow{row}, nil
}

// streamHint says what to name in place of the folder of a task's stream, or of a
// file in it; empty for any other folder. The folder may be named by ".".
func streamHint(dir string) string {
	ops, err := filepath.Abs(dir)
	if err != nil || filepath.Base(ops) != "ops" {
		return ""
	}
	return "; a task's stream is read as a whole: name the task, or its folder " + filepath.Dir(ops)
}

func readRecording(path string) ([]loopRow, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usageError("%v", err)
	}
	defer f.Close()
	runs, err := loop.ReadRecording(f)
	if errors.Is(err, loop.ErrRecording) {
		hint := cmp.Or(streamHint(filepath.Dir(path)), "; 'anamnesis loops --help' says what is read")
		return nil, usageError("%s: %v%s", path, err, hint)
	}
	if err != nil {
		return nil, err
	}
	var rows []loopRow
	for _, r := range runs {
		rows = append(rows, loopsOf(path, r.Name, r.Calls))
	}
	return rows, nil
}

func loopsOf(file, run string, calls []loop.Recorded) loopRow {
	row := loopRow{File: file, Run: run, Calls: len(calls), Findings: loop.Detect(calls)}
	if row.Findings == nil {
		row.Findings = []loop.Finding{}
	}
	return row
}

func (a *app) printLoops(r loopReport, all bool) {
	say := func(format string, args ...any) {
		a.println(strings.TrimRight(view.Clean(fmt.Sprintf(format, args...)), " "))
	}
	for _, row := range r.Runs {
		name := row.File
		if row.Run != "" {
			name += ", run " + row.Run
		}
		if len(row.Findings) == 0 {
			if all {
				say("%s: no loop in %d calls", name, row.Calls)
			}
			continue
		}
		say("%s: flagged at call %d of %d", name, row.Findings[0].At, row.Calls)
		for _, f := range row.Findings {
			say("  call %d: %s: %s (calls %s)", f.At, f.Rule, f.Text, intsText(f.Calls))
		}
		if len(row.Seqs) > 0 {
			say("  the first loop's calls are ops %s", intsText(row.Seqs))
		}
	}
	say("%d of %d runs flagged", r.Flagged, len(r.Runs))
}

func intsText[T int | uint64](in []T) string {
	parts := make([]string, len(in))
	for i, n := range in {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, ", ")
}

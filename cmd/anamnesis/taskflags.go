//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/session"
)

// taskFlags are the flags of a new task that its first operation records.
type taskFlags struct {
	noResearch  bool
	guarded     []string
	noFinalPass bool
	experiment  bool
}

func (r *taskFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.noFinalPass, "no-final-pass", false, "do not look for lessons in discarded paths when the task ends")
	cmd.Flags().BoolVar(&r.experiment, "card-experiment", false, "withhold each unreviewed card from a random tenth of such tasks; 'kb stats' compares them")
	cmd.Flags().BoolVar(&r.noResearch, "no-research-first", false, "let calls about new packages, hosts and models run without an investigation")
	cmd.Flags().StringArrayVar(&r.guarded, "research-first", nil, "further calls that need an investigation: a tool, or Bash:COMMAND where * is any text (repeatable)")
}

// set fills in the flags' values.
func (r *taskFlags) set(q *session.Request) error {
	q.NoResearch, q.NoFinalPass, q.Experiment = r.noResearch, r.noFinalPass, r.experiment
	if r.noResearch && len(r.guarded) > 0 {
		return exit.Usagef("--research-first and --no-research-first exclude each other: give one of them")
	}
	for _, text := range r.guarded {
		p, err := agent.ParseGuarded(text)
		if err != nil {
			return exit.Usagef("--research-first %v", err)
		}
		q.Guarded = append(q.Guarded, p)
	}
	return nil
}

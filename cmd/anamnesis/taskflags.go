//go:build unix

package main

import (
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/taskdir"
)

// taskFlags are what a new task is told for good: its first operation says so.
type taskFlags struct {
	noResearch  bool
	guarded     []string
	noFinalPass bool
}

func (r *taskFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.noFinalPass, "no-final-pass", false, "do not read the paths the task left for cards at its end")
	cmd.Flags().BoolVar(&r.noResearch, "no-research-first", false, "let calls about new packages, hosts and models run without an investigation")
	cmd.Flags().StringArrayVar(&r.guarded, "research-first", nil, "further calls that need an investigation: a tool, or Bash:COMMAND where * is any text (repeatable)")
}

// set fills in what the flags say.
func (r *taskFlags) set(n *runtime.New) error {
	n.NoResearch, n.NoFinalPass = r.noResearch, r.noFinalPass
	own, err := r.patterns()
	if n.Agent != nil {
		n.Guarded = n.Agent.Guarded
	}
	n.Guarded = slices.Concat(n.Guarded, own)
	return err
}

// patterns reads --research-first.
func (r *taskFlags) patterns() ([]op.CallPattern, error) {
	if r.noResearch && len(r.guarded) > 0 {
		return nil, usageError("--research-first and --no-research-first contradict one another: give one of them")
	}
	var out []op.CallPattern
	for _, text := range r.guarded {
		p, err := agent.ParseGuarded(text)
		if err != nil {
			return nil, usageError("--research-first %v", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// knownModel asks the EAS table of a directory, read when it is first needed.
// Where it cannot be read no model is known.
func knownModel(h taskdir.Home, dir string) func(string) bool {
	table := sync.OnceValue(func() *anamnesis.Table {
		t, err := loadEAS(h.EASOverlay(), easProjectFile(dir))
		if err != nil {
			return nil
		}
		return t
	})
	return func(name string) bool { t := table(); return t != nil && t.Lookup(name).Known }
}

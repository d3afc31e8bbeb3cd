//go:build unix

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/dream"
	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/orchestrator/eas"
	"anamnesis/orchestrator/model"
)

// Limits of the groups that one dream examines.
const (
	defaultDreams = 20
	maxDreams     = 1000
)

type dreamFlags struct {
	number         int
	model, baseURL string
	dry            bool
}

func (a *app) dreamCommand() *cobra.Command {
	var dir string
	var f dreamFlags
	cmd := &cobra.Command{
		Use:   "dream",
		Short: "Let a model propose general cards for lessons that several tasks learned",
		Long: `Find groups of cards of different tasks that state the same lesson about different places, and let
a model word one general card for each. The model may decline a group; statements that the cards do
not support are dropped. A proposal is a draft that names its instances; 'anamnesis kb review' shows
it with them. It replaces no card, and no task is shown it, before you approve it. A group is
proposed only once, whatever you decide. The text of the groups' cards is sent to the model.`,
	}
	cmd.RunE = a.withKB(&dir, existing, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
		if f.number < 1 || f.number > maxDreams {
			return exit.Usagef("-n %d: 1 to %d groups can be looked at", f.number, maxDreams)
		}
		w, err := a.dreamWriter(cmd.Context(), f)
		if err != nil {
			return err
		}
		got, err := w.Run(cmd.Context(), store, f.number, f.dry)
		if err != nil && cmd.Context().Err() != nil {
			return exit.With(exit.Interrupted, errors.New("dream: interrupted; what was proposed so far is stored"))
		}
		if err != nil {
			return err
		}
		a.warnHistory(store)
		return a.show(got, func() { a.out().Dreamed(got) })
	})
	fl := cmd.Flags()
	fl.StringVar(&dir, "kb", "", "the knowledge base's directory (default: the one of the program's state)")
	fl.IntVarP(&f.number, "number", "n", defaultDreams, "how many groups are looked at at most, the most alike first")
	fl.StringVar(&f.model, "model", "", "model that judges the groups and writes the cards")
	fl.StringVar(&f.baseURL, "base-url", "", "address of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	fl.BoolVar(&f.dry, "dry-run", false, "print the proposals and store nothing")
	return a.jsonFlag(cmd, "one JSON object")
}

// dreamWriter returns the writer of the proposals.
func (a *app) dreamWriter(ctx context.Context, f dreamFlags) (dream.Writer, error) {
	if f.model == "" {
		return dream.Writer{}, exit.Usagef("dream: no --model; name the model that words the cards")
	}
	m, err := a.chooseModel(ctx, f.model, f.baseURL)
	if err != nil {
		return dream.Writer{}, err
	}
	return dream.Writer{Model: eas.TextModel{Model: m.Model, Purpose: model.PurposeReflect}, Name: m.Model.Name()}, nil
}

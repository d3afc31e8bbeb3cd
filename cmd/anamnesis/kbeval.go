//go:build unix

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/retrieval/remote"
)

func (a *app) kbEvalCommand() *cobra.Command {
	var data, settings string
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure the search on a labelled set in BEIR's layout",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data == "" {
				return exit.Usagef("name the folder of corpus.jsonl, queries.jsonl and qrels.tsv with --data; see '%s --help'", cmd.CommandPath())
			}
			o := &retrieval.EvalOptions{}
			if settings != "" {
				e, err := remote.Load(settings, a.getenv)
				if err == nil && e == nil {
					err = fmt.Errorf("--embedder %s: no such file", settings)
				}
				if err != nil {
					return exit.Usagef("%w", err)
				}
				o.Embedder = e
			}
			res, err := retrieval.Eval(cmd.Context(), data, o)
			if err != nil {
				return err
			}
			return a.show(res, func() { a.out().Eval(res) })
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "folder with corpus.jsonl, queries.jsonl, qrels.tsv and optionally unrelated.txt, gzipped or not")
	cmd.Flags().StringVar(&settings, "embedder", "", "settings of the embedder to measure, in the format of embedder.yaml (default: the built-in one)")
	return a.jsonFlag(cmd, "one JSON object")
}

//go:build unix

package main

import (
	"fmt"
	"maps"
	"slices"

	view "anamnesis/cmd/internal/term"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/retrieval/remote"

	"github.com/spf13/cobra"
)

func (a *app) kbEvalCommand() *cobra.Command {
	var data, settings string
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure the search on a labelled set in BEIR's layout",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data == "" {
				return usageError("name the folder of corpus.jsonl, queries.jsonl and qrels.tsv with --data; see '%s --help'", cmd.CommandPath())
			}
			o := &retrieval.EvalOptions{}
			if settings != "" {
				e, err := remote.Load(settings, a.getenv)
				if err == nil && e == nil {
					err = fmt.Errorf("--embedder %s: no such file", settings)
				}
				if err != nil {
					return usageError("%w", err)
				}
				o.Embedder = e
			}
			res, err := retrieval.Eval(cmd.Context(), data, o)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(res)
			}
			return a.printEval(res)
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "folder with corpus.jsonl, queries.jsonl, qrels.tsv and where there is one unrelated.txt, gzipped or not")
	cmd.Flags().StringVar(&settings, "embedder", "", "settings of the embedder to measure, of the form of embedder.yaml (default: the built-in one)")
	a.jsonFlag(cmd, "one JSON object")
	return cmd
}

func (a *app) printEval(res retrieval.EvalResult) error {
	line := func(name string, m retrieval.EvalMeans) string {
		return fmt.Sprintf("%-6s nDCG@10 %.4f  recall@10 %.4f  recall@5 as shown %.4f  precision %.4f  %d queries\n", name, m.NDCG, m.Recall, m.Shown, m.Precision, m.Queries)
	}
	out := line("all", res.EvalMeans)
	for _, lang := range slices.Sorted(maps.Keys(res.Languages)) {
		out += line(view.Clean(lang), res.Languages[lang])
	}
	if res.Unrelated > 0 {
		out += fmt.Sprintf("found nothing for %.0f of %d unrelated questions\n", res.Abstained*float64(res.Unrelated), res.Unrelated)
	}
	a.printf("%s%d documents; query p50 %.1f ms, p99 %.1f ms; index built in %.0f ms\n", out, res.Docs, res.P50, res.P99, res.Build)
	return nil
}

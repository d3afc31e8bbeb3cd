//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/shell"
	"anamnesis/cmd/internal/cardfile"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/names"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/session"
)

// kbCommand is the family of verbs over a folder of knowledge cards.
func (a *app) kbCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "kb",
		Short: "Add, find, review and share knowledge cards",
	}
	chooseKB(cmd, &dir)
	cmd.AddCommand(a.kbAddCommand(&dir), a.kbNewCommand(&dir), a.kbSearchCommand(&dir), a.kbListCommand(&dir),
		a.kbRepairsCommand(&dir), a.kbShowCommand(&dir), a.kbEditCommand(&dir), a.kbReviewCommand(&dir),
		a.kbHistoryCommand(&dir), a.kbStatsCommand(&dir), a.kbFactsCommand(), a.kbRebuildCommand(&dir),
		a.kbExportCommand(&dir), a.kbSyncCommand(&dir), a.kbRedactCommand(&dir))
	cmd.AddCommand(a.kbDecideCommands(&dir)...)
	return cmd
}

// chooseKB adds to a command and its subcommands the flags that name a knowledge base; the
// result is in dir when the command runs.
func chooseKB(cmd *cobra.Command, dir *string) {
	var project bool
	cmd.PersistentFlags().BoolVar(&project, "project", false, "the cards of this project: "+knowledgebase.ProjectDir)
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error {
		if !project {
			return nil
		}
		if *dir != "" {
			return exit.Usagef("--kb and --project: name one of them")
		}
		if *dir = projectKB(); *dir == "" {
			*dir = filepath.FromSlash(knowledgebase.ProjectDir)
		}
		return nil
	}
	cmd.PersistentFlags().StringVar(dir, "kb", "", "the knowledge base's directory (default: in the program's state)")
}

// folderUse says whether a verb makes the folder of cards that --kb names.
type folderUse bool

const (
	existing folderUse = false // a missing folder is an error
	created  folderUse = true
)

// openKB opens the knowledge base of the command line and warns of files in it that are not
// readable as cards.
func (a *app) openKB(dir string, use folderUse, o knowledgebase.Options) (*knowledgebase.Store, error) {
	svc, err := a.service()
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); dir != "" && use == existing && (err != nil || !info.IsDir()) {
		return nil, exit.Usagef("--kb %s: not a directory; 'kb add --kb' makes one", dir)
	}
	o.Notice = func(line string) { a.warn(line) }
	if view.IsTerminal(a.stderr) {
		o.Progress = a.line().Cards
	}
	store, err := svc.Cards(dir, o)
	if err != nil {
		return nil, err
	}
	for _, b := range store.Broken() {
		a.notef("not a readable card, not changed: %s", cardfile.Fault(b.Path, b.Err))
	}
	if damage := store.ReviewsDamage(); damage != "" {
		a.notef("%s", damage)
	}
	return store, nil
}

// projectKB returns the card folder of the present project, or "".
func projectKB() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return session.ProjectCards(dir)
}

// gcPercent is GOGC for a process that ends with its command: with the default, a seventh of
// a search among 20,000 cards goes to collecting what is in use.
const gcPercent = 400

// withKB calls do with the opened knowledge base of the command line.
func (a *app) withKB(dir *string, use folderUse, do func(*cobra.Command, []string, *knowledgebase.Store) error) runE {
	return func(cmd *cobra.Command, args []string) error {
		defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
		store, err := a.openKB(*dir, use, knowledgebase.Options{})
		if err != nil {
			return err
		}
		defer store.Close()
		return do(cmd, args, store)
	}
}

// onCard is withKB for a verb on one card, which may be named by the beginning of its id.
func (a *app) onCard(dir *string, do func(*cobra.Command, string, *knowledgebase.Store) error) runE {
	return a.withKB(dir, existing, func(cmd *cobra.Command, args []string, store *knowledgebase.Store) error {
		ids, err := names.Cards(store, args)
		if err != nil {
			return err
		}
		return do(cmd, ids[0], store)
	})
}

func (a *app) desk() cardfile.Desk {
	return cardfile.Desk{
		Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr, Getenv: a.getenv, Terminal: a.interactive(),
	}
}

func (a *app) kbAddCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add FILE…",
		Short: "Add cards from markdown files (- is standard input)",
		Long: `Add cards from markdown files; - is standard input.

A file with invalid front matter is reported with its line and skipped. A card without an id gets one derived from its
text, so adding a file twice adds one card. A file's state counts as yours: read a card of somebody else first.`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.withKB(dir, created, func(cmd *cobra.Command, files []string, store *knowledgebase.Store) error {
			all, failed := a.desk().Add(cmd.Context(), store, files)
			for _, added := range all {
				if err := a.printAdded(added); err != nil {
					return err
				}
			}
			a.warnHistory(store)
			if len(failed) == 0 {
				return nil
			}
			for _, err := range failed[1:] {
				a.notef("%v", err)
			}
			return failed[0]
		}),
	}
	return a.jsonFlag(cmd, "one JSON object a card")
}

func (a *app) printAdded(added cardfile.Added) error {
	return a.show(added, func() { a.out().Added(added) })
}

func (a *app) kbSearchCommand(dir *string) *cobra.Command {
	var q knowledgebase.Query
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find the cards that matter for a question or an error message",
		Args:  cobra.MinimumNArgs(1),
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, args []string, store *knowledgebase.Store) error {
			if q.Text = strings.TrimSpace(strings.Join(args, " ")); q.Text == "" {
				return exit.Usagef("kb search: the query is empty; give a question or an error message")
			}
			if q.K < 1 || q.K > retrieval.MaxK {
				return exit.Usagef("-k %d: 1 to %d cards can be asked for", q.K, retrieval.MaxK)
			}
			layers := knowledgebase.Layers{store}
			if own := projectKB(); *dir == "" && own != "" {
				project, err := a.openKB(own, existing, knowledgebase.Options{})
				if err != nil {
					return err
				}
				defer project.Close()
				layers = knowledgebase.Layers{project, store}
			}
			svc, err := a.service()
			if err != nil {
				return err
			}
			q.Trust = cardfile.TrustForUser(svc.Home, store)
			hits, err := layers.Search(cmd.Context(), q)
			if err != nil {
				return err
			}
			if err := store.VectorError(); err != nil {
				a.notef("searched without vectors: %v", err)
			}
			// A second search counts the drafts that this query would find if they were reviewed.
			kept := q
			kept.Withheld = true
			withheld, err := layers.Search(cmd.Context(), kept)
			if err != nil {
				return err
			}
			found := show.Found{Query: q.Text, Hits: hits, Withheld: len(withheld)}
			if len(hits) == 0 {
				if found.Weak, err = weakMatches(cmd.Context(), layers, q); err != nil {
					return err
				}
			}
			return a.show(found, func() {
				again := cmd.CommandPath()
				if *dir != "" {
					again += " --kb " + shell.QuoteIfNeeded(*dir)
				}
				embedder, _ := svc.Embedder()
				if embedder == nil && len(hits)+len(found.Weak) == 0 && len(store.List()) > 0 {
					found.Configure = svc.Home.Embedder()
				}
				a.out().Found(found, q.Withheld, again)
			})
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().IntVarP(&q.K, "number", "k", retrieval.DefaultK, "how many cards at most")
	cmd.Flags().BoolVar(&q.Withheld, "withheld", false, "search only drafts that are withheld until reviewed")
	return cmd
}

// maxWeak is how many cards are shown that say too little of a query.
const maxWeak = 3

// weakMatches returns the cards that share words with a query and say too little of it for a task.
func weakMatches(ctx context.Context, layers knowledgebase.Layers, q knowledgebase.Query) ([]recalled.Hit, error) {
	q.K, q.MinEvidence = maxWeak, -1
	hits, err := layers.Search(ctx, q)
	return slices.DeleteFunc(hits, func(h recalled.Hit) bool { return h.Evidence.Matched == 0 }), err
}

func (a *app) kbRebuildCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Build the index again from the cards, and the facts from the tasks",
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
			begin := time.Now()
			done := a.line().Working("reading the cards")
			err := store.Rebuild(cmd.Context())
			if done(); err != nil {
				return err
			}
			if err := store.VectorError(); err != nil {
				a.notef("rebuilt without vectors: %v", err)
			}
			svc, err := a.service()
			if err != nil {
				return err
			}
			tasks, err := memory.RebuildFacts(svc.Home)
			if err != nil {
				return err
			}
			took, cards, broken := time.Since(begin), len(store.List()), cardfile.Broken(store)
			row := map[string]any{"cards": cards, "broken": broken, "tasks": tasks, "build_ms": took.Milliseconds()}
			return a.show(row, func() {
				a.printf("%d cards indexed, %d files not readable, %d tasks counted, %v\n",
					cards, len(broken), tasks, took.Round(time.Millisecond))
			})
		}),
	}
	return a.jsonFlag(cmd, "one JSON object")
}

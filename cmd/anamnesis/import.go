//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
)

type importFlags struct{ all, yes, dryRun bool }

func (a *app) importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [AGENT] [PATH…]",
		Short: "Read past sessions of Claude Code, Codex, opencode, Gemini CLI and Kimi Code",
		Long: `Import past sessions of other coding agents. Each becomes a task that can be read, without snapshots,
and each command that failed and later succeeded is listed by 'anamnesis kb repairs'. AGENT is claude-code, codex,
opencode, gemini or kimi (default: all). Without PATH, sessions that began in this directory are read; --all reads
those of every directory. PATH is a session file or a folder of such files; for opencode, the output of 'opencode
export ID'. Counts are shown first, and nothing is written before you agree (--yes). --dry-run lists the files.
Importing again adds only new content. Secrets are redacted before anything is written.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.importSessions(cmd.Context(), args, f) },
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "the sessions of every directory")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "list the session files with new steps, and import nothing")
	return a.jsonFlag(cmd, "one JSON object")
}

func (a *app) importSessions(ctx context.Context, args []string, f importFlags) (err error) {
	svc, err := a.service()
	if err != nil {
		return err
	}
	src, err := beside.FindSessions(args, f.all, a.getenv)
	if err != nil {
		return err
	}
	im := beside.NewImporter(svc)
	line := view.NewProgress(a.stderr)
	batch, err := im.Examine(ctx, src, line.Sessions)
	line.Clear()
	if err != nil {
		return err
	}
	report := beside.Report{Sessions: []beside.Imported{}, Skipped: batch.Skipped, Damaged: batch.Damaged}
	a.notef("%s", batch)
	for _, damage := range batch.Damaged {
		a.notef("%s", damage)
	}
	// A named file that was not read fails the command, once everything else is done.
	if len(batch.Todo) == 0 {
		return errors.Join(a.show(report, func() { a.println("nothing to import") }), a.notImported(src, batch.Skipped))
	}
	if f.dryRun {
		paths := make([]string, len(batch.Todo))
		for i, file := range batch.Todo {
			paths[i] = file.Path
		}
		return errors.Join(a.show(map[string][]string{"files": paths, "skipped": batch.Skipped,
			"damaged": batch.Damaged}, func() { a.println(strings.Join(paths, "\n")) }),
			a.notImported(src, batch.Skipped))
	}
	if !f.yes {
		unasked := exit.Usagef("nothing was imported: add --yes to import without being asked")
		if err := a.tty().Agree(ctx, "import them? [y/N] ", unasked, "nothing was imported"); err != nil {
			return err
		}
	}
	return a.importBatch(ctx, im, src, batch)
}

func (a *app) importBatch(ctx context.Context, im *beside.Importer, src beside.Sessions, batch beside.Batch) error {
	line := view.NewProgress(a.stderr)
	report, err := im.ImportAll(ctx, batch, line.Sessions)
	line.Clear()
	if err != nil {
		return err
	}
	err = a.show(report, func() {
		a.printf("%s; 'anamnesis tasks --all' lists the sessions, 'anamnesis kb repairs' the repairs, "+
			"'anamnesis kb facts' what they show of a repository\n", report)
	})
	return errors.Join(err, a.notImported(src, report.Skipped))
}

// offerImport asks whether past sessions are to be imported. Where it cannot ask it prints the command for that.
func (a *app) offerImport(ctx context.Context, svc *session.Service, src beside.Sessions, command string,
	yes bool) error {
	im, line := beside.NewImporter(svc), view.NewProgress(a.stderr)
	batch, err := im.Examine(ctx, src, line.Sessions)
	line.Clear()
	switch n := quote.Number(len(batch.Todo), "past session"); {
	case err != nil || len(batch.Todo) == 0:
		return err
	case yes || !a.tty().Interactive():
		a.printf("%s can be imported: '%s'\n", n, command)
		return nil
	default:
		yes, err = a.tty().Offer(ctx, "import "+n+"?")
		src.Named = nil // a file that cannot be read is named, and no failure of the installation
	}
	if err != nil || !yes {
		return err
	}
	return a.importBatch(ctx, im, src, batch)
}

// notImported names the files that were not read, and returns an error if files were named.
func (a *app) notImported(src beside.Sessions, files []string) error {
	for _, why := range files {
		a.notef("not imported: %s", why)
	}
	if len(src.Named) > 0 && len(files) > 0 {
		return fmt.Errorf("%s not imported, as said above", quote.Number(len(files), "file"))
	}
	return nil
}

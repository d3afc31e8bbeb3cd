//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

// importFile is a file that an import takes in.
type importFile struct {
	path  string
	agent sessions.Agent
	dir   string
	steps int // new ones
}

// importReport is what `import --json` prints.
type importReport struct {
	Sessions []beside.Imported `json:"sessions"`
	Skipped  []string          `json:"skipped"` // files that were not read, and why
}

type importFlags struct{ all, yes bool }

func (a *app) importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [AGENT] [PATH…]",
		Short: "Read past sessions of Claude Code, Codex, opencode, Gemini CLI and Kimi Code",
		Long: `Read past sessions of other coding agents: each becomes a task that can be read, without snapshots, and each command that
failed and later succeeded a draft card. AGENT is claude-code, codex, opencode, gemini or kimi (default: all). Without PATH the
sessions that began in this directory are read, with --all those of every directory. PATH is a session file or a folder of such
files; of opencode, what 'opencode export ID' writes. The counts are shown first, and nothing is written until you agree
(--yes). Importing again adds only what is new. Secrets are redacted before anything is written.`,
		Args: usageArgs(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error { return a.importSessions(cmd.Context(), args, f) },
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "the sessions of every directory")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	a.jsonFlag(cmd, "one JSON object")
	return cmd
}

func (a *app) importSessions(ctx context.Context, args []string, f importFlags) (err error) {
	svc, err := a.service()
	if err != nil {
		return err
	}
	paths, named, here, err := a.sessionFiles(args, f)
	if err != nil {
		return err
	}
	im, err := beside.NewImporter(svc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, im.Close()) }()
	report := importReport{Sessions: []beside.Imported{}, Skipped: []string{}}
	todo, known, err := a.examine(ctx, im, paths, named, here, &report)
	if err != nil {
		return err
	}
	a.notef("%s", importCounts(todo, known, len(report.Skipped)))
	if len(todo) == 0 {
		return a.show(report, func() { a.println("nothing to import") })
	}
	if !f.yes {
		if !a.interactive() {
			return usageError("nothing was imported: add --yes to import without being asked")
		}
		answer, err := a.askLine(ctx, "import them? [y/N] ")
		if err != nil || !isYes(answer) {
			return cmp.Or(err, error(&exitError{exitRefused, errors.New("nothing was imported")}))
		}
	}
	line := view.NewProgress(a.stderr)
	steps, cards := 0, 0
	for i, file := range todo {
		line.Sessions(i, len(todo))
		s, err := sessions.Read(file.path)
		if err != nil {
			return err
		}
		done, err := im.Import(ctx, s, file.path)
		if errors.Is(err, beside.ErrChanged) {
			report.Skipped = append(report.Skipped, err.Error())
			continue
		}
		if err != nil {
			line.Clear()
			return fmt.Errorf("import stopped after %d of %d sessions, which stay; run it again to continue: %w", i, len(todo), err)
		}
		report.Sessions = append(report.Sessions, done)
		steps, cards = steps+done.Steps, cards+done.Cards
	}
	line.Sessions(len(todo), len(todo))
	for _, why := range report.Skipped {
		a.notef("not imported: %s", why)
	}
	return a.show(report, func() {
		a.printf("%d steps of %d sessions imported, %d cards; 'anamnesis tasks --all' lists the sessions, 'anamnesis kb review' shows the drafts\n", steps, len(report.Sessions), cards)
	})
}

// sessionFiles lists the files that the arguments name, themselves or by their
// folder. here is the directory in which a session must have begun; empty: any.
func (a *app) sessionFiles(args []string, f importFlags) (paths, named []string, here string, err error) {
	agents := sessions.Agents()
	if len(args) > 0 && slices.Contains(agents, sessions.Agent(args[0])) {
		agents, args = []sessions.Agent{sessions.Agent(args[0])}, args[1:]
	}
	if len(args) > 0 && f.all {
		return nil, nil, "", usageError("--all and PATH: name one of them")
	}
	if len(args) == 0 {
		if len(agents) == 1 && agents[0] == sessions.OpenCode {
			return nil, nil, "", usageError("opencode keeps its sessions in a database: write one to a file with 'opencode export ID > FILE' and name the file")
		}
		for _, agent := range agents {
			found, err := sessions.Find(agent, a.getenv("HOME"), a.getenv)
			if err != nil {
				return nil, nil, "", err
			}
			paths = append(paths, found...)
		}
		if !f.all {
			here, err = session.RealDir(".")
		}
		return paths, paths, here, err
	}
	for _, arg := range args {
		arg, err := filepath.Abs(arg)
		if err != nil {
			return nil, nil, "", usageError("%v", err)
		}
		named = append(named, arg)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			name := strings.TrimSuffix(path, ".gz")
			if err == nil && !d.IsDir() && (path == arg || strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".json")) {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			return nil, nil, "", usageError("%v", err)
		}
	}
	return paths, named, "", nil
}

// examine reads the files, and returns those that hold something new and how many
// sessions hold nothing new. What cannot be read goes into the report.
func (a *app) examine(ctx context.Context, im *beside.Importer, paths, named []string, here string, report *importReport) (todo []importFile, known int, err error) {
	line := view.NewProgress(a.stderr)
	defer line.Clear()
	for i, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		line.Sessions(i, len(paths))
		s, err := sessions.Read(path)
		if errors.Is(err, sessions.ErrLeftOut) || errors.Is(err, sessions.ErrNotSession) && !slices.Contains(named, path) {
			continue // no work in it, or another file in a folder
		}
		if err != nil {
			report.Skipped = append(report.Skipped, err.Error())
			continue
		}
		if here != "" && s.Dir != here && !strings.HasPrefix(s.Dir, here+string(filepath.Separator)) {
			continue
		}
		n, err := im.New(s)
		if err != nil {
			return nil, 0, err
		}
		if n == 0 {
			known++
			continue
		}
		todo = append(todo, importFile{path, s.Agent, s.Dir, n})
	}
	return todo, known, nil
}

// importCounts says what an import would read.
func importCounts(todo []importFile, known, skipped int) string {
	var parts []string
	for _, agent := range sessions.Agents() {
		n, steps, dirs := 0, 0, map[string]bool{}
		for _, f := range todo {
			if f.agent == agent {
				n, steps, dirs[f.dir] = n+1, steps+f.steps, true
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d sessions in %d directories, %d new steps", agent, n, len(dirs), steps))
		}
	}
	parts = append(parts, fmt.Sprintf("imported before: %d", known))
	if skipped > 0 {
		parts = append(parts, fmt.Sprintf("cannot be read: %d", skipped))
	}
	return strings.Join(parts, "; ")
}

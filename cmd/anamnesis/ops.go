//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/stream"
	"anamnesis/opstream"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// opsDefaultWait is how long `ops append` waits for another writer.
const opsDefaultWait = 10 * time.Second

// opsCommand is the plumbing of operation streams, for hooks and scripts.
func (a *app) opsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ops",
		Short: "Append to, read, verify and follow an operation stream",
	}
	cmd.AddCommand(a.opsAppendCommand(), a.opsCatCommand(), a.opsVerifyCommand(),
		a.opsFollowCommand(), a.opsExportCommand())
	return cmd
}

// opsVerb makes cmd a verb over the stream that --dir names.
func (a *app) opsVerb(cmd *cobra.Command, do func(ctx context.Context, dir string) error) *cobra.Command {
	var dir string
	cmd.Flags().StringVar(&dir, "dir", "", "directory of the stream (required)")
	a.jsonFlag(cmd, "one JSON object a line")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if dir == "" {
			return exit.Usagef("name the stream's directory with --dir; see '%s --help'", cmd.CommandPath())
		}
		return exit.Stream(do(cmd.Context(), dir))
	}
	return cmd
}

func (a *app) opsAppendCommand() *cobra.Command {
	var in stream.Appender
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "append --dir DIR --kind KIND",
		Short: "Append one operation for each JSON object on a line of standard input",
		Long: `Append one operation for each JSON object on a line of standard input, and print each one's
number once it is durable. A line that is not a JSON object ends the command; operations whose
number was printed are kept. Secrets are replaced by markers before anything is written, with
the key in DIR/vault.jsonl, which is created if it is missing. A task's stream accepts only
kinds of other programs, such as x.note.`,
	}
	cmd.Flags().StringVar(&in.Kind, "kind", "", "kind of the operations (required)")
	cmd.Flags().IntVar(&in.Step, "step", 0, "step the operations belong to")
	cmd.Flags().DurationVar(&wait, "wait", opsDefaultWait, "how long to wait for another writer")
	return a.opsVerb(cmd, func(ctx context.Context, dir string) error {
		if in.Kind == "" {
			return exit.Usagef("name the operations' kind with --kind; see 'anamnesis ops append --help'")
		}
		if wait < 0 {
			return exit.Usagef("--wait %s is negative", wait)
		}
		return a.opsAppend(ctx, dir, wait, in)
	})
}

func (a *app) opsAppend(ctx context.Context, dir string, wait time.Duration, in stream.Appender) error {
	in.Secrets = func(owner taskdir.Owner) []redact.Secret {
		if unset := session.Unset(a.getenv, owner.Task, owner.Redact); unset != "" {
			a.warn(unset)
		}
		return a.streamSecrets(owner)
	}
	in.Recovered = func(r *opstream.Recovery) {
		a.notef("the end of %s was torn at byte %d: %d bytes were set aside in %s", r.File,
			r.Offset, r.Bytes, r.SavedAs)
	}
	in.Durable = func(seq uint64) error {
		return errors.Join(a.show(map[string]uint64{"seq": seq}, func() { a.println(seq) }), a.printer.Failed)
	}
	return in.Append(ctx, dir, wait, a.stdin)
}

func (a *app) opsCatCommand() *cobra.Command {
	var pick stream.Filter
	var pattern string
	var step int
	var after uint64
	cmd := &cobra.Command{
		Use:   "cat --dir DIR",
		Short: "Print the operations of a stream, all or those that fit every filter",
	}
	fl := cmd.Flags()
	fl.Uint64Var(&after, "after", 0, "print only operations after this number")
	fl.StringVar(&pick.Kind, "kind", "", "only operations of this kind")
	fl.IntVar(&step, "step", 0, "only operations of this step")
	fl.StringVar(&pick.Tool, "tool", "", "only operations about calls of this tool")
	fl.StringVar(&pattern, "grep", "", "only operations whose body, as it is printed, matches this regular expression (RE2)")
	return a.opsVerb(cmd, func(_ context.Context, dir string) (err error) {
		if fl.Changed("step") {
			if pick.Step = &step; step < 0 {
				return exit.Usagef("--step %d: want the number of a step, from 0", step)
			}
		}
		if pattern != "" {
			if pick.Grep, err = regexp.Compile(pattern); err != nil {
				return exit.Usagef("--grep: %v", err)
			}
		}
		torn, err := stream.Cat(a.stdout, dir, after, pick, a.json)
		a.tellTorn(torn)
		return err
	})
}

// tellTorn reports that a reader stopped before a stream's end.
func (a *app) tellTorn(torn *opstream.Torn) {
	if torn != nil {
		a.notef("the end is torn, or being written: %s", torn)
	}
}

func (a *app) opsFollowCommand() *cobra.Command {
	var after uint64
	cmd := &cobra.Command{
		Use:   "follow --dir DIR",
		Short: "Print the operations of a stream, and new ones as they come",
		Long: `Print the operations of a stream, and new ones as they are written, until interrupted.
Operations that are not known to be durable yet are marked.`,
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "print only operations after this number")
	return a.opsVerb(cmd, func(ctx context.Context, dir string) error {
		r, err := opstream.OpenReader(dir, nil)
		if err != nil {
			return err
		}
		defer r.Close()
		for rec, err := range r.Follow(ctx, after) {
			if err != nil {
				return err
			}
			if err := stream.Print(a.stdout, rec, a.json); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *app) opsVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify --dir DIR",
		Short: "Verify every line and blob of a stream",
		Long: `Verify every line and blob of a stream, and print one line for each finding. The exit code is 4
if acknowledged operations are damaged, and 1 if only the end is torn, which the next writer
sets aside.`,
	}
	return a.opsVerb(cmd, func(ctx context.Context, dir string) error {
		r, err := opstream.Verify(ctx, dir)
		if err != nil {
			return err
		}
		if err := a.show(r, func() { a.out().StreamReport(r) }); err != nil {
			return err
		}
		switch {
		case r.Has(opstream.SeverityCorrupt):
			return exit.With(exit.Corrupt, fmt.Errorf(
				"%s is corrupt: acknowledged operations are damaged; 'anamnesis ops cat' prints the intact part", dir))
		case r.Has(opstream.SeverityTorn):
			return exit.With(exit.Failed, fmt.Errorf(
				"the end of %s is torn: the next writer sets the damaged bytes aside", dir))
		}
		return nil
	})
}

func (a *app) opsExportCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "export --dir DIR",
		Short: "Export a stream in another format, secrets redacted",
		Long: `Export a stream to standard output. Formats: jsonl has one operation a line, blobs resolved.
openai is the chat that a task's model would be sent next, as OpenAI chat completion messages.
markdown is for reading. Secrets are redacted again, with a key of this export's own.`,
	}
	cmd.Flags().StringVar(&format, "format", "jsonl", "jsonl, openai or markdown")
	return a.opsVerb(cmd, func(_ context.Context, dir string) error {
		if a.json && format == "markdown" {
			return exit.Usagef("--json and --format markdown contradict each other")
		}
		owner, _ := taskdir.StreamOwner(dir) // reading the stream reports what is wrong with it
		torn, err := stream.Export(a.stdout, dir, format, a.streamSecrets(owner))
		a.tellTorn(torn)
		return err
	})
}

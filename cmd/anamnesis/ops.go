//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"anamnesis/opstream"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"

	"github.com/spf13/cobra"
)

const (
	// opsDefaultWait is how long `ops append` waits for another writer.
	opsDefaultWait = 10 * time.Second
	// opsBatchLines is how many lines that are there already share one write.
	opsBatchLines = 256
	// opsReadBytes is the buffer of standard input.
	opsReadBytes = 1 << 20
	// opsTimeLayout shows a record's time as its line holds it.
	opsTimeLayout = "2006-01-02T15:04:05.000000Z"
)

// opsCommand is the plumbing of operation streams, for hooks and scripts.
func (a *app) opsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ops",
		Short: "Append to, read, verify and follow an operation stream",
	}
	cmd.AddCommand(a.opsAppendCommand(), a.opsCatCommand(), a.opsVerifyCommand(), a.opsFollowCommand(), a.opsExportCommand())
	return cmd
}

// opsFlags adds the flags all verbs of the family share.
func (a *app) opsFlags(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "directory of the stream (required)")
	a.jsonFlag(cmd, "one JSON object a line")
}

// opsDir checks the one flag every verb needs.
func opsDir(cmd *cobra.Command, dir string) error {
	if dir == "" {
		return usageError("name the stream's directory with --dir; see '%s --help'", cmd.CommandPath())
	}
	return nil
}

// opsError adds the remedy to the errors of a stream that have one.
func opsError(err error) error {
	var code int
	var remedy string
	switch {
	case err == nil:
		return nil
	case errors.Is(err, opstream.ErrLocked):
		code, remedy = exitRefused, "wait for it to end, or for longer with --wait"
	case errors.Is(err, opstream.ErrCorrupt):
		code, remedy = exitCorrupt, "'anamnesis ops verify' lists the damage, 'anamnesis ops cat' gives what is whole; nothing was changed"
	case errors.Is(err, opstream.ErrNotFound):
		code, remedy = exitUsage, "check --dir; 'anamnesis ops append' makes a new stream"
	case errors.Is(err, opstream.ErrVersion):
		code, remedy = exitUsage, "use the program that wrote it, or a newer one"
	default:
		return err
	}
	return &exitError{code, fmt.Errorf("%w: %s", err, remedy)}
}

type opsAppendFlags struct {
	dir, kind string
	step      int
	wait      time.Duration
}

func (a *app) opsAppendCommand() *cobra.Command {
	var f opsAppendFlags
	cmd := &cobra.Command{
		Use:   "append --dir DIR --kind KIND",
		Short: "Append one operation for each JSON object on a line of standard input",
		Long: "Append one operation for each JSON object on a line of standard input, and print\n" +
			"each one's number once it is durable. A line that is no JSON object ends the\n" +
			"command; what was printed before it stays. Secrets become markers before anything\n" +
			"is written, by the key in DIR/vault.jsonl, which is made where there is none.\n" +
			"A task's stream takes kinds of other programs only, such as x.note: its own are\n" +
			"what the task is made of.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opsDir(cmd, f.dir); err != nil {
				return err
			}
			if f.kind == "" {
				return usageError("name the operations' kind with --kind; see '%s --help'", cmd.CommandPath())
			}
			if f.wait < 0 {
				return usageError("--wait %s is negative", f.wait)
			}
			return opsError(a.opsAppend(cmd.Context(), f))
		},
	}
	a.opsFlags(cmd, &f.dir)
	cmd.Flags().StringVar(&f.kind, "kind", "", "kind of the operations (required)")
	cmd.Flags().IntVar(&f.step, "step", 0, "step the operations belong to")
	cmd.Flags().DurationVar(&f.wait, "wait", opsDefaultWait, "how long to wait for another writer")
	return cmd
}

func (a *app) opsAppend(ctx context.Context, f opsAppendFlags) (err error) {
	log, err := opstream.Open(f.dir, &opstream.Options{Wait: f.wait})
	if err != nil {
		return err
	}
	defer func() { err = session.JoinClose(err, log.Close()) }()
	owner, err := taskdir.StreamOwner(f.dir)
	if err != nil {
		return err
	}
	if err := mayAppend(f.kind, f.dir, owner); err != nil {
		return err
	}
	if unset := session.Unset(a.getenv, owner.Task, owner.Redact); unset != "" {
		a.warn(unset)
	}
	secrets, err := journal.OpenScrubber(f.dir, a.streamSecrets(owner))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, secrets.Close()) }()
	if r := log.Recovered(); r != nil {
		a.notef("the end of %s was torn at byte %d: %d bytes were set aside in %s",
			r.File, r.Offset, r.Bytes, r.SavedAs)
	}
	in := bufio.NewReaderSize(a.stdin, opsReadBytes)
	for number := 1; ; {
		bodies, read, end := readBodies(in)
		bodies, unfit := fitting(f.kind, bodies, number)
		for i := range bodies {
			if bodies[i].body, err = secrets.Body(bodies[i].body); err != nil {
				return err
			}
		}
		if err := a.appendBodies(ctx, log, f, bodies, number); err != nil {
			return err
		}
		if unfit != nil {
			return unfit
		}
		number += read
		switch {
		case end == io.EOF:
			return nil
		case errors.Is(end, opstream.ErrTooLarge):
			return usageError("line %d of standard input: %w", number, end)
		case end != nil:
			return fmt.Errorf("read standard input: %w", end)
		}
	}
}

// numberedBody is one body and its line, counted from 0 within a batch.
type numberedBody struct {
	line int
	body []byte
}

// readBodies reads one line, and those that are buffered already. It gives
// how many lines were read whole, blank ones included.
func readBodies(in *bufio.Reader) (bodies []numberedBody, read int, err error) {
	for size := 0; read == 0 || (read < opsBatchLines && size < opsReadBytes && lineBuffered(in)); {
		line, err := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 && !errors.Is(err, opstream.ErrTooLarge) {
			bodies = append(bodies, numberedBody{read, line})
			size += len(line)
		}
		if err != nil {
			return bodies, read, err
		}
		read++
	}
	return bodies, read, nil
}

// lineBuffered reports whether a whole line can be read without waiting.
func lineBuffered(in *bufio.Reader) bool {
	data, _ := in.Peek(in.Buffered())
	return bytes.IndexByte(data, '\n') >= 0
}

// readLine reads a line of at most opstream.MaxBodyBytes, without its newline.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > opstream.MaxBodyBytes {
			return nil, fmt.Errorf("%w: more than %d bytes", opstream.ErrTooLarge, opstream.MaxBodyBytes)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}

// appendBodies appends a batch in one write; when one of its bodies cannot be
// appended, one by one up to that. first is the number of the batch's first
// line.
func (a *app) appendBodies(ctx context.Context, log *opstream.Log, f opsAppendFlags, bodies []numberedBody, first int) error {
	if len(bodies) == 0 {
		return nil
	}
	entries := make([]opstream.Entry, len(bodies))
	for i, b := range bodies {
		entries[i] = opstream.Entry{Kind: f.kind, Step: f.step, Body: b.body}
	}
	seq, err := log.Append(ctx, entries...)
	if err == nil {
		return a.printSeqs(seq, len(entries))
	}
	bad := func(err error) bool {
		return errors.Is(err, opstream.ErrInvalid) || errors.Is(err, opstream.ErrTooLarge)
	}
	if !bad(err) {
		return err
	}
	for i, e := range entries {
		seq, err := log.Append(ctx, e)
		if bad(err) {
			return usageError("line %d of standard input: %w", first+bodies[i].line, err)
		}
		if err != nil {
			return err
		}
		if err := a.printSeqs(seq, 1); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printSeqs(first uint64, n int) error {
	for seq := first; seq < first+uint64(n); seq++ {
		if err := a.show(map[string]uint64{"seq": seq}, func() { a.println(seq) }); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return a.unprinted
}

type opsReadFlags struct {
	dir   string
	after uint64
}

func (a *app) opsCatCommand() *cobra.Command {
	var f opsReadFlags
	var pick opsFilter
	cmd := &cobra.Command{
		Use:   "cat --dir DIR",
		Short: "Print the operations of a stream, all or those that fit every filter",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opsDir(cmd, f.dir); err != nil {
				return err
			}
			if err := pick.compile(cmd); err != nil {
				return err
			}
			return opsError(a.opsCat(f, pick))
		},
	}
	a.opsFlags(cmd, &f.dir)
	cmd.Flags().Uint64Var(&f.after, "after", 0, "print only operations after this number")
	pick.register(cmd)
	return cmd
}

func (a *app) opsCat(f opsReadFlags, pick opsFilter) error {
	r, err := opstream.OpenReader(f.dir, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	out := bufio.NewWriter(a.stdout)
	var damage []error
	for rec, err := range r.Since(f.after) {
		if err != nil {
			// Of one record's blob alone, or the end of what can be read.
			damage = append(damage, err)
			continue
		}
		if !pick.fits(rec) {
			continue
		}
		if err := printRecord(out, rec, a.json); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if len(damage) == 0 {
		a.tellTorn(r)
	}
	return oneLineOf(damage)
}

// tellTorn says that a reader stopped before a stream's end.
func (a *app) tellTorn(r *opstream.Reader) {
	if torn := r.Torn(); torn != nil {
		a.notef("the end is torn, or being written: %s", torn)
	}
}

func (a *app) opsFollowCommand() *cobra.Command {
	var f opsReadFlags
	cmd := &cobra.Command{
		Use:   "follow --dir DIR",
		Short: "Print the operations of a stream, and new ones as they come",
		Long: "Print the operations of a stream, and new ones as they come, until interrupted.\n" +
			"The newest are not known to be durable yet and are marked so.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opsDir(cmd, f.dir); err != nil {
				return err
			}
			return opsError(a.opsFollow(cmd.Context(), f))
		},
	}
	a.opsFlags(cmd, &f.dir)
	cmd.Flags().Uint64Var(&f.after, "after", 0, "print only operations after this number")
	return cmd
}

func (a *app) opsFollow(ctx context.Context, f opsReadFlags) error {
	r, err := opstream.OpenReader(f.dir, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	for rec, err := range r.Follow(ctx, f.after) {
		if err != nil {
			return err
		}
		if err := printRecord(a.stdout, rec, a.json); err != nil {
			return err
		}
	}
	return nil
}

// opsRecord is a record as `--json` prints it.
type opsRecord struct {
	Seq     uint64          `json:"seq"`
	Time    string          `json:"ts"`
	Kind    string          `json:"kind"`
	Step    int             `json:"step"`
	Tok     int             `json:"tok"`
	Durable bool            `json:"durable"`
	Body    json.RawMessage `json:"body"`
}

// printRecord writes one line, in one write.
func printRecord(w io.Writer, rec opstream.Record, asJSON bool) error {
	ts := rec.Time.UTC().Format(opsTimeLayout)
	var err error
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		err = enc.Encode(opsRecord{rec.Seq, ts, rec.Kind, rec.Step, rec.Tok, rec.Durable, rec.Body})
	} else {
		mark := ""
		if !rec.Durable {
			mark = " (not known durable yet)"
		}
		_, err = fmt.Fprintf(w, "%d %s %s step %d tok %d%s %s\n", rec.Seq, ts, rec.Kind, rec.Step, rec.Tok, mark, visible(rec.Body))
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// visible gives JSON text in which nothing can act on a terminal: controls,
// line and paragraph separators and direction marks are written as \u escapes,
// bytes that are not UTF-8 as U+FFFD.
func visible(body []byte) string {
	var out bytes.Buffer
	for _, r := range string(body) {
		switch {
		case r < 0x20, r >= 0x7f && r <= 0x9f, r == 0x061c, r >= 0x200e && r <= 0x200f,
			r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			fmt.Fprintf(&out, `\u%04x`, r)
		case r == utf8.RuneError:
			out.WriteRune(utf8.RuneError)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func (a *app) opsVerifyCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "verify --dir DIR",
		Short: "Verify every line and blob of a stream",
		Long: "Verify every line and blob of a stream: one line for each finding. The exit code\n" +
			"is 4 when acknowledged operations are damaged, and 1 when only the end is torn,\n" +
			"which the next writer sets aside.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opsDir(cmd, dir); err != nil {
				return err
			}
			report, err := opstream.Verify(cmd.Context(), dir)
			if err != nil {
				return opsError(err)
			}
			return a.printReport(dir, report)
		},
	}
	a.opsFlags(cmd, &dir)
	return cmd
}

func (a *app) printReport(dir string, r opstream.Report) error {
	if a.json {
		if err := a.printJSON(r); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	} else {
		var out bytes.Buffer
		for _, f := range r.Findings {
			fmt.Fprintln(&out, f)
		}
		if r.Omitted > 0 {
			fmt.Fprintf(&out, "and %d more findings\n", r.Omitted)
		}
		seal := "not sealed"
		if r.Sealed {
			seal = "sealed"
		}
		fmt.Fprintf(&out, "%d records, segments %d, %d bytes, blobs %d, last seq %d hash %s, %s\n",
			r.Records, r.Segments, r.Bytes, r.Blobs, r.LastSeq, r.LastHash, seal)
		if _, err := out.WriteTo(a.stdout); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	switch {
	case r.Has(opstream.SeverityCorrupt):
		return &exitError{exitCorrupt, fmt.Errorf("%s is corrupt: acknowledged operations are damaged; 'anamnesis ops cat' gives what is whole", dir)}
	case r.Has(opstream.SeverityTorn):
		return &exitError{exitFailed, fmt.Errorf("the end of %s is torn: the next writer sets the damaged bytes aside", dir)}
	}
	return nil
}

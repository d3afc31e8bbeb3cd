//go:build unix

// Package console is the terminal of a command that runs once: it asks the user, announces a
// task and shows its progress, and turns its end into an exit code.
package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
)

// Console is the process's standard streams. Its methods must not be called concurrently.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string

	lines *bufio.Reader // over In, from the first question on
	keys  *view.Lines   // in place of lines, once Keys was called
}

func (c *Console) Interactive() bool { return view.IsTerminal(c.In) && view.IsTerminal(c.Err) }

// Drawable reports whether a user is at a terminal that can be drawn on.
func (c *Console) Drawable() bool {
	name := c.Getenv("TERM")
	return c.Interactive() && c.Getenv("ANAMNESIS_PLAIN") == "" && name != "" &&
		name != "dumb" && view.IsTerminal(c.Out)
}

// Styled returns standard output with colours, if the terminal shows them and NO_COLOR is not
// set.
func (c *Console) Styled() io.Writer { return colorprofile.NewWriter(c.Out, os.Environ()) }

// Width returns the terminal's width, or one that fits most screens and logs.
func (c *Console) Width() int {
	for _, w := range []io.Writer{c.Out, c.Err} {
		if f, ok := w.(*os.File); ok {
			if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
				return cols
			}
		}
	}
	return 120
}

// Ask asks the user for a line. The end of input is an empty line.
func (c *Console) Ask(ctx context.Context, question string) (string, error) {
	if c.keys != nil {
		text, ok := c.keys.Line(ctx, question)
		if !ok && ctx.Err() != nil {
			return "", exit.With(exit.Interrupted, errors.New("interrupted"))
		}
		return text, nil
	}
	fmt.Fprint(c.Err, question)
	got := make(chan string, 1)
	go func() { // ends with the line, or with the process: the read of a terminal cannot be canceled
		if c.lines == nil {
			c.lines = bufio.NewReader(c.In)
		}
		line, _ := c.lines.ReadString('\n')
		got <- line
	}()
	select {
	case <-ctx.Done():
		return "", exit.With(exit.Interrupted, errors.New("interrupted"))
	case line := <-got:
		return strings.TrimSpace(line), nil
	}
}

func Yes(answer string) bool {
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
}

// Offer asks the user a question to which an empty answer is yes. Without a terminal the answer is no.
func (c *Console) Offer(ctx context.Context, question string) (bool, error) {
	if !c.Interactive() {
		return false, nil
	}
	answer, err := c.Ask(ctx, question+" [Y/n] ")
	return err == nil && (answer == "" || Yes(answer)), err
}

// Agree asks the user a question. Without a terminal it returns unasked; any answer but yes is
// an error that names what was refused.
func (c *Console) Agree(ctx context.Context, question string, unasked error, refused string) error {
	if !c.Interactive() {
		return unasked
	}
	answer, err := c.Ask(ctx, question)
	if err == nil && !Yes(answer) {
		err = exit.With(exit.Refused, errors.New(refused))
	}
	return err
}

// Confirm asks the user to approve what was shown, unless yes is set. Any other answer is an
// error; without a terminal the error names the flag.
func (c *Console) Confirm(ctx context.Context, what, question string, yes bool) error {
	if yes {
		return nil
	}
	refused := what + ": not approved"
	unasked := fmt.Errorf("there is no terminal to ask at; --yes approves what is shown\n%s", refused)
	return c.Agree(ctx, question+" [y/N] ", exit.With(exit.Refused, unasked), refused)
}

package shell

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Limits of Parse.
const (
	MaxBytes    = 256 << 10 // of a command line
	MaxCommands = 2_000     // simple commands of a line
	MaxDepth    = 8         // runners within runners: sudo env bash -c '…'
)

// ErrTooLarge is returned for a line beyond a limit.
var ErrTooLarge = errors.New("command line is too large to be read")

// ErrSyntax is returned for a line that is not a shell script.
var ErrSyntax = errors.New("not a shell command")

// Word is one word of a command.
type Word struct {
	// Text is the word as the program would get it: without quotes and escapes. Dynamic parts
	// are unchanged.
	Text string
	// Dynamic reports that the word is known only at run time: it holds a variable, a
	// substitution, a file name pattern, braces or a tilde.
	Dynamic bool
}

// Assign is a variable set for a command, or by one.
type Assign struct {
	Name  string
	Value Word
}

// Redirect is one redirection.
type Redirect struct {
	Op   string // as written: > >> < << <<< &> >& …
	File Word   // what follows it; of a here-document its text
}

// Writes reports whether the redirection changes a file.
func (r Redirect) Writes() bool {
	// >&2 copies a descriptor; >&FILE writes the file.
	copies := strings.HasSuffix(r.Op, "&") && strings.Trim(r.File.Text, "0123456789-") == ""
	return strings.Contains(r.Op, ">") && !copies && r.File.Text != "/dev/null"
}

// Simple is one command: a program with its words.
type Simple struct {
	// Words are the program and its arguments; none if there are only assignments or
	// redirections.
	Words     []Word
	Assigns   []Assign
	Redirects []Redirect
	Declares  bool // export, declare and the like: the Assigns outlive the command
	// Via is the program that runs this one: sudo, env, bash, find. Empty: the shell itself.
	Via string
}

// literal returns a word whose value does not depend on the run, but for the names of files that a
// pattern in it matches: these stay within its folder.
func (w Word) literal() (string, bool) {
	return w.Text, !w.Dynamic || !strings.ContainsAny(w.Text, "$`~(){}")
}

// literal returns the words of a command if all of them are.
func (s Simple) literal() ([]string, bool) {
	words := make([]string, 0, len(s.Words)+len(s.Redirects))
	for _, w := range s.Words {
		text, ok := w.literal()
		if !ok {
			return nil, false
		}
		words = append(words, text)
	}
	return words, true
}

// Program returns the base name of the program; empty if there is none or it is known only at
// run time.
func (s Simple) Program() string {
	if len(s.Words) == 0 || s.Words[0].Dynamic {
		return ""
	}
	return path.Base(s.Words[0].Text)
}

// Args are the words after the program.
func (s Simple) Args() []Word { return s.Words[min(1, len(s.Words)):] }

// String is the command on one line: its words, as they are.
func (s Simple) String() string {
	words := make([]string, len(s.Words))
	for i, w := range s.Words {
		words[i] = w.Text
	}
	return strings.Join(words, " ")
}

// Parse lists the simple commands of a line in the order they are written: those after ; && ||
// | & and on further lines, in substitutions, subshells, loops and functions. A command that
// another one runs (sudo, env, xargs, bash -c, eval, find -exec and the like) follows it, with
// Via set. A script known only at run time is one dynamic word.
//
// An error comes with the commands before the fault: a shell would run them. It wraps
// ErrSyntax or ErrTooLarge.
func Parse(line string) ([]Simple, error) {
	p := &parser{}
	err := p.script(line, "", 0)
	return p.out, err
}

// Quote returns a word as a shell would read it, in single quotes.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// QuoteIfNeeded is Quote, but a word of letters, digits and the marks of paths stays as it is.
func QuoteIfNeeded(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%="
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return Quote(word)
}

// parser collects commands.
type parser struct {
	out []Simple
	err error // a limit was reached
}

// script reads a text as a shell would.
func (p *parser) script(text, via string, depth int) error {
	if len(text) > MaxBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(text), MaxBytes)
	}
	sh := syntax.NewParser(syntax.Variant(syntax.LangBash))
	// Of some faulty lines the sequence yields a second fault after a break, which panics: read it to its end.
	var fault error
	for st, err := range sh.StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			fault = fmt.Errorf("%w: %w", ErrSyntax, err)
			continue
		}
		p.statement(st, text, via, depth)
	}
	if p.err != nil {
		return p.err
	}
	return fault
}

// statement adds a statement's commands, and those within it.
func (p *parser) statement(st *syntax.Stmt, text, via string, depth int) {
	syntax.Walk(st, func(n syntax.Node) bool {
		st, ok := n.(*syntax.Stmt)
		if !ok || p.err != nil {
			return p.err == nil
		}
		s := simple(st, text)
		s.Via = via
		if len(s.Words)+len(s.Assigns)+len(s.Redirects) > 0 {
			p.add(s, depth)
		}
		return true
	})
}

// add adds a command, and the one it runs.
func (p *parser) add(s Simple, depth int) {
	if len(p.out) == MaxCommands {
		p.err = fmt.Errorf("%w: more than %d commands", ErrTooLarge, MaxCommands)
		return
	}
	p.out = append(p.out, s)
	run := runs(s)
	if depth == MaxDepth && (len(run.words) > 0 || run.script != nil) {
		p.err = fmt.Errorf("%w: more than %d commands run one another", ErrTooLarge, MaxDepth)
		return
	}
	if len(run.words) > 0 {
		p.add(Simple{Words: run.words, Assigns: run.assigns, Via: s.Program()}, depth+1)
	}
	switch {
	case run.script == nil:
	case run.script.Dynamic:
		p.add(Simple{Words: []Word{*run.script}, Via: s.Program()}, depth+1)
	default:
		if err := p.script(run.script.Text, s.Program(), depth+1); p.err == nil {
			p.err = err
		}
	}
}

func assigns(in []*syntax.Assign, text string) []Assign {
	var out []Assign
	for _, a := range in {
		if a.Name == nil {
			continue
		}
		out = append(out, Assign{Name: a.Name.Value})
		if a.Value != nil {
			out[len(out)-1].Value = word(a.Value, text)
		}
	}
	return out
}

func redirect(r *syntax.Redirect, text string) Redirect {
	out := Redirect{Op: r.Op.String()}
	switch {
	case r.Hdoc != nil:
		out.File = word(r.Hdoc, text)
	case r.Word != nil:
		out.File = word(r.Word, text)
	}
	return out
}

// word reads a word part by part: plain parts become their values, others stay as written.
func word(w *syntax.Word, text string) Word {
	var out Word
	var sb strings.Builder
	parts(&sb, &out, w.Parts, text, false)
	if strings.HasPrefix(sb.String(), "~") {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && strings.HasPrefix(lit.Value, "~") {
			out.Dynamic = true
		}
	}
	out.Text = sb.String()
	return out
}

func parts(sb *strings.Builder, out *Word, in []syntax.WordPart, text string, quoted bool) {
	for _, part := range in {
		switch part := part.(type) {
		case *syntax.Lit:
			out.Dynamic = out.Dynamic || !quoted && pattern(part.Value)
			sb.WriteString(unescape(part, quoted))
		case *syntax.SglQuoted:
			sb.WriteString(literal(part))
		case *syntax.DblQuoted:
			parts(sb, out, part.Parts, text, true)
		default:
			out.Dynamic = true
			sb.WriteString(source(part, text))
		}
	}
}

// source returns a part of a line as it was written.
func source(n syntax.Node, text string) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || to > uint(len(text)) {
		return "$?"
	}
	return text[from:to]
}

// unescape returns the value of an unquoted or double-quoted literal.
func unescape(lit *syntax.Lit, quoted bool) string {
	if !strings.Contains(lit.Value, `\`) {
		return lit.Value
	}
	if quoted {
		return literal(&syntax.DblQuoted{Parts: []syntax.WordPart{lit}})
	}
	var sb strings.Builder
	for i := 0; i < len(lit.Value); i++ {
		if lit.Value[i] == '\\' && i+1 < len(lit.Value) {
			i++ // of a continued line the parser has left out the end
		}
		sb.WriteByte(lit.Value[i])
	}
	return sb.String()
}

// literal returns the value of a quoted part without anything dynamic. It uses its own
// configuration: without one, the library initialises a package variable without a lock.
func literal(part syntax.WordPart) string {
	s, err := expand.Literal(new(expand.Config), &syntax.Word{Parts: []syntax.WordPart{part}})
	if err != nil {
		return "" // only a dynamic part needs the configuration
	}
	return s
}

// pattern reports whether a shell would expand an unquoted literal to file names, or to
// several words.
func pattern(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		case '{':
			if rest := s[i:]; strings.Contains(rest, "}") && strings.ContainsAny(rest, ",.") {
				return true
			}
		}
	}
	return false
}

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Part is one command of a shell line: not one in a substitution, nor one that another command
// runs.
type Part struct {
	Simple
	Text  string // as written, with its redirections
	Piped bool   // reads another's output
}

// Parts splits a shell line into its commands, up to what is not shell syntax.
func Parts(line string) []Part {
	if len(line) > MaxBytes {
		return nil
	}
	var out []Part
	piped := make(map[*syntax.Stmt]bool)
	for st, err := range syntax.NewParser().StmtsSeq(strings.NewReader(line)) {
		if err != nil {
			break
		}
		syntax.Walk(st, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Word, *syntax.Redirect, *syntax.Assign:
				return false
			case *syntax.Stmt:
				pipe, ok := n.Cmd.(*syntax.BinaryCmd)
				if !ok {
					if s := simple(n, line); len(s.Words) > 0 {
						out = append(out, Part{s, strings.TrimSuffix(source(n, line), ";"), piped[n]})
					}
					break
				}
				piped[pipe.X] = piped[n]
				piped[pipe.Y] = pipe.Op == syntax.Pipe || pipe.Op == syntax.PipeAll
			}
			return true
		})
	}
	return out
}

// simple returns the command that a statement is; one without words, assignments and redirections
// if it is a group of others.
func simple(st *syntax.Stmt, text string) Simple {
	var s Simple
	for _, r := range st.Redirs {
		s.Redirects = append(s.Redirects, redirect(r, text))
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		for _, w := range c.Args {
			s.Words = append(s.Words, word(w, text))
		}
		s.Assigns = assigns(c.Assigns, text)
	case *syntax.DeclClause:
		s.Words, s.Declares = []Word{{Text: c.Variant.Value}}, true
		s.Assigns = assigns(c.Args, text)
	}
	return s
}

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Part is one command of a shell line: not one in a substitution, nor one that another command
// runs.
type Part struct {
	Simple
	Text    string // as written, with its redirections
	Piped   bool   // reads another's output
	Covered bool   // success of the line says nothing of it: its output is piped, it may not run, or || follows
	Later   bool   // another command of the line runs afterwards, whatever its status
}

// Parts splits a shell line into its commands, up to what is not shell syntax.
func Parts(line string) []Part {
	if len(line) > MaxBytes {
		return nil
	}
	var out []Part
	marks := make(map[*syntax.Stmt]Part) // the marks of statements to come
	for st, err := range syntax.NewParser().StmtsSeq(strings.NewReader(line)) {
		if err != nil { // the sequence repeats it after it was stopped: read it to its end
			continue
		}
		for i := range out {
			out[i].Later = true
		}
		syntax.Walk(st, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Word, *syntax.Redirect, *syntax.Assign:
				return false
			case *syntax.Stmt:
				p := marks[n]
				p.Later = p.Later || n.Background
				if mark(marks, n.Cmd, p) {
					break
				}
				if p.Simple = simple(n, line); len(p.Words) > 0 {
					p.Text = strings.TrimSuffix(source(n, line), ";")
					out = append(out, p)
				}
			}
			return true
		})
	}
	return out
}

// mark sets the marks of the statements within a command by those of the command, and reports whether it
// only joins two others.
func mark(marks map[*syntax.Stmt]Part, cmd syntax.Command, p Part) (joins bool) {
	list := func(in []*syntax.Stmt, p Part) {
		for i, st := range in {
			p := p
			p.Later = p.Later || i < len(in)-1
			marks[st] = p
		}
	}
	// Commands of a condition or a loop may not run, or run again, so the line's status says nothing of them.
	unsure := Part{Covered: true, Later: true}
	switch c := cmd.(type) {
	case *syntax.BinaryCmd:
		// A pipeline has the status of its last command. After &&, success means that both sides succeeded.
		pipes := c.Op == syntax.Pipe || c.Op == syntax.PipeAll
		marks[c.X] = Part{Piped: p.Piped, Covered: p.Covered || pipes || c.Op == syntax.OrStmt, Later: p.Later}
		marks[c.Y] = Part{Piped: pipes, Covered: p.Covered || c.Op == syntax.OrStmt, Later: p.Later}
		return true
	case *syntax.Subshell:
		list(c.Stmts, p)
	case *syntax.Block:
		list(c.Stmts, p)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			list(append(slices.Clone(c.Cond), c.Then...), unsure)
		}
	case *syntax.WhileClause:
		list(append(slices.Clone(c.Cond), c.Do...), unsure)
	case *syntax.ForClause:
		list(c.Do, unsure)
	case *syntax.CaseClause:
		for _, item := range c.Items {
			list(item.Stmts, unsure)
		}
	}
	return false
}

// Inner returns the command or the script that a command runs, if it is known: sudo, env, timeout; bash -c.
func (s Simple) Inner() (words []Word, script string) {
	r := runs(s)
	if r.script != nil && !r.script.Dynamic {
		script = r.script.Text
	}
	return r.words, script
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

package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Step is a command that a line runs by itself, with what shows of its exit status.
type Step struct {
	Words    []string // the program and its arguments, without a leading ./ of the program
	Wrappers []string // the programs that run it: sudo, env, timeout
	Dir      string   // where the line's own cd leads, as written; empty: where the line runs
	Dynamic  bool     // a word is known only at run time
	Piped    bool     // its status is not the line's: another command reads its output, or || follows
	Later    bool     // another command follows, whatever its status
}

// stepFilters only show or shorten what another command printed.
var stepFilters = Set("tail head grep egrep rg tee cat sed less more sort wc awk cut uniq nl")

// wrappers run another command without being what a line is about.
var wrappers = Set("sudo env time nice nohup timeout command exec stdbuf xvfb-run")

// Steps lists the commands of a line in order, with those that a wrapper or a shell runs, up to what is not
// shell syntax. Filters of another's output, commands in substitutions and functions, and a final true or
// echo that only covers a status, are left out.
func Steps(line string) []Step {
	if len(line) > MaxBytes {
		return nil
	}
	w := &stepWalk{text: line}
	var list []*syntax.Stmt
	for st, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(strings.NewReader(line)) {
		if err != nil {
			break
		}
		list = append(list, st)
	}
	w.list(list, false, false)
	return w.out
}

type stepWalk struct {
	text string
	out  []Step
	dir  string
}

// list adds the statements of a list; piped and later hold for each, and all but the last have another behind.
func (w *stepWalk) list(in []*syntax.Stmt, piped, later bool) {
	for i, st := range in {
		w.stmt(st, piped, later || i < len(in)-1, false)
	}
}

// stmt adds the commands of a statement. reads: it reads another's output.
func (w *stepWalk) stmt(st *syntax.Stmt, piped, later, reads bool) {
	later = later || st.Background
	switch c := st.Cmd.(type) {
	case *syntax.BinaryCmd:
		pipes := c.Op == syntax.Pipe || c.Op == syntax.PipeAll
		w.stmt(c.X, piped || pipes || c.Op == syntax.OrStmt, later, reads)
		w.stmt(c.Y, piped, later, pipes)
	case *syntax.Subshell:
		dir := w.dir
		w.list(c.Stmts, piped, later)
		w.dir = dir
	case *syntax.Block:
		w.list(c.Stmts, piped, later)
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			w.list(c.Cond, true, true)
			w.list(c.Then, piped, true)
		}
	case *syntax.WhileClause:
		w.list(c.Cond, true, true)
		w.list(c.Do, piped, true)
	case *syntax.ForClause:
		w.list(c.Do, piped, true)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt, piped, later, reads)
		}
	case *syntax.CallExpr:
		w.call(simple(st, w.text), Step{Piped: piped, Later: later}, reads)
	}
}

func (w *stepWalk) call(s Simple, step Step, reads bool) {
	if len(s.Words) == 0 || s.Words[0].Dynamic || reads && stepFilters[s.Program()] {
		return
	}
	covers := s.Program() == "true" || s.Program() == ":" || s.Program() == "echo"
	if last := len(w.out) - 1; covers && last >= 0 && (w.out[last].Piped || w.out[last].Later) && !step.Later {
		return
	}
	run := runs(s)
	switch {
	case len(run.words) > 0 && wrappers[s.Program()]:
		step.Wrappers = append(slices.Clone(step.Wrappers), s.Program())
		w.call(Simple{Words: run.words}, step, reads)
		return
	case run.script != nil && !run.script.Dynamic:
		for _, in := range Steps(run.script.Text) {
			in.Piped, in.Later, in.Dir = in.Piped || step.Piped, in.Later || step.Later, joinDir(w.dir, in.Dir)
			w.out = append(w.out, in)
		}
		return
	}
	for _, word := range s.Words {
		step.Words, step.Dynamic = append(step.Words, word.Text), step.Dynamic || word.Dynamic
	}
	step.Words[0] = strings.TrimPrefix(step.Words[0], "./")
	step.Dir = w.dir
	if s.Program() == "cd" && len(s.Words) == 2 && !s.Words[1].Dynamic && !step.Piped {
		w.dir = joinDir(w.dir, s.Words[1].Text)
	}
	w.out = append(w.out, step)
}

func joinDir(dir, to string) string {
	if path.IsAbs(to) || dir == "" {
		return to
	}
	return path.Join(dir, to)
}

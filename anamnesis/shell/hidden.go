package shell

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// loopName matches a loop variable that does not change what programs do: variables that do
// are in capitals, or have an underscore.
var loopName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// Hidden returns, in a few words, why a line may do more than Parse's result, empty if it does
// not. Only what certainly runs no more than the commands it holds counts as plain. Not plain
// are functions, which redefine names; arithmetic and tests, which run the index of a
// variable's value; and expansions that evaluate or assign.
func Hidden(line string) string {
	control := func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }
	if strings.ContainsFunc(line, control) {
		return "a control character"
	}
	if len(line) > MaxBytes {
		return "its length"
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return "it is not a shell command"
	}
	why := ""
	syntax.Walk(f, func(n syntax.Node) bool {
		why = cmp.Or(why, hidden(n))
		return why == ""
	})
	return why
}

// hidden judges one node of the tree.
func hidden(n syntax.Node) string {
	switch n := n.(type) {
	// These run nothing but the commands within them, which Parse returns.
	case nil, *syntax.File, *syntax.Stmt, *syntax.Comment, *syntax.CallExpr, *syntax.Word, *syntax.Lit,
		*syntax.SglQuoted, *syntax.DblQuoted, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.Subshell,
		*syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.CaseClause, *syntax.CaseItem,
		*syntax.BinaryCmd, *syntax.Redirect, *syntax.ExtGlob, *syntax.BraceExp, *syntax.TimeClause:
	case *syntax.ForClause:
		if n.Select {
			return "a select loop"
		}
	case *syntax.WordIter:
		if !loopName.MatchString(n.Name.Value) {
			return fmt.Sprintf("a loop over the variable %s", n.Name.Value)
		}
	case *syntax.Assign:
		if n.Index != nil || n.Array != nil || n.Name == nil {
			return "an array"
		}
	case *syntax.ParamExp:
		value := !n.Excl && n.Index == nil && n.Slice == nil && n.Repl == nil && n.Names == 0
		if !value || n.Exp != nil || n.Flags != nil || n.NestedParam != nil {
			return "an expansion that is more than a variable's value"
		}
	case *syntax.FuncDecl:
		return "a function"
	case *syntax.DeclClause, *syntax.LetClause:
		return "a declaration"
	case *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.CStyleLoop:
		return "arithmetic"
	case *syntax.TestClause:
		return "a test in [[ ]]"
	case *syntax.CoprocClause:
		return "a coprocess"
	default: // a later version of the parser may have nodes that run something
		return "syntax that is not looked into"
	}
	return ""
}

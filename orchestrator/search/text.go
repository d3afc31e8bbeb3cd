package search

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// Kind is what a found text is. Its number is part of the index.
type Kind int

// The kinds, as a user names them.
const (
	Request Kind = iota
	Reason
	Failure
	Answer
	Command
	Comment
	Output
)

func (k Kind) String() string {
	return [...]string{"you said", "why it was left", "error", "answer", "call", "agent", "output"}[k]
}

// weights say how much a text of each kind counts: what a user asked and why a path was left says more about a
// subject than what a command happened to print.
var weights = [...]float64{Request: 1.6, Reason: 1.6, Failure: 1.2, Answer: 1.3, Command: 1, Comment: 1.1, Output: 0.6}

// maxTextBytes bounds what is indexed of one text. Of an output that is its beginning and its end.
const (
	maxTextBytes   = 8 << 10
	maxOutputBytes = 2 << 10
)

// text is one that can be found.
type text struct {
	kind Kind
	text string
}

// texts returns what can be found of an operation. What it holds is redacted, as the stream is.
func texts(b op.Body) (out []text) {
	add := func(k Kind, s string, limit int) {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, text{k, quote.Ends(s, limit, "\n… %d bytes …\n")})
		}
	}
	switch b := b.(type) {
	case *op.UserSaid:
		add(Request, strings.TrimSpace(b.Text+"\n\n"+b.Question), maxTextBytes)
	case *op.JumpIntended, *op.MailDelivered:
		add(Reason, op.ReasonOf(b), maxTextBytes)
	case *op.ModelReplied:
		kind := Comment
		if len(b.Calls) == 0 {
			kind = Answer
		}
		add(kind, b.Text, maxTextBytes)
	case *op.ToolCalled:
		add(Command, arguments(b.Name, b.Args), maxOutputBytes)
	case *op.ToolReturned:
		kind := Output
		if b.IsError || b.Exit != nil && *b.Exit != 0 {
			kind = Failure
		}
		add(kind, b.Output(), maxOutputBytes)
	case *op.CheckRan:
		for _, c := range b.Checks {
			if c.Exit != 0 {
				add(Failure, c.Command+"\n"+cmp.Or(c.Text, c.Line), maxOutputBytes)
			}
		}
	}
	return out
}

// arguments returns a call as a line, and the values of its arguments, that by which the call is shown first.
func arguments(name, args string) string {
	var values map[string]any
	if json.Unmarshal([]byte(args), &values) != nil {
		return name + " " + args
	}
	main := op.MainArgs(name)
	// For other arguments Index returns -1, the largest number as uint, so that they come last.
	keys := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(uint(slices.Index(main, a)), uint(slices.Index(main, b))), strings.Compare(a, b))
	})
	out := name
	for _, k := range keys {
		if s, is := values[k].(string); is {
			out += " " + s
		} else if data, err := op.PlainJSON(values[k]); err == nil {
			out += " " + string(data)
		}
	}
	return out
}

// Package experience collects from a task's operations what became of the cards that the
// task was shown.
package experience

import (
	"cmp"
	"regexp"
	"slices"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/pair"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/anamnesis/testrun"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
)

// Log holds what the counters of a task's cards need: which cards the task was shown,
// what its calls showed of them, and how its tests ended. The zero value is empty. It is
// not safe for concurrent use.
type Log struct {
	Shown []Showing
	// Check is the last test run that ended; nil when there was none.
	Check *Check
	// Met are cards about errors that the task met without having been shown them.
	Met []Showing
	// Findings are what the task's calls showed of the cards, each once.
	Findings []Finding
	// Wrote are the lessons that the task wrote, by [card.Card.Hash].
	Wrote []string
	Last  uint64 // seq of the last operation added

	acted  uint64              // seq of the last call's result
	calls  map[string]openCall // commands of open calls
	claims []*claim            // of the cards shown
}

// Finding is one thing a task showed of a card.
type Finding struct {
	Card string
	What usage.What // Followed | Held | Contradicted
	Op   uint64
}

type openCall struct {
	command, world string
	seq            uint64
}

// matches reports whether a card quotes this command.
func (c *openCall) matches(quoted string) bool { return pair.SameCommand(quoted, c.command) }

// claim is what a shown card says that the task can confirm or contradict.
type claim struct {
	op.CardRef
	seq      uint64 // of the showing
	followed bool   // something its solution names was run or changed
	failing  string // the command that failed with its error since
	ran      bool   // something was run since it was shown
}

// Showing is one card entering the task's context.
type Showing struct {
	Card  string
	Op    uint64
	Asked bool // the agent asked
}

// Check is a finished test run.
type Check struct {
	Command string `json:"command"`
	Op      uint64 `json:"op"` // the call's result
	testrun.Result
}

// Add adds the next operation.
func (e *Log) Add(o *op.Op) {
	e.Last = o.Seq
	switch b := o.Body.(type) {
	case *op.CardsRecalled:
		for _, c := range b.Cards {
			e.Shown = append(e.Shown, Showing{Card: c.ID, Op: o.Seq, Asked: b.Why == "asked"})
			e.claims = append(e.claims, &claim{CardRef: c, seq: o.Seq})
		}
		for _, id := range b.Met {
			e.Met = append(e.Met, Showing{Card: id, Op: o.Seq})
		}
	case *op.PassDone:
		e.Wrote = append(append(e.Wrote, b.Lessons...), b.Observed...) // earlier versions recorded the latter only
	case *op.RepairsFound:
		e.Wrote = append(e.Wrote, b.Observed...)
	case *op.ModelReplied:
		e.recordDisputes(o.Seq, b.Text)
	case *op.ToolCalled:
		if command := shell.Command(b.Args); op.Acts(b.Name) == op.RunsShell && command != "" {
			if e.calls == nil {
				e.calls = make(map[string]openCall)
			}
			e.calls[b.Call] = openCall{quote.Squash(command), b.World, o.Seq}
		}
	case *op.ToolReturned:
		e.acted = o.Seq
		call, ok := e.calls[b.Call]
		delete(e.calls, b.Call)
		if ok && b.Exit != nil {
			f, failed := failure.Read(failure.Output{
				Command: call.command, Text: cmp.Or(b.Stdout, b.Text), Stderr: b.Stderr, Exit: *b.Exit, HasExit: true,
			})
			if run, ok := testrun.Parse(call.command, b.Output(), *b.Exit); ok {
				e.Check = &Check{call.command, o.Seq, run}
			}
			e.compare(o.Seq, call, f.Signature, failed)
		}
		e.recordWrites(o.Seq, o.Seq, b.Writes)
	case *op.WorldSaved:
		e.recordWrites(o.Seq, e.acted, b.Changed)
	}
}

// dispute matches an agent's statement that a card is wrong, in the words that recall asks for.
var dispute = regexp.MustCompile(`(?i)\blesson ([a-z0-9][a-z0-9._-]*) does not hold\b`)

// recordDisputes accepts an agent's statement that a card is wrong if the agent has run
// something since the card was shown.
func (e *Log) recordDisputes(seq uint64, text string) {
	for _, m := range dispute.FindAllStringSubmatch(text, -1) {
		for _, c := range e.claims {
			if c.ID == m[1] && c.ran {
				e.record(c, usage.Contradicted, seq)
			}
		}
	}
}

// compare compares how a command ended, and the signature of its failure, with what the cards say
// of it.
func (e *Log) compare(seq uint64, call openCall, sign string, failed bool) {
	for _, c := range e.claims {
		again := c.Error != "" && sign == c.Error
		if again {
			c.failing = call.command
		}
		if call.seq < c.seq {
			continue // the call began before the card was shown
		}
		c.ran = true
		if slices.ContainsFunc(c.Tries, call.matches) {
			c.follow(e, seq)
		}
		// A card with a repair is judged only once the repair was tried. One without says that a command fails in a
		// state of the files: the same error confirms that, and a success in this state contradicts it.
		checks := call.matches(c.Check) || call.matches(c.failing)
		switch {
		case len(c.Tries) > 0 && c.followed && again:
			e.record(c, usage.Contradicted, seq)
		case len(c.Tries) > 0 && c.followed && checks && !failed:
			e.record(c, usage.Held, seq)
		case len(c.Tries) == 0 && again:
			c.follow(e, seq)
			e.record(c, usage.Held, seq)
		case len(c.Tries) == 0 && checks && !failed && (c.World == "" || c.World == call.world):
			c.follow(e, seq)
			e.record(c, usage.Contradicted, seq)
		}
	}
}

// recordWrites notes files that a card's solution names as changed, if a call returned at acted, after the
// card was shown. The first snapshot of a task lists all files, none of which the agent changed.
func (e *Log) recordWrites(seq, acted uint64, paths []string) {
	for _, c := range e.claims {
		if acted > c.seq && slices.ContainsFunc(paths, func(p string) bool { return slices.Contains(c.Tries, p) }) {
			c.follow(e, seq)
		}
	}
}

func (c *claim) follow(e *Log, seq uint64) {
	c.followed = true
	e.record(c, usage.Followed, seq)
}

func (e *Log) record(c *claim, what usage.What, seq uint64) {
	if !slices.ContainsFunc(e.Findings, func(b Finding) bool { return b.Card == c.ID && b.What == what }) {
		e.Findings = append(e.Findings, Finding{c.ID, what, seq})
	}
}

// Events returns what the counters need of the task: each showing, what the task showed of the cards, and,
// if a user gave a verdict, how the task ended. That its last tests passed says nothing of the cards that
// it was shown. The counters count an event once.
func (e *Log) Events(task string, verdict usage.Ending) []usage.Event {
	var out []usage.Event
	seen := make(map[string]bool)
	for _, s := range e.Shown {
		out = append(out, usage.Event{Card: s.Card, What: usage.Shown, Task: task, Op: s.Op})
		if s.Asked {
			out = append(out, usage.Event{Card: s.Card, What: usage.Used, Task: task, Op: s.Op})
		}
		if verdict != "" && !seen[s.Card] {
			out = append(out, usage.Event{Card: s.Card, What: usage.Outcome, Task: task, Ending: verdict, Person: true})
		}
		seen[s.Card] = true
	}
	for _, s := range e.Met {
		out = append(out, usage.Event{Card: s.Card, What: usage.Met, Task: task, Op: s.Op})
	}
	for _, b := range e.Findings {
		out = append(out, usage.Event{Card: b.Card, What: b.What, Task: task, Op: b.Op})
	}
	return out
}

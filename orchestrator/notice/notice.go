package notice

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
	"anamnesis/worldstate"
)

const (
	// maxWordsTokens bounds the requests carried over by one jump, together. Steering and
	// rejections are carried whole.
	maxWordsTokens = 1000
	// maxEffect bounds one effect outside the directory, in bytes.
	maxEffect = 100
	// maxQuestion bounds the question that is quoted beside an answer, in characters.
	maxQuestion = 400
)

// How words that are carried over are introduced.
const (
	WordsOfLeft      = "What the user said in the steps you left still holds:"
	WordsOfCompacted = "What the user said in the steps before:"
)

// Said is one thing a user said.
type Said struct {
	op.UserSaid
	Seq  uint64
	Task string // of the subagent it was said to, and a blank; empty: the task itself
}

// WordsOf quotes the user's words among some operations that leave the context, so that none is
// lost: steering and rejections whole, other texts whole while they fit, otherwise head, tail and
// where the whole is. more are words from elsewhere.
func WordsOf(ops []op.Op, more []Said, lead string, count func(string) int) string {
	var words []Said
	for _, o := range ops {
		if b, ok := o.Body.(*op.UserSaid); ok && b.Text != "" {
			words = append(words, Said{UserSaid: *b, Seq: o.Seq})
		}
	}
	if words = append(words, more...); len(words) == 0 {
		return ""
	}
	var sb strings.Builder
	sb.WriteString(lead)
	budget := maxWordsTokens
	for _, s := range words {
		text := s.Text
		if s.Source == op.SourceRequest || s.Source == op.SourceAnswer {
			if n := count(text); n > budget {
				text = quote.Ends(text, max(budget, 40)*3,
					fmt.Sprintf(" … (%%d bytes left out, the whole is op %d) … ", s.Seq))
				budget = 0
			} else {
				budget -= n
			}
		}
		about := ""
		if s.Question != "" { // "1" says nothing without it
			about = " to: " + quote.OneLine(s.Question, maxQuestion)
		}
		fmt.Fprintf(&sb, "\n- %sop %d (%s%s): %s", s.Task, s.Seq, s.Source, about, text)
	}
	return sb.String()
}

// Jump informs the model of what a jump did to the directory and what it did not, from the
// operations it discarded; more are effects of subagents.
func Jump(dir string, j op.JumpIntended, done *op.JumpDone, changed []worldstate.Change, discarded []op.Op, more,
	tried []string, valid string) string {
	l := LedgerOf(dir, discarded)
	l.Effects = append(l.Effects, more...)
	return jumpNotice{jump: j, done: done, tried: tried, valid: valid, changed: changed, Ledger: l}.String()
}

// Ledger lists effects of operations that no jump or D-Mail takes back.
type Ledger struct {
	Delivered []string        // answers the user already has
	Effects   []string        // what commands changed outside the directory
	reads     map[string]bool // files that were read
	Unsure    []string        // calls with an unknown outcome
	// unobserved: another program may have changed files while a call ran.
	unobserved bool
}

func LedgerOf(dir string, ops []op.Op) Ledger {
	l := Ledger{reads: make(map[string]bool)}
	calls := make(map[string]op.Call)
	named, sandboxed := make(map[string]bool), make(map[string]bool)
	for _, o := range ops {
		// Whether a call was isolated is in its result, which comes after the call.
		if b, ok := o.Body.(*op.ToolReturned); ok && b.Isolated {
			sandboxed[b.Call] = true
		}
	}
	for _, o := range ops {
		switch b := o.Body.(type) {
		case *op.ModelReplied:
			if len(b.Calls) == 0 && strings.TrimSpace(b.Text) != "" && b.Finish != op.FinishCheckpoint {
				l.Delivered = append(l.Delivered, fmt.Sprintf("op %d: %s", o.Seq, quote.OneLine(b.Text, MaxDelivered)))
			}
		case *op.ToolCalled:
			calls[b.Call] = op.Call{Name: b.Name, Args: b.Args}
			for _, e := range shell.Reached(BashCommand(b.Name, b.Args), dir, sandboxed[b.Call]) {
				if !named[e] {
					named[e] = true
					l.Effects = append(l.Effects, fmt.Sprintf("op %d: %s", o.Seq, quote.OneLine(e, maxEffect)))
				}
			}
		case *op.WorldSaved:
			l.unobserved = l.unobserved || b.Unobserved
		case *op.ToolReturned:
			for _, name := range b.Reads {
				l.reads[name] = true
			}
			if b.Unknown && reachesOut(calls[b.Call].Name) {
				l.Unsure = append(l.Unsure,
					fmt.Sprintf("op %d: %s", o.Seq, quote.OneLine(tool.Display(calls[b.Call], dir), MaxDelivered)))
			}
		}
	}
	return l
}

// reachesOut reports whether a tool may change something outside the record: a call of any other that a crash
// interrupted has changed nothing that needs a look.
func reachesOut(tool string) bool {
	switch op.Acts(tool) {
	case op.Reads, op.Searches, op.Thinks, op.Plans, op.Investigates, op.Rewinds:
		return false
	}
	return true
}

// WriteDelivered lists the answers that need not be repeated.
func (l Ledger) WriteDelivered(sb *strings.Builder) {
	if len(l.Delivered) > 0 {
		sb.WriteString("\nThe user already has these answers; there is no need to give them again:")
		WriteItems(sb, l.Delivered)
	}
}

// Tried says what a path began with: the model's first words, else its first call that may change something. A reason
// such as "it does not work" names no path.
func Tried(dir string, path []op.Op) (call string) {
	for _, o := range path {
		b, ok := o.Body.(*op.ModelReplied)
		if !ok {
			continue
		}
		if text := quote.Squash(b.Text); text != "" {
			return quote.OneLine(text, maxEffect)
		}
		for _, c := range b.Calls {
			if call == "" && reachesOut(c.Name) {
				call = tool.Display(c, dir)
			}
		}
	}
	return call
}

// TriedFrom says why earlier attempts from step to were left, oldest first, except the one
// that step from ends. With more attempts, their blocks and spans are further back in the
// context; so the list is repeated at the new choice.
func TriedFrom(s *state.State, to, from int) []string {
	var out []string
	again := make(map[string]bool)
	for st := range s.Steps.LeftFrom(to, from) {
		why := quote.OneLine(st.LeftBy, MaxDelivered)
		if !again[why] {
			again[why] = true
			out = append(out, fmt.Sprintf("step %d and on: %s", st.ID, why))
		}
	}
	return out[max(0, len(out)-maxNamed):]
}

// BashCommand returns the command of a Bash call, empty for other calls.
func BashCommand(name, args string) string {
	if op.Acts(name) != op.RunsShell {
		return ""
	}
	return shell.Command(args)
}

// jumpNotice is the world notice's content, apart from the task, so that its wording can be
// tested.
type jumpNotice struct {
	jump    op.JumpIntended
	done    *op.JumpDone
	changed []worldstate.Change
	Ledger           // of the span
	tried   []string // why earlier attempts from the same step were left
	valid   string   // the valid steps
}

func (n jumpNotice) String() string {
	var sb strings.Builder
	way := "back"
	if !n.jump.Backward {
		way = "over"
	}
	if len(n.jump.Discarded) > 0 && !n.done.Compacted {
		sb.WriteString("[END OF DISCARDED STEPS]\n")
	}
	fmt.Fprintf(&sb, "[JUMP] You went %s %s. %s\n", way, op.Way(n.jump.From, n.jump.To), n.why())
	fmt.Fprintf(&sb, "The working directory is as it was at the end of step %d", n.jump.To)
	if len(n.done.Kept) > 0 {
		sb.WriteString(", except for what is left as it is")
	}
	sb.WriteByte('.')
	if len(n.changed) == 0 {
		sb.WriteString(" No file had to change.")
	}
	writeKinds(&sb, n.changed, "There again", "Changed back", "Gone again")
	if n.unobserved && len(n.changed) > 0 {
		fmt.Fprintf(&sb, " Whether another program changed some of these while your calls ran is unknown; snapshot "+
			"%.12s has them as they were.", n.jump.FromCommit)
	}
	var kept []string
	for _, k := range n.done.Kept {
		if !slices.Contains(n.done.Conflicts, k.Path) {
			kept = append(kept, pathName(k.Path)+" ("+k.Reason+")")
		}
	}
	if len(kept) > 0 {
		fmt.Fprintf(&sb, "\nLeft as they are: %s.", List(kept, max(n.done.NKept-n.done.NConflicts, len(kept))))
	}
	if len(n.done.Conflicts) > 0 {
		fmt.Fprintf(&sb, "\nYou had changed these after the user did; the user's version stands: %s.",
			List(n.done.Conflicts, n.done.NConflicts))
	}
	sb.WriteString(lostAttributes(n.done.LostAttributes))
	sb.WriteString("\nFiles that git would ignore were not touched.")
	// Left unsaid, the model would take them to be as they were at that step.
	if len(n.done.Ignored) > 0 {
		fmt.Fprintf(&sb, " Of these changed since step %d, by their times, and are as they were left: %s.", n.jump.To,
			List(n.done.Ignored, len(n.done.Ignored)))
	}
	if len(n.done.IgnoredGone) > 0 {
		fmt.Fprintf(&sb, " The steps you left removed these, which no snapshot holds; they do not come back: %s.",
			List(n.done.IgnoredGone, len(n.done.IgnoredGone)))
	}
	if n.done.Unseen {
		fmt.Fprintf(&sb, " Only %d entries were looked at for that.", MaxSurvivedLooked)
	}
	if len(n.done.Git) > 0 {
		if n.done.GitMoved {
			sb.WriteString("\nThe user moved git, too:")
		} else {
			fmt.Fprintf(&sb, "\nThe user's git repository was not moved. How it differs from step %d:", n.jump.To)
		}
		WriteItems(&sb, n.done.Git)
	}
	n.writeReads(&sb)
	if len(n.Effects) > 0 {
		sb.WriteString("\nOutside the directory, and not undone:")
		WriteItems(&sb, n.Effects)
	}
	n.WriteDelivered(&sb)
	if len(n.tried) > 0 {
		fmt.Fprintf(&sb, "\nTried from step %d before, with the files as they are now, and left:", n.jump.To)
		WriteItems(&sb, n.tried)
	}
	fmt.Fprintf(&sb, "\nThe steps you left stay in the record: recall with an op number opens one again. "+
		"You may jump again, back or forward; valid steps are %s.", n.valid)
	return sb.String()
}

func (n jumpNotice) why() string {
	switch {
	case n.jump.Learned != "":
		return "Learned: " + n.jump.Learned + "\nReason: " + n.jump.Reason
	case n.jump.Reason != "":
		return "Reason: " + n.jump.Reason
	case n.jump.By == op.ByUser:
		return "The user asked for it."
	}
	return "No reason was given."
}

// writeReads warns that earlier reads may no longer hold. A command may have read files that
// no record names.
func (n jumpNotice) writeReads(sb *strings.Builder) {
	if len(n.reads) == 0 {
		return
	}
	sb.WriteString("\nWhat you read from files in the steps you left may be out of date: read a file again before " +
		"you edit it.")
	var names []string
	for _, c := range n.changed {
		if n.reads[c.Path] {
			names = append(names, c.Path)
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(sb, " You read these there, and the jump changed them: %s.", List(names, len(names)))
	}
}

// MaxSurvivedLooked is how many entries the search for what a jump left changed looks at.
const MaxSurvivedLooked = 20_000

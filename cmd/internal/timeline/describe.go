package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// maxSubject bounds what a description quotes of one text, in bytes; the face
// that shows it cuts further.
const maxSubject = 400

// Describe says in a few words what an operation records. Paths within dir, the
// task's directory, are shown relative to it; dir may be empty. Its texts are the
// recorded ones: escape them before they are shown. Where there is more than
// one line, the first says it all.
func Describe(o op.Op, dir string) string {
	switch b := o.Body.(type) {
	case nil:
		return "a kind of operation this program does not know"
	case *op.TaskOpened:
		return fmt.Sprintf("%s with %s, EAS %d", b.Dir, b.Model, b.EAS)
	case *op.TaskResumed:
		if b.PID == 0 && b.Model != "" { // of another agent's session
			return "model " + b.Model
		}
		text := strings.TrimSpace(fmt.Sprintf("taken up by process %d %s", b.PID, b.Model))
		if b.Dir != "" {
			text += " in " + b.Dir
		}
		if b.Limits != nil {
			text += " with other limits"
		}
		return text
	case *op.UserSaid:
		return string(b.Source) + ": " + oneLine(b.Text)
	case *op.CardsRecalled:
		return recallText(b)
	case *op.ModelAsked:
		return fmt.Sprintf("%d tokens, up to op %d", b.Tokens, b.LastSeq)
	case *op.ModelReplied:
		return replyText(b, dir)
	case *op.ModelFailed:
		if b.Wait != nil {
			return oneLine(b.Error) + "; asked again at " + b.Wait.Until.Local().Format("2006-01-02 15:04:05")
		}
		return oneLine(b.Error)
	case *op.ToolCalled:
		return tool.Display(op.Call{ID: b.Call, Name: b.Name, Args: b.Args}, dir)
	case *op.ToolStarted:
		return fmt.Sprintf("process %d", b.PID)
	case *op.OutputKept:
		return fmt.Sprintf("part %d of the output, %d bytes from byte %d", b.Part, len(b.Text), b.From)
	case *op.ToolReturned:
		return resultText(b)
	case *op.JobStarted:
		return b.Job + " in the background: " + oneLine(b.Command)
	case *op.JobEnded:
		return fmt.Sprintf("%s ended (%s), exit %d", b.Job, b.Why, b.Exit)
	case *op.SubagentStarted:
		return fmt.Sprintf("subagent %s works as task %s: %s", b.Agent, b.Task, oneLine(b.Description))
	case *op.SubagentEnded:
		return fmt.Sprintf("subagent's task %s ended (%s) after %s", b.Task, b.Reason, quote.Number(b.Steps, "step"))
	case *op.ApprovalDecided:
		return approvalText(b)
	case *op.ResearchDone:
		return "looked up " + oneLine(b.Subject)
	case *op.TodosSet:
		return "todo list: " + op.TodosSummary(b.Todos)
	case *op.WorldSaved:
		return savedText(b)
	case *op.WorldChanged:
		return changedText(b)
	case *op.RestoreIntended:
		return fmt.Sprintf("files to step %d", b.ToStep)
	case *op.WorldRestored:
		if b.Interrupted {
			switch {
			case b.Notice == "":
				return fmt.Sprintf("a restore of the files to step %d was interrupted, and no file was moved", b.ToStep)
			case b.Written+b.Deleted == 0:
				return fmt.Sprintf("a restore of the files to step %d was interrupted, and its changes are unknown", b.ToStep)
			}
			return fmt.Sprintf("a restore of the files to step %d was interrupted: %d written, %d deleted since", b.ToStep, b.Written, b.Deleted)
		}
		return fmt.Sprintf("files as of step %d: %d written, %d deleted", b.ToStep, b.Written, b.Deleted)
	case *op.NoticeGiven:
		return oneLine(b.Text)
	case *op.TurnEnded:
		return strings.TrimSuffix(b.Reason+": "+b.Detail, ": ")
	case *op.LogRecovered:
		return fmt.Sprintf("a torn end was repaired: %d bytes set aside in %s", b.Bytes, b.SavedAs)
	case *op.LogSealed:
		return "everything before is durable"
	}
	return describeMemory(o)
}

// approvalText says who decided what about a call.
func approvalText(b *op.ApprovalDecided) string {
	text := cmp.Or(map[string]string{"allow": "allowed", "refuse": "refused", "edit": "edited"}[b.Decision], "decided")
	switch kind, what, _ := strings.Cut(b.By, ":"); {
	case b.By == "":
	case b.By == op.ByUser:
		text += " by " + Who(b.By)
	case b.By == "nobody":
		text += ", since no user could be asked"
	case kind == "mode":
		text += ", since approval is " + what
	case kind == "guard":
		text += map[string]string{"changed": ", since a script that it runs was changed meanwhile", "undone": ", since a jump has undone the same call",
			"research": ", by the rule to look up what is new", "lesson": ", since a card says that it fails", "repeat": ", since it repeats an earlier call"}[what]
	default:
		text += " by the " + strings.Replace(b.By, ":", " ", 1)
	}
	switch {
	case b.ForTask:
		text += ", with every later call of the task"
	case b.Same:
		text += ", and the same call again"
	case len(b.Rules) > 0:
		text += ", and " + strings.Join(b.Rules, ", ")
	case len(b.Subjects) > 0:
		text += " (" + strings.Join(b.Subjects, ", ") + ")"
	}
	return oneLine(strings.TrimSuffix(text+": "+b.Feedback+b.Args, ": "))
}

// changedText says who changed how many files.
func changedText(b *op.WorldChanged) string {
	switch b.By {
	case state.ChangedByUser:
		return fmt.Sprintf("the user changed %s: %s", Files(b.NChanged), someOf(b.Changed, b.NChanged))
	case state.ChangedByAgent:
		return "the step's changes so far, saved before the user was asked"
	}
	return fmt.Sprintf("%s changed, by whom is not known: %s", Files(b.NChanged), someOf(b.Changed, b.NChanged))
}

// maxNamedChanges is how many changed files a line names.
const maxNamedChanges = 5

func someOf(names []string, total int) string {
	shown := names[:min(len(names), maxNamedChanges)]
	text := oneLine(strings.Join(shown, ", "))
	if more := total - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// describeMemory describes what jumps and passes record.
func describeMemory(o op.Op) string {
	switch b := o.Body.(type) {
	case *op.JumpRequested:
		return fmt.Sprintf("to step %d by %s: %s", b.To, Who(b.By), oneLine(b.Reason))
	case *op.JumpDropped:
		return fmt.Sprintf("jump to %d not made: %s", b.To, b.Why)
	case *op.JumpIntended:
		return fmt.Sprintf("from step %d to step %d, %d tokens left: %s", b.From, b.To, b.Tokens, oneLine(b.Reason))
	case *op.JumpDone:
		return fmt.Sprintf("jump %d → %d, %s changed", b.From, b.To, Files(b.NReverted))
	case *op.CheckpointMarked:
		return "a checkpoint the agent set"
	case *op.MailDelivered:
		return fmt.Sprintf("D-Mail from step %d to checkpoint %d, no file moved", b.From, b.To)
	case *op.PassBegun:
		return quote.Number(len(b.Ranges), "span") + " of paths that were left"
	case *op.PassDone:
		return passText(b, o.Tok)
	case *op.RepairsFound:
		return repairsText(b)
	case *op.ContextMasked:
		return maskedText(b)
	case *op.ReflectAsked:
		return fmt.Sprintf("%d jumps back to step %d did not help: asking the Reflect-Agent (%s)", b.Jumps, b.To, b.Model)
	case *op.ReflectFailed:
		return "no strategy: " + b.Why
	case *op.StrategyGiven:
		return strategyText(b)
	}
	return ""
}

// oneLine is the beginning of a text on one line.
func oneLine(s string) string {
	cut := ""
	if len(s) > maxSubject {
		s, cut = strings.ToValidUTF8(s[:maxSubject], ""), "…"
	}
	return strings.Join(strings.Fields(s), " ") + cut
}

func recallText(b *op.CardsRecalled) string {
	switch {
	case b.Error != "":
		return "cards could not be searched: " + oneLine(b.Error)
	case len(b.Cards) == 0:
		return "no card fits"
	}
	var topics []string
	for _, c := range b.Cards {
		topics = append(topics, c.Topic)
	}
	return fmt.Sprintf("recalled %s: %s", quote.Number(len(b.Cards), "card"), strings.Join(topics, "; "))
}

func replyText(b *op.ModelReplied, dir string) string {
	var parts []string
	if text := oneLine(b.Text); text != "" {
		parts = append(parts, text)
	}
	for _, c := range b.Calls {
		parts = append(parts, "▸ "+tool.Display(c, dir))
	}
	if len(parts) == 0 {
		return "an empty reply (" + b.Finish + ")"
	}
	return strings.Join(parts, " ")
}

// resultText says what a call returned: of one that failed, the line that tells what
// went wrong.
func resultText(b *op.ToolReturned) string {
	if b.Exit != nil && *b.Exit != 0 {
		out := failure.Output{Text: b.Stdout, Stderr: b.Stderr, Exit: *b.Exit, HasExit: true}
		if f, _ := failure.Read(out); f.Line != "" && !f.Silent {
			return CallText(b) + ": " + oneLine(f.Line)
		}
	}
	if b.Display != "" {
		return CallText(b) + ": " + oneLine(b.Display)
	}
	if text := oneLine(b.Text); text != "" {
		return CallText(b) + ": " + text
	}
	return CallText(b)
}

// Moved says what a jump did to a path, in the words of its dry run.
func Moved(b *op.JumpDone, path string) string {
	switch {
	case slices.Contains(b.Deleted, path):
		return "delete"
	case b.Deleted == nil:
		return "changed" // recorded by an older version
	}
	return "write"
}

// Moves names what a jump did to each path that it lists.
func Moves(b *op.JumpDone) (moves []string) {
	for _, path := range b.Reverted {
		moves = append(moves, Moved(b, path)+" "+path)
	}
	return moves
}

// Files is a number of files.
func Files(n int) string { return quote.Number(n, "file") }

func savedText(b *op.WorldSaved) string {
	switch {
	case b.Error != "":
		return "no checkpoint: " + b.Error
	case !b.Complete && len(b.Skipped) > 0:
		return fmt.Sprintf("%s changed; %d left out: %s (%s)", Files(b.NChanged), len(b.Skipped), b.Skipped[0].Path, b.Skipped[0].Reason)
	}
	text := fmt.Sprintf("%d of %s changed", b.NChanged, Files(b.Files))
	for _, lost := range b.Lost {
		text += "\n→ " + lost
	}
	return text
}

func strategyText(b *op.StrategyGiven) string {
	text := "strategy: " + b.Diagnosis
	for _, p := range b.Plan {
		text += "\n→ " + p
	}
	if len(b.Plan) == 0 {
		text += "\n→ asks the user: " + b.Question
	}
	return text
}

// maskedText says what was masked, and why.
func maskedText(b *op.ContextMasked) string {
	why := fmt.Sprintf("more than %d", b.Limit)
	if b.Why == "overflow" {
		why = "the provider refused them"
	}
	return fmt.Sprintf("%s masked: the context had %d tokens (%s), now %d", quote.Number(len(b.Results), "result"), b.Before, why, b.After)
}

// Who names the one that asked for a jump or decided an approval.
func Who(by string) string {
	if by == op.ByUser {
		return "the user"
	}
	return "the " + by
}

// PlannedPass describes a pass that a jump would make, as the jump itself does.
func PlannedPass(p state.PlannedPass, eas int) string {
	return passText(&op.PassDone{Trigger: p.Trigger, RangeTokens: p.Tokens, EAS: eas}, 0)
}

func passText(b *op.PassDone, blockTokens int) string {
	if b.Trigger == op.TriggerMail {
		text := fmt.Sprintf("D-Mail: %d messages of %d tokens became one of %d: ", b.MessagesRemoved, b.RangeTokens, blockTokens)
		if blockTokens > b.RangeTokens {
			return text + fmt.Sprintf("%d more", blockTokens-b.RangeTokens)
		}
		return text + fmt.Sprintf("%d saved", b.RangeTokens-blockTokens)
	}
	text := fmt.Sprintf("%d tokens discarded", b.RangeTokens)
	switch b.Trigger {
	case op.TriggerWindow:
		text = fmt.Sprintf("%d tokens of old steps compacted to make room", b.RangeTokens)
	case op.TriggerEnd:
		text = fmt.Sprintf("%d tokens of paths that were left, read at the end", b.RangeTokens)
	case op.TriggerJump, op.TriggerCumulative:
		if b.RangeTokens > b.EAS {
			text += fmt.Sprintf(" > EAS %d", b.EAS)
		} else { // one span of several
			text += fmt.Sprintf(", with other spans more than EAS %d", b.EAS)
		}
	case op.TriggerUser:
		text += ", compacted at the user's request"
	}
	if b.Block != "" {
		text += fmt.Sprintf("\n→ [ANAMNESIS_BLOCK] %d tokens by the %s", blockTokens, b.Writer)
	}
	for _, id := range b.Cards {
		text += "\n→ card " + id
	}
	for _, why := range b.NotWritten {
		text += "\n→ card not written: " + why
	}
	if b.NoCards != "" {
		text += "\n→ no card: " + b.NoCards
	}
	if b.Fallback != "" {
		text += "\n→ extractor used: " + b.Fallback
	}
	return text
}

// repairsText says what a search for repairs at a turn's end found. Earlier versions wrote cards of them.
func repairsText(b *op.RepairsFound) string {
	text := quote.Number(b.Pairs, "failed command") + " that worked later"
	switch {
	case len(b.Cards) > 0:
		text += ": " + quote.Number(len(b.Cards), "card") + " " + strings.Join(b.Cards, " ")
	case len(b.NotWritten) == 0 && b.Pairs > 0:
		text += " ('anamnesis kb repairs')"
	}
	if len(b.Superseded) > 0 {
		text += ", completes " + strings.Join(b.Superseded, " ")
	}
	if len(b.NotWritten) > 0 {
		text += "; not written: " + strings.Join(b.NotWritten, "; ")
	}
	return text
}

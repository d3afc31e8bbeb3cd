package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/planmode"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// maxSubject bounds what a line quotes of one text, in bytes; the front end that shows it may cut it further.
const maxSubject = 400

// Line is what every front end shows of one operation. Builder chooses the rows of a timeline, Transcript those of an
// export. Its texts are as recorded: escape them before they are shown.
type Line struct {
	Icon   string   // empty: what shows a running task leaves the operation out
	Text   string   // says it all, on one line
	Detail []string // further lines
	Short  string   // a word or two for pictures
}

// String is the line with its details, each on a line of its own.
func (l Line) String() string { return strings.Join(append([]string{l.Text}, l.Detail...), "\n→ ") }

// LineOf says what an operation records. Paths within dir, the task's directory, are relative to
// it; dir may be empty. Calls and their results have no icon: each front end shows them in its own way.
func LineOf(o op.Op, dir string) Line {
	switch b := o.Body.(type) {
	case nil:
		return Line{Text: "a kind of operation this program does not know"}
	case *op.TaskOpened:
		return plain("%s with %s, EAS %d", b.Dir, b.Model, b.EAS)
	case *op.TaskResumed:
		if b.Why != "" {
			return Line{Icon: "!", Text: fmt.Sprintf("%s; %s takes over, EAS %d", oneLine(b.Why), b.Model, b.EAS)}
		}
		return Line{Text: resumedText(b)}
	case *op.UserSaid:
		return userLine(b)
	case *op.CardsRecalled:
		return recallLine(b)
	case *op.ModelAsked:
		return plain("%d tokens, up to op %d", b.Tokens, b.LastSeq)
	case *op.ModelReplied:
		if strings.TrimSpace(b.Text) == "" && b.Unfinished() != "" {
			return Line{Icon: "!", Text: "the reply was empty (" + b.Finish + ")"}
		}
		return Line{Text: replyText(b, dir), Detail: repairDetail(b.Repairs)}
	case *op.ModelFailed:
		if b.Wait != nil { // front ends show how long the wait still is
			return plain("%s; asked again at %s", oneLine(b.Error), b.Wait.Until.Local().Format(time.DateTime))
		}
		return Line{Icon: "!", Text: oneLine(b.Error)}
	case *op.ToolCalled:
		return Line{Text: tool.Display(op.Call{ID: b.Call, Name: b.Name, Args: b.Args}, dir)}
	case *op.ToolStarted:
		return plain("process %d", b.PID)
	case *op.OutputKept:
		return plain("part %d of the output, %d bytes from byte %d", b.Part, len(b.Text), b.From)
	case *op.ToolReturned:
		return Line{Text: resultText(b)}
	case *op.JobStarted:
		return Line{Icon: "▸", Text: b.Job + " in the background: " + oneLine(b.Command)}
	case *op.JobEnded:
		return Line{Icon: "•", Text: fmt.Sprintf("%s ended (%s), exit %d", b.Job, b.Why, b.Exit)}
	case *op.SubagentStarted:
		return Line{Icon: "▸", Text: fmt.Sprintf("subagent %s (%s): %s", b.Task, b.Agent, oneLine(b.Description))}
	case *op.SubagentEnded:
		return plain("subagent %s ended (%s) after %s", b.Task, b.Reason, quote.Number(b.Steps, "step"))
	case *op.ApprovalDecided:
		return Line{Text: approvalText(b)}
	case *op.QuestionAsked:
		l := Line{Text: QuestionText(b), Short: "asks"}
		if b.Parked { // otherwise the front end that asks shows it
			l.Icon, l.Detail = "?",
				[]string{"waits for 'anamnesis answer', the page or 'anamnesis attach': " + question.Choices(b)}
		}
		return l
	case *op.QuestionAnswered:
		return answeredLine(b)
	case *op.ResearchDone:
		return Line{Icon: "✎", Text: fmt.Sprintf("looked up %s (op %d)", oneLine(b.Subject), b.Look)}
	case *op.CheckRan:
		return checkLine(b)
	case *op.GitSeen:
		if b.Unbundled != "" {
			return Line{Icon: "!", Text: fmt.Sprintf("git at %s: %s; the bucket does not get its new commits: %s",
				b.Dir, b.GitAt, oneLine(b.Unbundled))}
		}
		return plain("git at %s: %s", b.Dir, b.GitAt)
	case *op.TodosSet:
		return Line{Icon: "☰", Text: "todo list: " + op.TodosSummary(b.Todos)}
	case *op.WorldSaved:
		return savedLine(o.Step, b)
	case *op.WorldChanged:
		return changedLine(b)
	case *op.RestoreIntended:
		return plain("files to step %d", b.ToStep)
	case *op.WorldRestored:
		return restoredLine(b)
	case *op.NoticeGiven:
		return noticeLine(b)
	case *op.ModeSet:
		return modeLine(b)
	case *op.HookRan:
		return hookLine(b)
	case *op.InboxRead:
		return Line{Icon: "»",
			Text: oneLine(fmt.Sprintf("message %d from %s: %s", b.N, b.By, cmp.Or(b.Refused, b.Verb)))}
	case *op.TurnEnded:
		return Line{Icon: "■", Text: strings.TrimSuffix(b.Reason+": "+b.Detail, ": "), Short: "end"}
	case *op.LogRecovered:
		return plain("a torn end was repaired: %d bytes set aside in %s", b.Bytes, b.SavedAs)
	case *op.LogSealed:
		return Line{Text: "everything before is durable"}
	}
	return memoryLine(o)
}

// memoryLine is the line of what jumps and passes record.
func memoryLine(o op.Op) Line {
	switch b := o.Body.(type) {
	case *op.JumpRequested:
		l := plain("jump to step %d asked for by %s", b.To, ActorName(b.By))
		if b.Reason != "" {
			l.Text += ": " + oneLine(b.Reason)
		}
		if b.By != op.ByAgent { // the agent's call was shown
			l.Icon = "↩"
		}
		return l
	case *op.JumpDropped:
		return Line{Icon: "!", Text: fmt.Sprintf("jump to step %d not made: %s", b.To, b.Why), Short: "no jump"}
	case *op.JumpIntended:
		l := plain("%s, %d tokens left: %s", op.Way(b.From, b.To), b.Tokens, oneLine(b.Why()))
		if b.Card != "" {
			l.Text += "; draft " + b.Card
		}
		if b.By == op.ByAgent && b.Reason != "" { // the others' reason was shown
			l.Icon = "↩"
		}
		return l
	case *op.JumpDone:
		text := fmt.Sprintf("jump %s: %s changed", op.Way(b.From, b.To), CountFiles(b.NReverted))
		return Line{Icon: "↩", Text: text, Detail: JumpDetail(b), Short: fmt.Sprintf("to %d", b.To)}
	case *op.CheckpointMarked:
		return Line{Text: "a checkpoint the agent set"}
	case *op.MailDelivered:
		text := fmt.Sprintf("D-Mail from step %d to checkpoint %d, no file moved", b.From, b.To)
		return Line{Icon: "✉", Text: text, Short: "D-Mail"}
	case *op.PassBegun:
		if len(b.Ranges) == 0 {
			return Line{Text: "commands that failed and later succeeded"}
		}
		return Line{Text: quote.Number(len(b.Ranges), "span") + " of paths that were left"}
	case *op.PassDone:
		return passLine(b, o.Tok)
	case *op.RepairsFound:
		return repairsLine(b)
	case *op.ContextMasked:
		return Line{Icon: "◇", Text: maskedText(b), Short: "masked"}
	case *op.ReflectAsked:
		text := fmt.Sprintf("%d jumps back to step %d did not help: asking the Reflect-Agent (%s)", b.Jumps, b.To,
			b.Model)
		if b.By == op.ByGoal {
			text = fmt.Sprintf("the check got no better in %d runs: asking the Reflect-Agent (%s)", b.Jumps, b.Model)
		}
		return Line{Icon: "✳", Text: text}
	case *op.ReflectFailed:
		return Line{Icon: "✳", Text: "no strategy: " + b.Why, Short: "strategy"}
	case *op.StrategyGiven:
		l := Line{Icon: "✳", Text: "strategy: " + b.Diagnosis, Detail: b.Plan, Short: "strategy"}
		if len(b.Plan) == 0 {
			l.Detail = []string{"asks the user: " + b.Question}
		}
		return l
	}
	return Line{}
}

// plain is a line without an icon.
func plain(format string, args ...any) Line { return Line{Text: fmt.Sprintf(format, args...)} }

func resumedText(b *op.TaskResumed) string {
	if b.PID == 0 && b.Model != "" { // of another agent's session
		return "model " + b.Model
	}
	if b.Task != "" {
		return "copied as task " + b.Task
	}
	if b.PID == 0 && b.Limits != nil {
		return "a limit was raised"
	}
	text := strings.TrimSpace(fmt.Sprintf("taken up by process %d %s", b.PID, b.Model))
	if b.Dir != "" {
		text += " in " + b.Dir
	}
	if b.Limits != nil {
		text += " with other limits"
	}
	if b.Goal != nil {
		text += " with the check " + cmp.Or(oneLine(strings.Join(b.Goal.Until, ", then ")), "of the agent alone")
	}
	return text
}

// userLine is the user's words. Only those that answer something say so.
func userLine(b *op.UserSaid) Line {
	l := Line{Icon: "»", Text: oneLine(b.Text), Short: "words"}
	if b.Source == op.SourceRejection || b.Source == op.SourceAnswer {
		l.Text = string(b.Source) + ": " + l.Text
	}
	if b.Inbox != nil {
		l.Text = oneLine(b.Inbox.By) + ": " + l.Text
	}
	return l
}

// maxHook bounds what is shown of a command.
const maxHook = 60

// hookLine is what a hook said, or why it failed.
func hookLine(b *op.HookRan) Line {
	what := cmp.Or(map[string]string{"block": " blocked", "allow": " allowed", "ask": " asks"}[b.Decision], "")
	if b.Failed {
		what += " failed"
	}
	text := fmt.Sprintf("hook %s (%s)%s: %s", b.Event, quote.OneLine(b.Hook, maxHook), what, b.Said)
	return Line{Icon: "!", Text: oneLine(strings.TrimSuffix(text, ": "))}
}

// noticeLine is what tools and their servers reported, or else the beginning of the notice.
func noticeLine(b *op.NoticeGiven) Line {
	var news []string
	for text := range strings.SplitSeq(b.Text, "\n") {
		if mark, rest, ok := strings.Cut(text, "] "); ok && (mark == "[tools" || strings.HasPrefix(mark, "[tools ")) {
			news = append(news, rest)
		}
	}
	if len(news) == 0 {
		return Line{Text: oneLine(b.Text)}
	}
	return Line{Icon: "!", Text: news[0], Detail: news[1:]}
}

// modeLine is what the user lets the agent do from now on.
func modeLine(b *op.ModeSet) Line {
	l := Line{Icon: "•", Text: "approval " + b.Approval}
	switch {
	case b.Plan:
		l.Text, l.Short = "plan mode: the agent reads and makes a plan", "plan"
	case b.Notice != "":
		l.Text = strings.TrimSuffix("the end of plan mode; approval "+b.Approval, "; approval ")
	}
	return l
}

func restoredLine(b *op.WorldRestored) Line {
	if !b.Interrupted {
		return plain("files as of step %d: %d written, %d deleted", b.ToStep, b.Written, b.Deleted)
	}
	text := fmt.Sprintf("a restore of the files to step %d was interrupted", b.ToStep)
	switch {
	case b.Notice == "":
		text += ", and no file was moved"
	case b.Written+b.Deleted == 0:
		text += ", and its changes are unknown"
	default:
		text += fmt.Sprintf(": %d written, %d deleted since", b.Written, b.Deleted)
	}
	return Line{Icon: "!", Text: text}
}

func QuestionText(q *op.QuestionAsked) string {
	text := q.Text
	if q.Task != "" {
		text = "subagent " + q.Task + ": " + text
	}
	return oneLine(text)
}

// answeredLine says who answered what, from where.
func answeredLine(b *op.QuestionAnswered) Line {
	l := plain("%s answered op %d from %s: %s", b.By, b.Asked, b.From, oneLine(b.Words("")))
	if b.From != question.FromTerminal {
		l.Icon, l.Short = "»", "answer"
	}
	return l
}

// approvalText says who decided what about a call.
func approvalText(b *op.ApprovalDecided) string {
	text := cmp.Or(map[string]string{"allow": "allowed", "refuse": "refused", "edit": "edited"}[b.Decision], "decided")
	switch kind, what, _ := strings.Cut(b.By, ":"); {
	case b.By == "":
	case b.By == op.ByUser:
		text += " by " + ActorName(b.By)
	case b.By == "nobody":
		text += ", since no user could be asked"
	case b.By == planmode.By:
		text += " by plan mode"
	case kind == "mode":
		text += ", since approval is " + what
	case kind == "guard":
		text += map[string]string{"changed": ", since a script that it runs was changed meanwhile",
			"undone":   ", since a jump has undone the same call",
			"research": ", by the rule to look up what is new", "lesson": ", since a card says that it fails",
			"repeat":       ", since it repeats an earlier call",
			"never starts": ", once, since it never started in earlier tasks here"}[what]
	default:
		text += " by the " + strings.Replace(b.By, ":", " ", 1)
	}
	switch {
	case b.ForTask:
		text += ", with every later call of the task"
	case b.Same:
		text += ", and the same call again"
	case b.Always:
		text += ", always in this directory"
	case len(b.Rules) > 0:
		text += ", and " + strings.Join(b.Rules, ", ")
	case len(b.Subjects) > 0:
		text += " (" + strings.Join(b.Subjects, ", ") + ")"
	}
	return oneLine(strings.TrimSuffix(text+": "+b.Feedback+b.Args, ": "))
}

// changedLine says who changed how many files.
func changedLine(b *op.WorldChanged) Line {
	if b.By == state.ChangedByAgent { // its call was shown
		return Line{Text: "the step's changes so far, saved before the user was asked"}
	}
	files := fmt.Sprintf("%s changed, by whom is not known", CountFiles(b.NChanged))
	if b.By == state.ChangedByUser {
		files = "the user changed " + CountFiles(b.NChanged)
	}
	return Line{Icon: "±", Text: files + ": " + someOf(b.Changed, b.NChanged)}
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

func oneLine(s string) string { return quote.OneLine(s, maxSubject) }

func recallLine(b *op.CardsRecalled) Line {
	l := Line{Text: "no card fits", Short: fmt.Sprintf("%d read", len(b.Cards))}
	var lines []string
	if b.Error != "" {
		lines = append(lines, "cards could not be searched: "+oneLine(b.Error))
	}
	lines = append(lines, b.Damage...)
	if b.Degraded != "" {
		lines = append(lines, "cards are searched by words only: "+b.Degraded)
	}
	if len(lines) > 0 {
		l.Icon = "!"
	}
	var news []string
	if n := len(b.Facts); n > 0 {
		news = append(news, "told "+quote.Number(n, "fact")+" of this repository: "+strings.Join(b.Facts, ", "))
	}
	for _, c := range b.Cards {
		news = append(news, "recalled card "+c.ID+": "+c.Topic)
	}
	if len(news) > 0 {
		l.Icon, lines = "✦", append(news, lines...)
	}
	if len(lines) > 0 {
		l.Text, l.Detail = lines[0], lines[1:]
	}
	return l
}

func replyText(b *op.ModelReplied, dir string) string {
	var parts []string
	if text := oneLine(b.Text); text != "" {
		parts = append(parts, text)
	}
	for _, c := range b.Calls {
		parts = append(parts, "▸ "+tool.Display(c, dir))
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

// FileAction says what a jump did to a path, in the words of its dry run.
func FileAction(b *op.JumpDone, path string) string {
	switch {
	case slices.Contains(b.Deleted, path):
		return "delete"
	case b.Deleted == nil:
		return "changed" // recorded by an older version
	}
	return "write"
}

// FileActions names what a jump did to each path that it lists.
func FileActions(b *op.JumpDone) (moves []string) {
	for _, path := range b.Reverted {
		moves = append(moves, FileAction(b, path)+" "+path)
	}
	return moves
}

func CountFiles(n int) string { return quote.Number(n, "file") }

// JumpDetail lists what a jump kept and lost, the conflicts that it resolved for the user, and how git stands.
func JumpDetail(b *op.JumpDone) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, k := range b.Kept {
		add("kept %q: %s", k.Path, k.Reason)
	}
	if more := b.NKept - len(b.Kept); more > 0 {
		add("kept: and %d more", more)
	}
	for _, path := range b.Conflicts {
		add("conflict %q: changed again since; the version kept comes back", path)
	}
	for _, l := range b.LostAttributes {
		lines = append(lines, LostAttribute(l.Path, l.Reason))
	}
	for _, path := range b.IgnoredGone {
		add("gone %q: ignored by git, in no snapshot, and removed by a step that was left", path)
	}
	for _, line := range b.Git {
		add("git: %s", line)
	}
	return lines
}

// LostAttribute says what a restored file lacks that no snapshot holds.
func LostAttribute(path, what string) string {
	return fmt.Sprintf("lost %q: restored without its %s, which snapshots do not hold", path, what)
}

func savedLine(step int, b *op.WorldSaved) Line {
	l := Line{Icon: "●", Detail: b.Lost}
	if len(b.Lost) > 0 {
		l.Icon = "!"
	}
	switch {
	case b.Error != "":
		l.Icon, l.Text = "!", fmt.Sprintf("step %d has no checkpoint: %s", step, b.Error)
	case !b.Complete && len(b.Skipped) > 0:
		l.Text = fmt.Sprintf("step %d saved without %s: %s (%s)", step, quote.Number(len(b.Skipped), "path"),
			oneLine(b.Skipped[0].Path), b.Skipped[0].Reason)
	case step == 0:
		l.Text = "step 0: " + CountFiles(b.Files)
	default:
		l.Text = fmt.Sprintf("step %d", step)
		if b.NChanged > 0 {
			l.Text += fmt.Sprintf(": %d of %s changed", b.NChanged, CountFiles(b.Files))
		}
	}
	if b.Mixed != "" {
		l.Text += ", mixed with changes of " + b.Mixed + ", which jumps keep"
	}
	return l
}

func maskedText(b *op.ContextMasked) string {
	why := fmt.Sprintf("more than %d", b.Limit)
	if b.Why == "overflow" {
		why = "the provider refused them"
	}
	return fmt.Sprintf("%s masked: the context had %d tokens (%s), now %d",
		quote.Number(len(b.Results), "result"), b.Before, why, b.After)
}

// ActorName names the one that asked for a jump or decided an approval.
func ActorName(by string) string {
	if by == op.ByUser {
		return "the user"
	}
	return "the " + by
}

// PlannedPass describes a pass that a jump would make, as the jump itself does.
func PlannedPass(p state.PlannedPass, eas int) string {
	return passText(&op.PassDone{Trigger: p.Trigger, RangeTokens: p.Tokens, EAS: eas})
}

// passLine says what a pass removed from the context and what it wrote.
func passLine(b *op.PassDone, blockTokens int) Line {
	l := Line{Icon: "◆", Text: passText(b), Short: "pass"}
	if b.Trigger == op.TriggerMail {
		change := fmt.Sprintf("%d saved", b.RangeTokens-blockTokens)
		if blockTokens > b.RangeTokens {
			change = fmt.Sprintf("%d more", blockTokens-b.RangeTokens)
		}
		l.Text = fmt.Sprintf("D-Mail: %d messages of %d tokens became one of %d: %s", b.MessagesRemoved,
			b.RangeTokens, blockTokens, change)
		l.Short = "block"
		return l
	}
	switch {
	case b.Block != "" && len(b.Cards) > 0:
		l.Short = fmt.Sprintf("block, %d ✦", len(b.Cards))
	case b.Block != "":
		l.Short = "block"
	case len(b.Cards) > 0:
		l.Short = fmt.Sprintf("%d ✦", len(b.Cards))
	}
	if b.Block != "" {
		l.Detail = append(l.Detail, fmt.Sprintf("[ANAMNESIS_BLOCK] %d tokens by the %s", blockTokens, b.Writer))
	}
	for _, id := range b.Cards {
		l.Detail = append(l.Detail, "card "+id)
	}
	for _, why := range b.NotWritten {
		l.Detail = append(l.Detail, "card not written: "+why)
	}
	// At the end of a task, one line says both that no card was written and why no model wrote one.
	unworded := b.Trigger == op.TriggerEnd && b.NoCards != "" && b.Fallback != ""
	switch {
	case unworded:
		l.Detail = append(l.Detail, fmt.Sprintf("no card: %s (%s)", b.NoCards, b.Fallback))
	case b.NoCards != "":
		l.Detail = append(l.Detail, "no card: "+b.NoCards)
	}
	if b.Fallback != "" && !unworded {
		l.Detail = append(l.Detail, "extractor used: "+b.Fallback)
	}
	return l
}

// passText says what a pass was about.
func passText(b *op.PassDone) string {
	text := fmt.Sprintf("%d tokens discarded", b.RangeTokens)
	switch b.Trigger {
	case op.TriggerWindow:
		return fmt.Sprintf("%d tokens of old steps compacted to make room", b.RangeTokens)
	case op.TriggerEnd:
		if len(b.Ranges) == 0 {
			return "commands that failed and later succeeded, read at the end"
		}
		return fmt.Sprintf("%d tokens of paths that were left, read at the end", b.RangeTokens)
	case op.TriggerJump, op.TriggerCumulative:
		if b.RangeTokens > b.EAS {
			return text + fmt.Sprintf(" > EAS %d", b.EAS)
		}
		return text + fmt.Sprintf(", with other spans more than EAS %d", b.EAS) // one span of several
	case op.TriggerUser:
		return text + ", compacted at the user's request"
	}
	return text
}

// repairsLine says what a search for repairs at a turn's end wrote.
func repairsLine(b *op.RepairsFound) Line {
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
	l := Line{Text: text, Short: fmt.Sprintf("%d ✦", len(b.Cards))}
	if b.Pairs+len(b.NotWritten) > 0 {
		l.Icon = "◆"
	}
	return l
}

// checkLine says how a run of the goal's checks ended.
func checkLine(b *op.CheckRan) Line {
	rating := b.Rated()
	l := Line{Icon: "✗", Text: "the check failed: " + oneLine(rating.String()),
		Short: fmt.Sprintf("%.4g", rating.Value)}
	if rating.Of > 0 {
		l.Short += fmt.Sprintf("/%d", rating.Of)
	}
	switch i := slices.IndexFunc(b.Checks, op.Check.Failed); {
	case b.Passed && rating.Error == "" && rating.Value < float64(rating.Of):
		l.Icon, l.Text = "✓", fmt.Sprintf("the check passed, but only %s: the others did not run", rating)
	case b.Passed && b.First:
		l.Icon, l.Text = "✓", "the check passes already, before anything was done: "+oneLine(rating.String())
	case b.Passed:
		l.Icon, l.Text = "✓", "the check passed: "+oneLine(rating.String())
	case i >= 0 && b.Checks[i].Line != "":
		l.Text += ": " + oneLine(b.Checks[i].Line)
	}
	if b.Refused {
		l.Text = "the check does not count: what it reads has changed"
	}
	if b.Broke != nil {
		l.Detail = append(l.Detail, "it "+b.Broke.String())
	}
	if b.InWorld != "" {
		l.Detail = append(l.Detail, "the checks run in the directory itself, between two steps: "+oneLine(b.InWorld))
	}
	if len(b.Changed) > 0 {
		l.Detail = append(l.Detail,
			"changed since the beginning, and read by the check: "+strings.Join(b.Changed, ", "))
	}
	return l
}

// repairDetail says what was repaired of a reply that a user can change: a tool or a field that the endpoint
// refuses, a call that could not be read.
func repairDetail(names []string) (out []string) {
	for _, name := range names {
		kind, what, _ := strings.Cut(name, ":")
		i := slices.IndexFunc(op.Oddities(), func(o op.Oddity) bool { return o.Name == kind })
		if i < 0 || kind != op.RepairToolLeftOut && kind != op.RepairWithout && kind != op.RepairUnreadCall {
			continue
		}
		odd := op.Oddities()[i]
		out = append(out, strings.TrimPrefix(fmt.Sprintf("%s: %s; %s", what, odd.Sign, odd.Repair), ": "))
	}
	return out
}

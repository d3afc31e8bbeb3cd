package op

import "strings"

// ProjectedText returns an operation's text as the model sees it, which its tok field counts.
func ProjectedText(b Body) string {
	switch b := b.(type) {
	case *TaskOpened:
		return b.System
	case *UserSaid:
		return b.Text
	case *CardsRecalled:
		if b.InResult() {
			return ""
		}
		return b.Text
	case *ModelReplied:
		var sb strings.Builder
		sb.WriteString(b.Text)
		for _, c := range b.Calls {
			sb.WriteString("\n" + c.Name + " " + c.Args)
		}
		return sb.String()
	case *ToolReturned:
		return b.Text
	case *PassDone:
		return strings.TrimSuffix(b.Block+"\n"+b.Words, "\n")
	case *JumpDone:
		return b.Words + "\n" + b.Notice
	}
	if own := OwnText(b); own != nil {
		return *own
	}
	return ""
}

// OwnText returns the text of an operation that the program writes to the model, or nil if it has
// none. The journal signs its marks, so that nothing else in the context can be taken for them.
func OwnText(b Body) *string {
	switch b := b.(type) {
	case *NoticeGiven:
		return &b.Text
	case *JobEnded:
		return &b.Notice
	case *ModeSet:
		return &b.Notice
	case *WorldChanged:
		return &b.Notice
	case *CheckRan:
		return &b.Notice
	case *HookRan:
		return &b.Notice
	case *WorldRestored:
		return &b.Notice
	case *StrategyGiven:
		return &b.Text
	case *TaskResumed:
		return &b.Notice
	case *WorldSaved:
		return &b.Mark
	// Words of a pass or a jump are the user's, and so are not signed as the program's.
	case *PassDone:
		return &b.Block
	case *JumpDone:
		return &b.Notice
	}
	return nil
}

// ReasonOf returns why the agent left a path, of an operation that records it.
func ReasonOf(b Body) string {
	switch b := b.(type) {
	case *JumpIntended:
		return b.Why()
	case *MailDelivered:
		return b.Reason
	}
	return ""
}

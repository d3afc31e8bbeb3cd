package mail

import (
	"fmt"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
)

// Message is the text of a D-Mail, apart from the task, so that its wording can be tested.
type Message struct {
	op.Mail
	To, From      int      // the steps it goes to and comes from
	Ops           op.Range // what it replaces
	Messages      int      // how many it removed
	notice.Ledger          // of what it replaces
	Changed       []string // files that differ from the checkpoint's
	Unknown       string   // why that is not known
	Left          string   // steps before the checkpoint that the directory does not hold
	Later         string   // checkpoints after this one
}

func (m Message) String() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "[D-Mail from future self]\n%s\n[/D-Mail]\n", strings.TrimSpace(m.Message))
	which := fmt.Sprint("checkpoint ", m.Checkpoint)
	if m.Numbered {
		which += fmt.Sprintf(", the end of step %d", m.To)
	}
	fmt.Fprintf(&sb, "You wrote this in step %d and sent it to %s. It replaces the %d messages that came in between; "+
		"they are ops %s, and recall with an op number opens one again. The user was not shown this D-Mail: go on "+
		"with their request.",
		m.From, which, m.Messages, m.Ops)
	if m.RestoreFiles {
		sb.WriteString("\nThe files went back, too: the notice of the jump says what that changed.")
	} else {
		m.writeStanding(&sb)
	}
	if len(m.Unsure) > 0 {
		sb.WriteString("\nOf unknown outcome, because the program stopped while they ran; look before you repeat one:")
		notice.WriteItems(&sb, m.Unsure)
	}
	if m.Later != "" {
		fmt.Fprintf(&sb, "\nLater checkpoints are still there and can be sent to: %s.", m.Later)
	}
	return sb.String()
}

// writeStanding lists what the removed steps left behind.
func (m Message) writeStanding(sb *strings.Builder) {
	sb.WriteString("\nThe files did not go back: the directory is as you left it, and work may already be done " +
		"there. Look before you do it again.")
	switch {
	case m.Unknown != "":
		fmt.Fprintf(sb, "\nWhich files changed since then is not known: %s.", m.Unknown)
	case len(m.Changed) == 0:
		sb.WriteString("\nNo file has changed since then.")
	default:
		fmt.Fprintf(sb, "\nChanged since then, so that what you read of them before is out of date: %s.",
			notice.List(m.Changed, len(m.Changed)))
	}
	if m.Left != "" {
		fmt.Fprintf(sb, "\nThe directory does not hold the work of steps %s: a jump had left them.", m.Left)
	}
	if len(m.Effects) > 0 {
		sb.WriteString("\nDone as well, outside the directory:")
		notice.WriteItems(sb, m.Effects)
	}
	m.WriteDelivered(sb)
}

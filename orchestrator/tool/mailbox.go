package tool

import (
	"context"
	"fmt"

	"anamnesis/opstream/op"
)

// Mailbox is what the D-Mail tools may ask of the task they are part of.
type Mailbox interface {
	// CheckMail returns the request by which a D-Mail is sent. The error is shown
	// to the model and says what is wrong with it.
	CheckMail(m op.Mail) (*op.JumpRequested, error)
	// MarkCheckpoint numbers the end of the present step, for
	// the call of that id. A *CallError is shown to the model; any other error
	// is the program's own.
	MarkCheckpoint(ctx context.Context, call string) (number int, err error)
}

// MailUnsent is the result of a call that sends a D-Mail. When the D-Mail goes
// out the result leaves the context with everything else after its checkpoint,
// so whoever reads it reads of one that did not.
const MailUnsent = "If you can read this, the D-Mail was not sent: the step it belongs to was cut short, or what came next says why."

// CheckpointCreated is the result of a call that numbers the end of its step.
func CheckpointCreated(number int) string {
	return fmt.Sprintf("Checkpoint %d created: it is the end of this step. checkpoint_count: %d.", number, number+1)
}

package tool

import (
	"context"
	"fmt"

	"anamnesis/opstream/op"
)

// Mailbox is the interface of the D-Mail tools to their task.
type Mailbox interface {
	// CheckMail returns the request that sends a D-Mail. The error explains to the model what
	// is wrong with it.
	CheckMail(m op.Mail) (*op.JumpRequested, error)
	// MarkCheckpoint numbers the end of the step under way, for the call with that id. A
	// *CallError is shown to the model; any other error is internal.
	MarkCheckpoint(ctx context.Context, call string) (number int, err error)
}

// MailUnsent is the result of a call that sends a D-Mail. When the D-Mail is delivered, the
// result leaves the context with everything else after its checkpoint; so a model that reads
// it did not send one.
const MailUnsent = "If you can read this, the D-Mail was not sent: the step it belongs to was cut short, or what came next says why."

// CheckpointCreated returns the result of a call that numbers the end of its step.
func CheckpointCreated(number int) string {
	return fmt.Sprintf("Checkpoint %d created: it is the end of this step. checkpoint_count: %d.", number, number+1)
}

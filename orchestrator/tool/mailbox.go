package tool

import "fmt"

// MailUnsent is the result of a call that sends a D-Mail. When the D-Mail is delivered, the
// result leaves the context with everything else after its checkpoint; so a model that reads
// it did not send one.
const MailUnsent = "If you can read this, the D-Mail was not sent: the step it belongs to was cut short, or what " +
	"came next says why."

// CheckpointCreated returns the result of a call that numbers the end of its step.
func CheckpointCreated(number int) string {
	return fmt.Sprintf("Checkpoint %d created: it is the end of this step. checkpoint_count: %d.", number, number+1)
}

package tool

import (
	"context"

	"anamnesis/orchestrator/guard"
)

// Source returns tools that change while a task runs: those of a server, or of files a user
// edits. It is asked before every request to the model, so that a change takes effect at the
// next step.
type Source interface {
	// Tools returns the present tools. It blocks only while it cannot know them, for a bounded
	// time. Failures are News, not errors: they affect only the source's own tools.
	Tools(ctx context.Context) Offer
}

// Held is a Source that starts programs of a project. Hold is called before the first call of
// Tools, with the task's sandbox; nil: there is none.
type Held interface {
	Source
	Hold(box *guard.Sandbox)
}

// Offer is what a source has at one moment.
type Offer struct {
	// Version differs from that of every earlier offer with other tools.
	Version uint64
	// Tools keep their order as long as they are the same.
	Tools []Tool
	// News are lines about changes since the last offer, for the model and the user: a server
	// that is gone, a file that cannot be read.
	News []string
}

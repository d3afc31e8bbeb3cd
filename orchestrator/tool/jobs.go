package tool

import (
	"context"
	"io"
	"time"

	"anamnesis/opstream/op"
)

// Jobs start the background commands of a task. A Tool gets them in its Env. Errors are shown to
// the model.
type Jobs interface {
	// Begin starts a job and returns its id when it runs. A job ends with the task's process,
	// by a jump to before its beginning, or by the tool TaskStop.
	Begin(ctx context.Context, j JobStart) (id string, err error)
}

// JobStart is what Begin starts.
type JobStart struct {
	Call    string
	Command string // for users
	Timeout time.Duration
	// Run runs the command until its end or ctx's. It calls started before the
	// command begins, and writes the output to out, redacted.
	Run func(ctx context.Context, out io.Writer, started func(op.ToolStarted) error) (JobEnd, error)
}

// JobEnd is how a job's command ended.
type JobEnd struct {
	Exit     int
	TimedOut bool
	Note     string // a further remark; may be empty
	Network  bool   // the output holds text from outside; unknown, and not set, for commands
}

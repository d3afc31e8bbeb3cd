package tool

import (
	"context"
	"io"
	"time"

	"anamnesis/opstream/op"
)

// Jobs are the background commands of a task. A Tool gets them in its Env. Errors are shown to
// the model.
type Jobs interface {
	// Begin starts a job and returns its id when it runs. A job ends with the task's process,
	// by a jump to before its beginning, or by Stop.
	Begin(j JobStart) (id string, err error)
	// List returns the jobs of the task, oldest first, including those of earlier processes.
	List() ([]Job, error)
	// Output reads a job's output from byte from on, at most n bytes; a negative from counts
	// from the end.
	Output(id string, from int64, n int) (JobOutput, error)
	// Wait returns when the job has ended, limit has passed, or ctx ends.
	Wait(ctx context.Context, id string, limit time.Duration) error
	// Stop ends a job and everything it started.
	Stop(id string) (Job, error)
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

// Job is one job.
type Job struct {
	ID, Command string
	Why         string // see op.JobEnded; empty while it runs
	Exit        int
	Bytes       int64 // of output so far
	Note        string
	Network     bool // see JobEnd
}

// JobOutput is a piece of a job's output.
type JobOutput struct {
	Job        Job
	Text       string
	From, Next int64 // its byte range
	Dropped    int64 // bytes at the end that were dropped
}

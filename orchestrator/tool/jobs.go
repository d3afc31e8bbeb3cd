package tool

import (
	"context"
	"io"
	"time"

	"anamnesis/opstream/op"
)

// Jobs are the commands of a task that outlive their call. A Tool gets them in
// its Env. Errors are shown to the model.
type Jobs interface {
	// Begin starts a job and returns its id when it runs. It is ended with the
	// task's process, by a jump to before its beginning, or by Stop.
	Begin(j JobStart) (id string, err error)
	// List returns the jobs of the task, the oldest first, those of earlier processes
	// among them.
	List() ([]Job, error)
	// Output reads a job's output from byte from on, at most n bytes; a negative
	// from counts from the end.
	Output(id string, from int64, n int) (JobOutput, error)
	// Wait returns when the job has ended, limit is over, or ctx ends.
	Wait(ctx context.Context, id string, limit time.Duration) error
	// Stop ends a job and everything it started.
	Stop(id string) (Job, error)
}

// JobStart is what Begin starts.
type JobStart struct {
	Call    string
	Command string // for people
	Timeout time.Duration
	// Run runs the command until its end or ctx's. It calls started before the
	// command begins, and writes the output to out, redacted.
	Run func(ctx context.Context, out io.Writer, started func(op.ToolStarted) error) (JobEnd, error)
}

// JobEnd is how a job's command ended.
type JobEnd struct {
	Exit     int
	TimedOut bool
	Note     string // what else there is to say; may be empty
	Network  bool   // the output holds text from outside; not known, and not set, for commands
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
	From, Next int64 // the bytes it is of
	Dropped    int64 // bytes at the end that were not kept
}

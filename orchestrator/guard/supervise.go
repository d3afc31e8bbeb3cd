package guard

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"anamnesis/opstream/op"
)

// The times of a command's end. Those after the limit, except stormTime, add up to less than a
// second, so that Run returns within a second of it.
const (
	// lingerTime is how long processes that outlive the command, such as the tee of a process
	// substitution, may take to end by themselves.
	lingerTime = 100 * time.Millisecond
	// busyTime is how long they may take while they are at work and the limit is not reached.
	busyTime = 2 * time.Second
	// graceTime is the time between SIGTERM and SIGKILL.
	graceTime = 200 * time.Millisecond
	// killTime bounds the rounds of SIGKILL. Processes that survive (in uninterruptible sleep,
	// or of another user) are reported.
	killTime = 300 * time.Millisecond
	// stormTime bounds them while new processes keep appearing: a fork bomb.
	stormTime = 15 * time.Second
	// backstopTime after the limit, Run stops waiting for its supervisor and
	// ends the tree itself.
	backstopTime = 600 * time.Millisecond
	// drainTime is how long Run continues to read after everything has ended.
	drainTime = 150 * time.Millisecond
	// readyTime bounds the supervisor's own start.
	readyTime = 20 * time.Second
)

// MaxTimeout is the longest a command may run.
const MaxTimeout = 24 * time.Hour

// maxProcessesNamed bounds the processes an Outcome lists.
const maxProcessesNamed = 20

const (
	// supervisorName is the supervisor's argv[0].
	supervisorName = "anamnesis-supervisor"
	// supervisorMark is set in the supervisor's own environment.
	supervisorMark = "ANAMNESIS_SUPERVISOR"
)

// RunVariable is set in the environment of every command to a value that identifies its run.
// It finds the command's processes if their supervisor was killed.
const RunVariable = "ANAMNESIS_RUN"

// StartError reports that the system would not start the command: its directory or program is
// missing, its arguments are too long.
type StartError struct {
	Reason string
}

func (e *StartError) Error() string { return e.Reason }

// Stream distinguishes a command's two outputs.
type Stream int

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// Command is what Run runs.
type Command struct {
	Path string   // the program, absolute
	Args []string // argv, with the program's name first
	Dir  string   // working directory, absolute
	Env  []string // the whole environment; see Environ
	// Stdin is what the command reads; nil: nothing. Run closes it once the command has it, so
	// that a writer at its other end notices when the command ends.
	Stdin *os.File
	// Timeout ends the command; above zero, at most MaxTimeout.
	Timeout time.Duration
	// Sandbox confines the command; nil: nothing does.
	Sandbox *Sandbox
	// Call is the id of the tool call, passed on in op.ToolStarted.
	Call string
	// Output receives what the command writes, in arrival order, one call at a time; p is only
	// valid during the call. Two writes that wait at the same moment on different streams have
	// no order.
	Output func(s Stream, p []byte)
	// Started, if set, is called with the supervisor's identity before the
	// command begins; an error keeps it from running.
	Started func(op.ToolStarted) error
}

// Process is a process that outlived its command.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"` // its command line, shortened
	// Seconds are how long it has run; only of Outcome.Running.
	Seconds int `json:"seconds,omitempty"`
}

func (p Process) String() string { return fmt.Sprintf("%d %s", p.PID, p.Name) }

// Outcome is how a command ended.
type Outcome struct {
	// Exit is the exit code; 128+n when signal n ended the command.
	Exit int
	// TimedOut and Canceled report why it was ended, if it was.
	TimedOut, Canceled bool
	// Running lists the processes that were at work when the time was up: those without living
	// children, at most 20. Empty if it is unknown.
	Running []Process
	// Left lists processes that were alive when the command had ended and were ended, too: at
	// most 20. NLeft counts them all.
	Left  []Process
	NLeft int
	// Alive lists processes that could not be ended.
	Alive []Process
	// Note is a remark for the model about an unusual end; usually empty.
	Note string
}

// Overdue is the note on a command that a [Deadline] ended.
const Overdue = "the command was ended: the bucket that keeps the task could not be reached in time"

// ErrNoSupervisor: this program starts itself as the supervisor of its commands, and its main
// would not notice.
var ErrNoSupervisor = errors.New("this program's main does not call guard.SuperviseMain; call it first in main")

// supervised is set by SuperviseMain.
var supervised atomic.Bool

func (c *Command) check() error {
	switch {
	case !supervised.Load():
		return fmt.Errorf("run command: %w", ErrNoSupervisor)
	case c.Path == "" || len(c.Args) == 0:
		return errors.New("run command: no program given")
	case c.Timeout <= 0 || c.Timeout > MaxTimeout:
		return fmt.Errorf("run command %s: timeout %v is not between 0 and %v", c.Path, c.Timeout, MaxTimeout)
	}
	return nil
}

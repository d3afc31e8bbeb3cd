package guard

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/orchestrator/guard/confine"
)

// The supervisor's two extra file descriptors.
const (
	controlFD = 3 // read: the request, the go byte, then EOF, which means stop
	reportFD  = 4 // write: ready, then the report
)

// goByte on the control pipe lets the command begin.
const goByte = 'g'

// request is the supervisor's input, in gob: JSON would change paths that are not UTF-8, and
// the sandbox would then hide and protect other paths than intended.
type request struct {
	Path     string
	Args     []string
	Dir      string
	Env      []string
	Timeout  time.Duration
	Run      string        // the value of RunVariable
	Confine  *confine.Spec // if nil, the command is not confined
	Deadline int           // descriptor of a file with the Deadline; 0: none
	Observe  string        // directory whose changes go to logFD; empty: none
}

// report is the supervisor's output: a first line with Ready, a last one with the outcome.
type report struct {
	Outcome
	Ready bool
	Error string // the command could not be started
}

// SuperviseMain turns this process into a supervisor if Run started it as one, and then does
// not return. Call it before anything else in main, and in TestMain of every test that runs
// commands.
func SuperviseMain() {
	supervised.Store(true)
	if len(os.Args) != 1 || os.Args[0] != supervisorName || os.Getenv(supervisorMark) == "" {
		return
	}
	// The thread that starts the command must outlive it: otherwise the command would get the
	// signal of its parent's death.
	runtime.LockOSThread()
	os.Exit(supervise())
}

// supervise runs one command and returns the supervisor's own exit code, which is not used.
func supervise() int {
	unix.CloseOnExec(controlFD)
	unix.CloseOnExec(reportFD)
	// The command must not inherit descriptors left open above these; a kernel without
	// close_range leaves them open.
	_ = unix.CloseRange(controlFD, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	control := bufio.NewReader(os.NewFile(controlFD, "control"))
	out := json.NewEncoder(os.NewFile(reportFD, "report"))
	fail := func(err error) int {
		_ = out.Encode(report{Error: err.Error()})
		return 1
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail(fmt.Errorf("become the reaper of the command's processes: %w", err))
	}
	stop := make(chan struct{}, 1)
	watchSignals(stop)
	var r request
	if err := gob.NewDecoder(control).Decode(&r); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 1 // the parent has ended
	} else if err != nil {
		return fail(fmt.Errorf("read the request: %w", err))
	}
	if r.Confine != nil {
		if err := limitProcesses(r.Confine.Processes); err != nil {
			return fail(fmt.Errorf("limit the command's processes: %w", err))
		}
	}
	if err := confine.Enter(r.Confine); err != nil {
		return fail(err)
	}
	if r.Observe != "" {
		log := os.NewFile(logFD, "writes")
		if err := confine.Observe(r.Observe, log); err != nil {
			_, _ = log.WriteString("/\x00") // it may change everything
		}
	}
	if err := out.Encode(report{Ready: true}); err != nil {
		return 1
	}
	if b, err := control.ReadByte(); err != nil || b != goByte {
		return 1 // called off before it began
	}
	go func() {
		_, _ = io.Copy(io.Discard, control)
		notify(stop)
	}()
	passed := make(chan struct{})
	if r.Deadline > 0 {
		d := os.NewFile(uintptr(r.Deadline), "deadline")
		if overdue(d) { // the program was stopped since the command was allowed: another machine may have the task
			_ = out.Encode(report{Outcome: Outcome{Exit: 128 + int(unix.SIGKILL), Note: Overdue}})
			return 0
		}
		go expire(d, passed, func() { notify(stop) })
	}
	pid, err := start(r)
	if err != nil {
		return fail(err)
	}
	ended := watch(pid, r.Timeout, stop, reachesOnlyOwn(r.Confine))
	select {
	case <-passed:
		ended.Canceled, ended.Note = false, Overdue
	default:
	}
	// Nothing writes any more except processes that could not be ended: the outputs end with
	// the report, not with this process.
	_ = unix.Close(1)
	_ = unix.Close(2)
	_ = out.Encode(report{Outcome: ended})
	return 0
}

// watchSignals turns a SIGTERM, and the parent's death, into stop. The other signals of a
// terminal are caught and dropped: the command would inherit ignored ones.
func watchSignals(stop chan struct{}) {
	parent := os.Getppid()
	sigs := make(chan os.Signal, 8)
	signal.Notify(sigs, unix.SIGTERM, unix.SIGUSR1, unix.SIGINT, unix.SIGQUIT, unix.SIGHUP)
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGUSR1), 0, 0, 0) // beside the pipe
	go func() {
		for s := range sigs {
			if s == unix.SIGTERM || s == unix.SIGUSR1 && os.Getppid() != parent {
				notify(stop)
			}
		}
	}()
}

// notify sets a flag that is a channel of one place.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// start starts the command in its own session with this process's output.
func start(r request) (int, error) {
	pid, err := syscall.ForkExec(r.Path, r.Args, &syscall.ProcAttr{
		Dir:   r.Dir,
		Env:   append(r.Env, RunVariable+"="+r.Run),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s in %s: %w", r.Path, r.Dir, err)
	}
	return pid, nil
}

// reap waits for every process of the tree. It sends the exit code of the command when that has ended, and
// closes empty when the last process has: this process adopts orphans, so having no child means that nothing
// is alive.
func reap(pid int, first chan<- int, empty chan<- struct{}) {
	defer close(empty)
	for {
		var ws unix.WaitStatus
		got, err := unix.Wait4(-1, &ws, 0, nil)
		if err != nil && err != unix.EINTR { // ECHILD
			return
		}
		if err == nil && got == pid {
			first <- exitCode(ws)
		}
	}
}

func exitCode(ws unix.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// watch waits for the command, its limit or the order to stop, ends everything, and reports
// the outcome.
func watch(pid int, timeout time.Duration, stop <-chan struct{}, alone bool) (r Outcome) {
	first, empty := make(chan int, 1), make(chan struct{})
	go reap(pid, first, empty)
	limit := time.After(timeout)
	select {
	case r.Exit = <-first:
		left, over := linger(empty, stop, limit)
		if over {
			return r
		}
		r.Left, r.NLeft = describeAll(left), len(left)
		r.Alive = describeAll(tearDown(empty, alone))
		return r
	case <-limit:
		r.TimedOut = true
		if alone { // otherwise looking would take seconds among a thousand that run
			_ = unix.Kill(-1, unix.SIGSTOP)
		}
		r.Running = atWork(descendants(os.Getpid()))
	case <-stop:
		r.Canceled = true
	}
	r.Alive = describeAll(tearDown(empty, alone))
	r.Exit = 128 + int(unix.SIGKILL)
	select {
	case r.Exit = <-first:
	default: // the command itself is among those alive
	}
	return r
}

// linger waits for what the command left behind to end by itself: lingerTime, and up to
// busyTime while some of it is at work, since on a busy machine it may not have run yet. The
// stop order and the limit end it early. It returns what is left, and whether nothing is.
func linger(empty, stop <-chan struct{}, limit <-chan time.Time) (left []proc, over bool) {
	busy := func(p proc) bool { return p.state == 'R' || p.state == 'D' }
	for rest := busyTime; ; rest -= lingerTime {
		wait := rest > 0
		select {
		case <-empty:
			return nil, true
		case <-stop:
			wait = false
		case <-limit:
			wait = false
		case <-time.After(lingerTime):
		}
		left = descendants(os.Getpid())
		if !wait || !slices.ContainsFunc(left, busy) {
			return left, false
		}
	}
}

// reachesOnlyOwn reports whether this thread can signal no other processes than the command's:
// it is the first process of a PID namespace, or Landlock confines its signals.
func reachesOnlyOwn(c *confine.Spec) bool {
	if c == nil || os.Getpid() == 1 {
		return c != nil && c.Parts.PIDs
	}
	return c.Parts.Landlock >= confine.LandlockSignals && unix.Kill(os.Getppid(), 0) == unix.EPERM
}

// tearDown ends every descendant, with SIGTERM first, and returns those that could not be
// ended. alone: see reachesOnlyOwn.
func tearDown(empty <-chan struct{}, alone bool) []proc {
	me := os.Getpid()
	var alive []proc
	if alone {
		_ = unix.Kill(-1, unix.SIGTERM)
		_ = unix.Kill(-1, unix.SIGCONT)
	} else {
		for _, p := range descendants(me) {
			_ = p.send(unix.SIGTERM)
		}
	}
	select {
	case <-empty:
		return nil
	case <-time.After(graceTime):
	}
	// Only the kernel's report that no child is left counts: a scan can miss a process that
	// was started meanwhile.
	for deadline := time.Now().Add(killTime); ; {
		if alone { // this signals all of them at once, faster than they fork
			_ = unix.Kill(-1, unix.SIGKILL)
		}
		alive, _ = killAll(func() ([]proc, error) { return descendants(me), nil }, killTime)
		select {
		case <-empty:
			return nil
		case <-time.After(killPause):
		}
		if time.Now().After(deadline) {
			return alive
		}
	}
}

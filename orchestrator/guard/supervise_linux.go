package guard

import (
	"cmp"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/quarantine"
)

// outputBlock is how much of an output is read at once, in bytes.
const outputBlock = 64 << 10

// maxDrainBytes bounds what is read of an output after drainTime: the largest pipe.
const maxDrainBytes = 1 << 20

// maxReportBytes bounds the supervisor's report.
const maxReportBytes = 1 << 20

// Missing lists what this platform lacks, one sentence each.
func Missing() []string { return nil }

// Run runs a command under a supervisor and returns when no process it started is alive
// (Outcome.Alive lists exceptions). It returns within a second of the timeout, and of ctx's
// end, or within 16 seconds while a fork bomb is being ended.
//
// The error is ctx's if ctx ended, with an Outcome of what happened until then; a *StartError
// if the system would not start the command; otherwise an internal failure. A command that
// fails is not an error. Run may be called concurrently.
func Run(ctx context.Context, c Command) (Outcome, error) {
	box, end, err := c.Sandbox.guarded()
	if err != nil {
		if c.Stdin != nil {
			c.Stdin.Close()
		}
		return Outcome{}, fmt.Errorf("run command: %w", err)
	}
	c.Sandbox = box
	o, err := run(ctx, c)
	o.Note = quarantine.JoinNotes(o.Note, end())
	return o, err
}

// run is Run in a world whose git directories are guarded.
func run(ctx context.Context, c Command) (Outcome, error) {
	if c.Stdin != nil {
		defer c.Stdin.Close()
	}
	if err := c.check(); err != nil {
		return Outcome{}, err
	}
	if err := cmp.Or(awaitDeadline(ctx), ctx.Err(), c.Sandbox.ready()); err != nil {
		return Outcome{}, fmt.Errorf("run command: %w", err)
	}
	log, ended := c.Sandbox.observe()
	defer ended()
	s, err := startSupervisor(ctx, c.Sandbox, c.Stdin, log)
	if err != nil {
		return Outcome{}, fmt.Errorf("start the supervisor: %w", err)
	}
	defer s.close()
	if c.Stdin != nil {
		c.Stdin.Close() // the supervisor has it now
	}
	release := context.AfterFunc(ctx, s.stop)
	defer release()
	if err := s.prepare(c); err != nil {
		s.abandon()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return Outcome{}, fmt.Errorf("run command: %w", err)
	}
	if c.Started != nil {
		if err := c.Started(s.id(c.Call)); err != nil {
			s.abandon()
			return Outcome{}, fmt.Errorf("record the start of call %s: %w", c.Call, err)
		}
	}
	var readers sync.WaitGroup
	s.forward(&readers, c.Output)
	r, err := s.wait(ctx, c.Timeout)
	// Everything that could write has ended; what it wrote is in the pipes. Only processes
	// that could not be ended keep the pipes open.
	end := time.Now().Add(drainTime)
	_ = s.stdout.SetReadDeadline(end)
	_ = s.stderr.SetReadDeadline(end)
	readers.Wait()
	if err != nil {
		return Outcome{}, fmt.Errorf("run command: %w", err)
	}
	if ctx.Err() != nil && r.Canceled {
		return r, fmt.Errorf("run command: %w", context.Cause(ctx))
	}
	return r, nil
}

// supervisor is the parent's end of one supervisor process.
type supervisor struct {
	cmd            *exec.Cmd
	start          uint64
	control        *os.File // write; closing it is the order to stop
	report         *os.File // read
	reports        *json.Decoder
	stdout, stderr *os.File // read
	once           sync.Once
	exited         chan struct{} // closed when the process was reaped
	group          *pidsGroup
	namespace      bool // it is the first process of a PID namespace
	observed       bool
	deadline       int // its descriptor of the deadline; 0: none
}

// startSupervisor starts this program again as a supervisor, in the namespaces of a sandbox if
// there is one, with the standard input that its command inherits. Changes go to log, if not
// nil.
func startSupervisor(ctx context.Context, box *Sandbox, stdin, log *os.File) (_ *supervisor, err error) {
	attr, err := box.attr()
	if err != nil {
		return nil, err
	}
	var files [8]*os.File // four pipes: the even ends are read from
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
		}
	}()
	for i := 0; i < len(files); i += 2 {
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	// A build with the race detector would sleep for a second at its end.
	env := []string{supervisorMark + "=1", "GOTRACEBACK=single", "GORACE=atexit_sleep_ms=0"}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{supervisorName}, Env: env, Dir: "/",
		Stdout: files[5], Stderr: files[7],
		ExtraFiles:  []*os.File{files[0], files[3]},
		SysProcAttr: attr,
	}
	if stdin != nil {
		cmd.Stdin = stdin
	}
	if log != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, log)
	}
	if box != nil && box.git != nil {
		if lock := box.git.Lock(); lock != nil { // it shows that commands are alive, even without this process
			cmd.ExtraFiles = append(cmd.ExtraFiles, lock)
		}
	}
	deadline := 0
	if d, ok := ctx.Value(deadlineKey{}).(due); ok {
		deadline = controlFD + len(cmd.ExtraFiles)
		cmd.ExtraFiles = append(cmd.ExtraFiles, d.f)
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for _, theirs := range []int{0, 3, 5, 7} {
		files[theirs].Close()
	}
	s := &supervisor{
		cmd: cmd, control: files[1], report: files[2],
		reports: json.NewDecoder(io.LimitReader(files[2], maxReportBytes)),
		stdout:  files[4], stderr: files[6], exited: make(chan struct{}), observed: log != nil, deadline: deadline,
	}
	if p, err := readProc(cmd.Process.Pid); err == nil {
		s.start = p.start
	}
	go func() {
		_ = cmd.Wait() // how it ended is in the report
		close(s.exited)
	}()
	if box != nil {
		s.namespace, s.group = box.parts.PIDs, newPidsGroup(box.procs)
		if s.group.add(cmd.Process.Pid) != nil { // a tree that only looks delegated
			s.group.remove()
			s.group = nil
		}
	}
	return s, nil
}

// prepare sends the request and waits until the supervisor is ready.
func (s *supervisor) prepare(c Command) error {
	r := request{
		Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Sandbox.Environ(c.Env), Timeout: c.Timeout,
		Run: runValue(s.id("")), Confine: c.Sandbox.spec(), Deadline: s.deadline,
	}
	if s.observed {
		r.Observe = c.Sandbox.o.World
	}
	deadline := time.Now().Add(readyTime)
	_ = s.control.SetWriteDeadline(deadline)
	_ = s.report.SetReadDeadline(deadline)
	if err := gob.NewEncoder(s.control).Encode(r); err != nil {
		return fmt.Errorf("hand the command to the supervisor: %w", err)
	}
	var begun report
	if err := s.reports.Decode(&begun); err != nil {
		return fmt.Errorf("the supervisor did not start: %w", err)
	}
	if begun.Error != "" || !begun.Ready {
		return &StartError{begun.Error}
	}
	_ = s.report.SetReadDeadline(time.Time{})
	return nil
}

// id identifies the supervisor as the operation stream records it.
func (s *supervisor) id(call string) op.ToolStarted {
	return op.ToolStarted{Call: call, PID: s.cmd.Process.Pid, StartTime: s.start, BootID: bootID()}
}

// forward reads both outputs until they end.
func (s *supervisor) forward(wg *sync.WaitGroup, output func(Stream, []byte)) {
	var mu sync.Mutex
	emit := func(stream Stream, p []byte) {
		if len(p) > 0 && output != nil {
			mu.Lock()
			defer mu.Unlock()
			output(stream, p)
		}
	}
	read := func(stream Stream, f *os.File) {
		buf := make([]byte, outputBlock)
		for {
			n, err := f.Read(buf)
			emit(stream, buf[:n])
			if err != nil {
				if !errors.Is(err, io.EOF) {
					drain(f, func(p []byte) { emit(stream, p) })
				}
				return
			}
		}
	}
	wg.Go(func() { read(Stdout, s.stdout) })
	wg.Go(func() { read(Stderr, s.stderr) })
}

// drain reads what is in a pipe without waiting for more, after the time for reading is
// over, so that a late reader on a busy machine loses nothing.
func drain(f *os.File, emit func([]byte)) {
	if f.SetReadDeadline(time.Time{}) != nil {
		return
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, outputBlock)
	for total := 0; total < maxDrainBytes; {
		var n int
		var failed error
		err := conn.Read(func(fd uintptr) bool {
			n, failed = unix.Read(int(fd), buf)
			return true
		})
		if errors.Is(failed, unix.EINTR) {
			continue
		}
		if err != nil || failed != nil || n == 0 {
			return
		}
		total += n
		emit(buf[:n])
	}
}

// wait lets the command begin and waits for the report. If the supervisor is stuck or was
// killed, it ends the process tree itself.
func (s *supervisor) wait(ctx context.Context, timeout time.Duration) (Outcome, error) {
	if _, err := s.control.Write([]byte{goByte}); err != nil && ctx.Err() == nil {
		return Outcome{}, fmt.Errorf("let the command begin: %w", err)
	}
	got := make(chan error, 1)
	var r report
	go func() { got <- s.reports.Decode(&r) }()
	limit := time.NewTimer(timeout + backstopTime)
	defer limit.Stop()
	var storm time.Time // when a supervisor that is at work is waited for no longer
	canceled := ctx.Done()
	for {
		select {
		case err := <-got:
			if err != nil {
				return s.rescue(ctx, !storm.IsZero() && ctx.Err() == nil)
			}
			if r.Error != "" {
				return Outcome{}, &StartError{r.Error}
			}
			return r.Outcome, nil
		case <-canceled:
			canceled = nil
			limit.Reset(backstopTime)
		case <-limit.C:
			// A supervisor that runs or sleeps may still be ending a tree that forks as fast as it is killed: it gets
			// more time, and the tree may not grow meanwhile.
			if p, err := readProc(s.cmd.Process.Pid); err == nil && p.start == s.start &&
				(p.state == 'R' || p.state == 'S') && (storm.IsZero() || time.Now().Before(storm)) {
				if storm.IsZero() {
					storm = time.Now().Add(stormTime)
					s.group.close()
				}
				limit.Reset(backstopTime)
				continue
			}
			o, err := s.rescue(ctx, ctx.Err() == nil)
			_ = s.report.SetReadDeadline(time.Now())
			<-got
			return o, err
		}
	}
}

// rescue ends the process tree of a supervisor that did not report.
func (s *supervisor) rescue(ctx context.Context, timedOut bool) (Outcome, error) {
	id := s.id("")
	o := Outcome{Exit: 128 + int(unix.SIGKILL), TimedOut: timedOut, Canceled: ctx.Err() != nil}
	s.group.close()
	if s.namespace { // its end is the end of all others, however many they are
		s.kill()
		select {
		case <-s.exited:
		case <-time.After(killTime):
		}
	}
	alive, err := killAll(func() ([]proc, error) {
		found, err := ofRun(id)
		return append(found, s.group.processes(s.cmd.Process.Pid)...), err
	}, killTime)
	if err != nil {
		return o, err
	}
	s.kill()
	o.Alive = describeAll(alive)
	if !o.TimedOut && !o.Canceled {
		o.Note = "the command's supervisor was killed, probably by the command itself; its exit code is not known " +
			"and what it had started was ended"
	}
	return o, nil
}

// stop orders the supervisor to end everything. It may be called repeatedly
// and concurrently.
func (s *supervisor) stop() { s.once.Do(func() { s.control.Close() }) }

func (s *supervisor) kill() { _ = s.cmd.Process.Kill() }

// abandon ends a supervisor whose command has not begun.
func (s *supervisor) abandon() {
	s.stop()
	s.kill()
}

// close frees the pipes and waits for the supervisor, which should end; if it does not, it is
// killed.
func (s *supervisor) close() {
	s.stop()
	select {
	case <-s.exited:
	case <-time.After(drainTime):
		s.kill()
		<-s.exited
	}
	s.group.remove()
	s.report.Close()
	s.stdout.Close()
	s.stderr.Close()
}

package guard

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// maxProcBytes bounds what is read of one file under /proc.
const maxProcBytes = 1 << 20

// maxNameRunes bounds a process's shown command line.
const maxNameRunes = 100

// proc is one process as /proc/PID/stat describes it.
type proc struct {
	pid, ppid int
	start     uint64 // clock ticks since boot
	state     byte   // 'R', 'S', 'D', 'Z', …
	comm      string
}

// dead reports whether the process has ended and only waits to be reaped.
func (p proc) dead() bool { return p.state == 'Z' || p.state == 'X' }

// readProc reads one process. The error for a process that is gone is os.ErrNotExist or
// unix.ESRCH.
func readProc(pid int) (proc, error) {
	data, err := readSmall(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return proc{}, err
	}
	return parseStat(data)
}

// parseStat reads a line of /proc/PID/stat. The second field is the command's
// name in parentheses and may itself hold anything, so the last parenthesis
// ends it.
func parseStat(data []byte) (proc, error) {
	bad := func() (proc, error) {
		return proc{}, fmt.Errorf("parse process status %.80q: not as expected", data)
	}
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 1 || end < open {
		return bad()
	}
	// The fields after the name count from 3: state, ppid, …, 22 is starttime.
	f := strings.Fields(string(data[end+1:]))
	if len(f) < 20 || len(f[0]) != 1 {
		return bad()
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data[:open])))
	ppid, err1 := strconv.Atoi(f[1])
	start, err2 := strconv.ParseUint(f[19], 10, 64)
	if cmp.Or(err, err1, err2) != nil || pid <= 0 || ppid < 0 {
		return bad()
	}
	return proc{pid: pid, ppid: ppid, start: start, state: f[0][0], comm: string(data[open+1 : end])}, nil
}

// processes lists all processes. It omits those that end meanwhile.
func processes() ([]proc, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []proc
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, err := readProc(pid); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// descendants lists the living processes below root, nearest first, as far as they can be read.
func descendants(root int) []proc {
	all, _ := processes()
	return below(all, root)
}

func below(all []proc, root int) []proc {
	children := make(map[int][]proc)
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var found []proc
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			if seen[p.pid] {
				continue
			}
			seen[p.pid] = true
			queue = append(queue, p.pid)
			if !p.dead() {
				found = append(found, p)
			}
		}
	}
	return found
}

// ofRun lists the living processes of a run: those below its supervisor, if that is alive, and
// those that have its RunVariable. It omits the supervisor itself.
func ofRun(s op.ToolStarted) ([]proc, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	found := carrying(all, runValue(s))
	if slices.ContainsFunc(all, func(p proc) bool { return p.pid == s.PID && p.start == s.StartTime }) {
		found = append(found, below(all, s.PID)...)
	}
	return found, nil
}

// carrying selects the living processes whose environment has RunVariable with this value.
// Unreadable environments belong to other users.
func carrying(all []proc, run string) []proc {
	want := []byte(RunVariable + "=" + run)
	var found []proc
	for _, p := range all {
		if p.dead() || p.pid == os.Getpid() {
			continue
		}
		env, _ := readSmall(fmt.Sprintf("/proc/%d/environ", p.pid))
		if slices.ContainsFunc(bytes.Split(env, []byte{0}), func(kv []byte) bool { return bytes.Equal(kv, want) }) {
			found = append(found, p)
		}
	}
	return found
}

// send sends a signal to exactly this process, never to a later one with its id. A process
// that is gone is not an error.
func (p proc) send(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err == nil {
		defer unix.Close(fd)
	}
	now, readErr := readProc(p.pid)
	if readErr != nil || now.start != p.start {
		return nil
	}
	if err != nil { // a kernel without pidfd
		err = unix.Kill(p.pid, sig)
	} else {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d (%s): %w", p.pid, p.comm, err)
	}
	return nil
}

// describeAll returns processes in the form for users, at most maxProcessesNamed.
func describeAll(procs []proc) []Process {
	var list []Process
	for _, p := range procs[:min(len(procs), maxProcessesNamed)] {
		list = append(list, Process{PID: p.pid, Name: p.name()})
	}
	return list
}

// atWork returns the processes that wait for no other of the list, with their ages.
func atWork(procs []proc) []Process {
	leaves := slices.DeleteFunc(slices.Clone(procs), func(p proc) bool {
		return slices.ContainsFunc(procs, func(child proc) bool { return child.ppid == p.pid })
	})
	list := describeAll(leaves)
	var uptime float64 // zero if it cannot be read; ages are then unknown
	if data, err := readSmall("/proc/uptime"); err == nil {
		_, _ = fmt.Sscan(string(data), &uptime)
	}
	for i := range list {
		list[i].Seconds = max(0, int(uptime)-int(leaves[i].start/ticksPerSecond))
	}
	return list
}

// ticksPerSecond is the unit of times in /proc on every architecture; see proc_pid_stat(5).
const ticksPerSecond = 100

// name returns the process's command line on one line, or its short name.
func (p proc) name() string {
	data, _ := readSmall(fmt.Sprintf("/proc/%d/cmdline", p.pid))
	line := cmp.Or(strings.TrimSpace(string(bytes.ReplaceAll(data, []byte{0}, []byte{' '}))), p.comm)
	return quote.ClipMarked(quote.Squash(line), maxNameRunes)
}

// bootID identifies this boot of the machine; empty if unknown.
func bootID() string {
	data, _ := readSmall("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

// runValue returns the value of RunVariable for the command under a supervisor.
func runValue(s op.ToolStarted) string {
	boot, _, _ := strings.Cut(s.BootID, "-")
	return fmt.Sprintf("%d-%d-%s", s.PID, s.StartTime, boot)
}

// EndLeftover ends what a call left running when this program died: the supervisor that s
// names, if it is still that process, everything below it, and everything with the run's
// RunVariable. A living supervisor has killTime to do so itself. It returns nil if
// nothing is left, also after a reboot; the error names what could not be ended.
func EndLeftover(s op.ToolStarted) error {
	if s.PID <= 1 || s.BootID == "" || s.BootID != bootID() {
		return nil
	}
	find := func() ([]proc, error) {
		found, err := ofRun(s)
		if err != nil {
			return nil, err
		}
		if p, err := readProc(s.PID); err == nil && p.start == s.StartTime && !p.dead() {
			found = append(found, p)
		}
		return found, nil
	}
	// The supervisor notices its parent's death at once: let it finish.
	for deadline := time.Now().Add(graceTime + killTime); time.Now().Before(deadline); {
		p, err := readProc(s.PID)
		if err != nil || p.start != s.StartTime || p.dead() {
			break
		}
		time.Sleep(killPause)
	}
	alive, err := killAll(find, killTime)
	if err != nil {
		return fmt.Errorf("end what call %s left running: %w", s.Call, err)
	}
	if len(alive) > 0 {
		return fmt.Errorf("end what call %s left running: still alive: %v", s.Call, describeAll(alive))
	}
	return nil
}

// killPause is the pause between two rounds of killAll.
const killPause = 4 * time.Millisecond

// killAll ends the processes that find returns until it returns none, and returns those still
// alive. It first stops them: a process that forks takes the place of each one killed, but a
// stopped one does not fork, and keeps its place under a limit of processes. It gives up when
// find has returned the same ones for limit, and after stormTime at the latest.
func killAll(find func() ([]proc, error), limit time.Duration) ([]proc, error) {
	type identity struct {
		pid   int
		start uint64
	}
	seen := make(map[identity]bool)
	last, before := time.Now().Add(stormTime), 0
	for deadline := time.Now().Add(limit); ; {
		found, err := find()
		if err != nil || len(found) == 0 {
			return nil, err
		}
		sig, n, now := unix.SIGKILL, len(seen), time.Now()
		for _, p := range found {
			seen[identity{p.pid, p.start}] = true
		}
		if now.Before(last) && (len(seen) > n || len(found) < before) {
			deadline = now.Add(limit)
		}
		if before = len(found); len(seen) > n && now.Before(last) {
			sig = unix.SIGSTOP
		}
		for _, p := range found {
			_ = p.send(sig) // a refusal shows as a survivor
		}
		if now.After(deadline) {
			return found, nil
		}
		if sig == unix.SIGKILL {
			time.Sleep(killPause)
		}
	}
}

// readSmall reads at most maxProcBytes of a file of /proc.
func readSmall(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxProcBytes))
}

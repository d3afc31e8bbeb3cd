package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/guard/confine"
	"anamnesis/orchestrator/guard/quarantine"
)

// A command in a sandbox has at most processBase processes and threads, and
// processesPerCPU more for each processor.
const (
	processBase     = 512
	processesPerCPU = 256
)

// groupPrefix begins the names of this program's control groups; the id of the process that
// made the group follows.
const groupPrefix = "anamnesis-"

// pidsGroup is a control group that limits the processes of one command. A nil
// one limits nothing.
type pidsGroup struct{ dir string }

var groups atomic.Int64 // made by this process

// newPidsGroup makes a control group if this user may: of the pids controller of version 1, or
// in a delegated part of the tree of version 2. Otherwise it returns nil.
func newPidsGroup(limit int) *pidsGroup {
	parent := groupParent()
	if parent == "" {
		return nil
	}
	g := &pidsGroup{filepath.Join(parent, fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), groups.Add(1)))}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil
	}
	if err := g.write("pids.max", limit); err != nil {
		g.remove()
		return nil
	}
	return g
}

// groupParent returns the directory in which control groups with a limit of processes can be
// made; empty: none is known.
func groupParent() string {
	data, _ := readSmall("/proc/self/cgroup")
	all, _ := confine.Mounts()
	for line := range strings.Lines(string(data)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, path
		if len(f) != 3 || f[1] != "" && !slices.Contains(strings.Split(f[1], ","), "pids") {
			continue
		}
		for _, m := range all {
			fits := m.Kind == "cgroup2"
			if f[1] != "" {
				fits = m.Kind == "cgroup" && slices.Contains(strings.Split(m.Options, ","), "pids")
			}
			if !fits || !quarantine.Within(f[2], m.Root) {
				continue
			}
			rel, _ := filepath.Rel(m.Root, f[2])
			own := filepath.Join(m.Place, rel)
			if f[1] != "" {
				return own
			}
			// A group of version 2 that has processes has no subgroups with limits, unless it
			// is the root.
			for _, dir := range []string{own, filepath.Dir(own)} {
				control, err := readSmall(filepath.Join(dir, "cgroup.subtree_control"))
				if err == nil && shell.InList(string(control), "pids") {
					return dir
				}
			}
		}
	}
	return ""
}

func (g *pidsGroup) write(file string, n int) error {
	return os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.Itoa(n)), 0)
}

func (g *pidsGroup) add(pid int) error {
	if g == nil {
		return nil
	}
	return g.write("cgroup.procs", pid)
}

// close keeps the group's processes from starting others, and ends them where the kernel does that
// for a group. The supervisor is one of them.
func (g *pidsGroup) close() {
	if g != nil {
		_ = g.write("pids.max", 0)    // the caller always looks for new ones
		_ = g.write("cgroup.kill", 1) // only version 2 has it
	}
}

// processes lists the living processes of the group but one: also those that cleared their
// environment and whose supervisor is gone.
func (g *pidsGroup) processes(but int) (found []proc) {
	if g == nil {
		return nil
	}
	data, _ := readSmall(filepath.Join(g.dir, "cgroup.procs")) // of a removed group: none
	for text := range strings.FieldsSeq(string(data)) {
		pid, _ := strconv.Atoi(text)
		if p, err := readProc(pid); err == nil && pid != but && !p.dead() {
			found = append(found, p)
		}
	}
	return found
}

// remove removes the group. sweepGroups later removes one that still has a process.
func (g *pidsGroup) remove() {
	if g != nil {
		_ = os.Remove(g.dir)
	}
}

func sweepGroups() {
	parent := groupParent()
	if parent == "" {
		return
	}
	left, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	for _, dir := range left {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), groupPrefix), "-")
		if _, err := os.Stat("/proc/" + pid); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(dir)
		}
	}
}

// userLimit returns the RLIMIT_NPROC with which a command has at most limit processes. Since
// Linux 5.14 those of a user namespace are counted separately; otherwise all of the user's
// count.
func userLimit(limit int, ownNamespace bool) int {
	if ownNamespace && kernelFrom(5, 14) {
		return limit
	}
	all, err := processes()
	if err != nil {
		return 0
	}
	for _, p := range all {
		var st unix.Stat_t
		if !p.dead() && unix.Stat(fmt.Sprintf("/proc/%d", p.pid), &st) == nil && int(st.Uid) == os.Getuid() {
			threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
			limit += len(threads)
		}
	}
	return limit
}

func kernelFrom(major, minor int) bool {
	var name unix.Utsname
	var a, b int
	_ = unix.Uname(&name) // without a name the scan fails
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

// limitProcesses sets RLIMIT_NPROC of the supervisor, which its command inherits. It does not
// bind root. The supervisor counts itself, and a Go program that cannot start a thread ends:
// so it starts the ones it needs before.
func limitProcesses(n int) error {
	if n <= 0 {
		return nil
	}
	const threads = 8
	var ready sync.WaitGroup
	leave := make(chan struct{})
	for range threads {
		ready.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-leave
		}()
	}
	ready.Wait()
	close(leave)
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &now); err != nil {
		return err
	}
	limit := min(uint64(n), now.Max)
	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: limit, Max: limit})
}

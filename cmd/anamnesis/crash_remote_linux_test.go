package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"anamnesis/cmd/internal/exit"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// The variables that set how often TestCrashRemote ends a program, and the seed that it prints.
const (
	killsVariable = "ANAMNESIS_TEST_KILLS"
	seedVariable  = "ANAMNESIS_TEST_SEED"
)

// The number of programs that TestCrashRemote ends, and of those that it ends of one task.
const (
	remoteKills        = 24
	nightlyRemoteKills = 1000
	killsOfTask        = 6
	remoteWorkers      = 4 // they wait for leases most of the time
)

// setNumber reads a number from a variable.
func setNumber(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// counted is what happened to all tasks.
type counted struct{ kills, stops, cuts, terms, takers, labels, snapshots, lines atomic.Int64 }

// ended returns how many programs were ended.
func (c *counted) ended() uint64 {
	return uint64(c.kills.Load() + c.stops.Load() + c.cuts.Load() + c.terms.Load())
}

// TestCrashRemote ends programs that keep a task in a bucket, by SIGKILL, SIGSTOP, SIGTERM or a cut network, at random
// and at each request that makes something safe; each time another home and directory continues. What was safe stands,
// no call begins twice, and a machine that lost the task has no effects any more.
func TestCrashRemote(t *testing.T) {
	t.Parallel()
	heavy(t)
	kills := setNumber(t, killsVariable, remoteKills)
	if *nightly {
		kills = setNumber(t, killsVariable, nightlyRemoteKills)
	}
	seed := setNumber(t, seedVariable, rand.Uint64()%1_000_000)
	var all counted
	t.Run("all", func(t *testing.T) {
		for worker := range uint64(remoteWorkers) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for i := worker; all.ended() < kills; i += remoteWorkers {
					t.Run(fmt.Sprintf("%d.%d", seed, i), func(t *testing.T) {
						rng := rand.New(rand.NewPCG(seed, i))
						r := newRig(t, rng, rng.IntN(3) > 0, rng.IntN(2) == 0)
						r.write()
						r.play(killsOfTask, &all)
						r.check(&all)
					})
				}
			})
		}
	})
	t.Logf("seed %d: %d kills, %d stops, %d cuts, %d SIGTERM, %d rivals; %d calls, %d snapshots, %d lines", seed,
		all.kills.Load(), all.stops.Load(),
		all.cuts.Load(), all.terms.Load(), all.takers.Load(), all.labels.Load(), all.snapshots.Load(), all.lines.Load())
}

// write writes the script of the task: calls of all kinds in another order for each rig.
func (r *rig) write() {
	r.Helper()
	ledger, n := filepath.Join(r.effects, "ledger"), 0
	// command appends to the ledger, then does something in the directory.
	command := func(then string) string {
		n++
		return strconv.Quote(fmt.Sprintf(`echo "call c%02d $PWD" >> %s && %s`, n, ledger,
			strings.ReplaceAll(then, "LABEL", fmt.Sprintf("c%02d", n))))
	}
	ticks := fmt.Sprintf(`n=0; while [ ! -e %s/go ] && [ $n -lt 400 ]; do echo "tick LABEL $PWD" >> %s; sleep 0.05; n=$((n+1)); done; echo LABEL >> work`, r.effects, ledger)
	write := func() string {
		n++
		return fmt.Sprintf("  - calls: [{name: WriteFile, arguments: {path: d/w%02d, content: text %d}}, {name: ReadFile, arguments: {path: d/w%02d}}]\n", n, n, n)
	}
	bash := func(then string) string {
		return "  - calls: [{name: Bash, arguments: {command: " + command(then) + ", timeout: 60}}]\n"
	}
	turns := []string{
		write(), write(), write(), write(), bash("echo LABEL >> work"), bash("echo LABEL >> work"),
		bash("mv work again || echo LABEL > again"), bash("rm -f work; mkdir -p e/f && echo LABEL > e/f/LABEL"),
		"  - calls: [{name: Bash, arguments: {command: " + command("echo LABEL > a1") + "}}, {name: Bash, arguments: {command: " + command("echo LABEL > a2") + "}}]\n",
		bash("head -c 1500000 /dev/urandom | base64 > large"),
		bash("cat " + filepath.Join(r.effects, "secret")),
		bash(ticks), bash(ticks),
		"  - calls: [{name: Bash, arguments: {command: " + command(ticks) + ", run_in_background: true}}]\n",
		"  - calls: [{name: Task, arguments: {subagent: coder, description: a part, prompt: Write it.}}]\n" +
			"  - choose:\n      - when: {contains: with resume \"t.1\"}\n        calls: [{name: Task, arguments: {subagent: coder, description: go on, prompt: Go on., resume: t.1}}]\n" +
			"      - calls: [{name: Bash, arguments: {command: ls}}]\n",
	}
	subagent := "subagents:\n  - agent: coder\n    turns:\n" + strings.ReplaceAll(bash("echo LABEL >> sub")+write()+
		bash("echo LABEL >> sub")+strings.Repeat("  - reply: Written.\n", 8), "  - ", "      - ")
	r.rng.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	jump := "  - calls: [{name: jump_to_step, arguments: {step_id: 2, reason: another way}}]\n"
	turns = slices.Insert(turns, 4+r.rng.IntN(len(turns)-4), jump)
	words := "turns:\n" + strings.Join(turns, "") + strings.Repeat("  - reply: Done.\n", 20) + subagent
	err := errors.Join(os.WriteFile(r.script, []byte(words), 0o600),
		os.WriteFile(filepath.Join(r.effects, "secret"), []byte(r.secret+"\n"), 0o600))
	if err != nil {
		r.Fatal(err)
	}
}

// kept reports whether the bucket has the task.
func (r *rig) kept() bool {
	r.Helper()
	names, err := r.bucket().List(r.Context(), "tasks/"+rigTask+"/log/", "")
	if err != nil {
		r.Fatal(err)
	}
	return len(names) > 0
}

// next starts a program that begins the task or continues it, on the machine or, without one, on another one.
func (r *rig) next(m *machine, faults int, now bool) *process {
	r.Helper()
	if !r.kept() {
		return r.run(r.newMachine(), faults)
	}
	if m == nil {
		other := r.newMachine()
		m = &other
	}
	args := []string{"resume", rigTask}
	if now {
		args = append(args, "--now")
	}
	return r.start(*m, faults, args...)
}

// when waits for the moment to end a program; false: the program ended before. act is called at this moment, before
// anything else happens.
func (r *rig) when(p *process, act func()) bool {
	r.Helper()
	moment := make(chan struct{})
	fire := sync.OnceFunc(func() { act(); close(moment) })
	switch n := 1 + r.rng.IntN(5); r.rng.IntN(4) {
	case 0: // at any time
		select {
		case <-time.After(time.Duration(r.rng.IntN(1500)) * time.Millisecond):
			fire()
		case <-p.ended:
		}
	case 1: // in a command
		before := len(r.ledger())
		r.poll(func() bool {
			select {
			case <-p.ended:
				return true
			default:
			}
			i := slices.IndexFunc(r.ledger()[before:],
				func(e effect) bool { return e.what == "tick" && e.dir == p.dir })
			if i >= 0 {
				fire()
			}
			return i >= 0
		})
	default: // at a request that makes something safe
		acted, drop := r.rng.IntN(2) == 0, r.rng.IntN(2) == 0
		if p.proxy != nil {
			p.proxy.watch(func(create int, done bool) bool {
				if create == n && done == acted {
					fire()
					return drop
				}
				return false
			})
			select {
			case <-moment:
			case <-p.ended:
			}
			break
		}
		want := n + len(r.objects())
		r.poll(func() bool {
			select {
			case <-p.ended:
				return true
			default:
			}
			if len(r.objects()) < want {
				return false
			}
			fire()
			return true
		})
	}
	select {
	case <-moment:
		return true
	default:
		return false
	}
}

// objects lists the task's log in a bucket that is a directory.
func (r *rig) objects() []os.DirEntry {
	entries, _ := os.ReadDir(filepath.Join(r.remote, "tasks", rigTask, "log")) // it is made with the first one
	return entries
}

// play begins the task, ends its programs, and lets the last one finish it.
func (r *rig) play(kills int, all *counted) {
	r.Helper()
	goes := filepath.Join(r.effects, "go")
	var at *machine // where the next program starts; nil: on another machine
	now := false
	for ended := 0; ; {
		longCommands := r.rng.IntN(2) == 0 && ended < kills
		if err := os.Remove(goes); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.Fatal(err)
		}
		if !longCommands {
			if err := os.WriteFile(goes, nil, 0o600); err != nil {
				r.Fatal(err)
			}
		}
		if ended == kills/2 && r.kept() && r.rng.IntN(2) == 0 {
			r.rivals()
			all.takers.Add(8)
			ended = kills
		}
		begun := r.kept()
		p := r.next(at, r.rng.IntN(3)*8, now)
		at, now = nil, false
		if ended >= kills {
			r.wait(p)
			if r.finished(p) {
				return
			}
			r.Fatalf("the task does not end: exit code %d\n%s", p.code(), tail(p.out.String()))
		}
		how := r.rng.IntN(4)
		if how == 2 && p.proxy == nil {
			how = 0
		}
		fired := r.when(p, func() {
			switch how {
			case 0:
				p.signal(syscall.SIGKILL)
			case 1:
				p.stop()
			case 2:
				p.proxy.pass(false)
			case 3:
				p.signal(syscall.SIGTERM)
			}
		})
		if !fired {
			r.wait(p)
			if r.finished(p) {
				return
			}
			// the first object of the program before was under way: the name is taken
			if !begun && r.kept() && p.code() == exit.Usage {
				continue
			}
			r.Fatalf("the program ended by itself: exit code %d\n%s", p.code(), tail(p.out.String()))
		}
		ended++
		switch how {
		case 0:
			all.kills.Add(1)
			r.wait(p)
			if now = r.rng.IntN(3) > 0; now {
				r.quiet(p.dir)
			}
			if r.rng.IntN(4) == 0 {
				at = &p.machine
			}
		case 1, 2:
			all.stops.Add(1)
			if how == 2 {
				all.cuts.Add(1)
				all.stops.Add(-1)
			}
			if r.taken(p, all) {
				return
			}
		case 3:
			all.terms.Add(1)
			r.wait(p)
			if r.finished(p) {
				return
			}
			if c := p.code(); c != exit.Evicted && !terminated(p) {
				r.Fatalf("SIGTERM: exit code %d\n%s", c, tail(p.out.String()))
			}
		}
	}
}

// terminated reports whether SIGTERM ended a program that had not yet begun to listen for it.
func terminated(p *process) bool {
	return p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM
}

// taken lets another machine take the task from a program that stands still, and then that one go on: it must end. It
// reports whether the task has ended.
func (r *rig) taken(p *process, all *counted) bool {
	r.Helper()
	before := r.log()
	if r.rng.IntN(4) > 0 { // else it stands still for a while only
		q := r.next(nil, 0, false)
		if r.rng.IntN(4) > 0 && r.when(q, func() { q.signal(syscall.SIGKILL) }) {
			all.kills.Add(1)
		} else {
			if err := os.WriteFile(filepath.Join(r.effects, "go"), nil, 0o600); err != nil {
				r.Fatal(err)
			}
		}
		r.wait(q)
		// it began the task while the other's first object was under way
		rival := len(before) == 0 && (q.code() == exit.Refused || q.code() == exit.Usage)
		if q.code() > 0 && !r.finished(q) && !rival {
			r.Fatalf("the taker ended with exit code %d\n%s", q.code(), tail(q.out.String()))
		}
	}
	lost := false
	if len(before) > 0 {
		log := r.log()
		lost = log[len(log)-1].Holder != before[len(before)-1].Holder
	}
	if err := os.WriteFile(filepath.Join(r.effects, "go"), nil, 0o600); err != nil {
		r.Fatal(err)
	}
	if p.proxy != nil {
		p.proxy.pass(true)
	}
	p.signal(syscall.SIGCONT)
	r.wait(p)
	if lost && p.code() != exit.Refused && !r.finished(p) {
		r.Errorf("a program that lost the task ended with exit code %d:\n%s", p.code(), tail(p.out.String()))
	}
	return slices.ContainsFunc(r.procs, r.finished)
}

// rivals lets eight machines take the task at once: one does.
func (r *rig) rivals() {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.effects, "go"), nil, 0o600); err != nil {
		r.Fatal(err)
	}
	before := len(r.ledger())
	var group []*process
	for range 8 {
		group = append(group, r.next(nil, 0, false))
	}
	won, late := 0, 0 // late: the task was done
	for _, p := range group {
		r.wait(p)
		if r.finished(p) && !strings.Contains(p.out.String(), rigTask+" is done;") {
			won++
		} else if r.finished(p) {
			late++
		} else if p.code() != exit.Refused {
			r.Errorf("a rival ended with exit code %d\n%s", p.code(), tail(p.out.String()))
		}
	}
	dirs := make(map[string]bool)
	for _, e := range r.ledger()[before:] {
		dirs[e.dir] = true
	}
	if len(dirs) > 1 {
		r.Errorf("of eight rivals %d had effects", len(dirs))
	}
	if won != 1 && late < len(group) {
		r.Errorf("of eight rivals %d continued the task", won)
		for _, p := range group {
			r.Logf("exit code %d: %s", p.code(), tail(p.out.String()))
		}
	}
}

// finished reports whether a program says that the task is done.
func (r *rig) finished(p *process) bool {
	select {
	case <-p.ended:
	default:
		return false
	}
	return p.code() == exit.Done && strings.Contains(p.out.String(), "Done.") ||
		strings.Contains(p.out.String(), rigTask+" is done;")
}

var labelArg = regexp.MustCompile(`call (c\d\d) `)

// check looks at what is promised, from a home and a directory where the task never ran.
func (r *rig) check(all *counted) {
	r.Helper()
	fresh := machine{home: filepath.Join(r.top, "fresh"), dir: filepath.Join(r.top, "fresh-work")}
	if err := errors.Join(os.Mkdir(fresh.home, 0o700), os.Mkdir(fresh.dir, 0o700)); err != nil {
		r.Fatal(err)
	}
	h := fresh.taskHome()
	if _, err := replica.Pull(r.Context(), r.bucket(), h, rigTask); err != nil {
		r.Fatalf("the log is not whole: %v", err)
	}
	holders := r.checkHolders()
	tasks, err := h.Tasks()
	if err != nil {
		r.Fatal(err)
	}
	recorded := make(map[string]int)
	for _, task := range tasks {
		saved := make(map[string]string)
		found, err := inspect.Examine(r.Context(), h, task)
		if err != nil || found.Has(opstream.SeverityCorrupt) {
			r.Errorf("%s is not whole: %v %+v", task, err, found)
		}
		err = taskdir.EachOp(h, task, func(o op.Op) error {
			all.lines.Add(1)
			switch b := o.Body.(type) {
			case *op.ToolCalled:
				if m := labelArg.FindStringSubmatch(string(b.Args)); m != nil {
					recorded[m[1]]++
				}
			case *op.WorldSaved:
				if b.Commit != "" {
					saved[b.Commit] = b.Tree
				}
			}
			return nil
		})
		if err != nil {
			r.Errorf("%s: %v", task, err)
		}
		r.checkSnapshots(fresh, task, saved, all)
	}
	r.checkEffects(recorded, holders, all)
	r.checkCopies(fresh, tasks)
	if r.sealed != "" {
		r.checkSealed()
	}
	if !r.Failed() {
		return
	}
	for i, p := range r.procs {
		r.Logf("%d. %s: %v\n%s", i, p.dir, p.err, tail(p.out.String()))
	}
}

// checkHolders fails where a process extended the log after another one had, and returns those that did, in order.
func (r *rig) checkHolders() (holders []string) {
	r.Helper()
	for i, a := range r.log() {
		if a.N != uint64(i+1) {
			r.Errorf("object %d is the %d-th", a.N, i+1)
		}
		if len(holders) > 0 && holders[len(holders)-1] == a.Holder {
			continue
		}
		if slices.Contains(holders, a.Holder) {
			r.Errorf("object %d is of a process that had lost the task", a.N)
		}
		holders = append(holders, a.Holder)
	}
	return holders
}

// checkEffects compares the ledger with the record: each call in it was recorded before, and began once. No command of
// a machine ran after one of the machine that took the task from it.
func (r *rig) checkEffects(recorded map[string]int, holders []string, all *counted) {
	r.Helper()
	dirs := make([]string, len(holders))
	for i, holder := range holders {
		for _, p := range r.procs {
			if p.holder == holder {
				dirs[i] = p.dir
			}
		}
	}
	begun := make(map[string]int)
	at := 0
	for _, e := range r.ledger() {
		if e.what == "call" {
			begun[e.label]++
		}
		later := slices.Index(dirs[at:], e.dir)
		if later < 0 {
			r.Errorf("%s %s in %s after a later machine had begun a call", e.what, e.label, e.dir)
			continue
		}
		at += later
	}
	for label, n := range begun {
		all.labels.Add(1)
		if n != 1 {
			r.Errorf("call %s began %d times", label, n)
		}
		if recorded[label] != 1 {
			r.Errorf("call %s began, and the log has it %d times", label, recorded[label])
		}
	}
}

// checkSnapshots restores each snapshot of a stream and saves it again.
func (r *rig) checkSnapshots(fresh machine, task string, saved map[string]string, all *counted) {
	r.Helper()
	h := fresh.taskHome()
	st, err := taskdir.ReadState(h, task)
	if err != nil {
		r.Fatal(err)
	}
	if task == rigTask && st.Said.Answer != "Done." {
		r.Errorf("the log's last answer is %q", st.Said.Answer)
	}
	w, err := worldstate.Open(fresh.dir, h.StoreOf(&st.Opened), &worldstate.Options{
		Task: "check", Home: h.User, Moved: append(slices.Clone(st.Moved), st.Opened.Dir),
	})
	if err != nil {
		r.Fatal(err)
	}
	defer w.Close()
	for commit, tree := range saved {
		all.snapshots.Add(1)
		if _, err := w.RestoreTo(r.Context(), worldstate.ID(commit), worldstate.RestoreOptions{PlanOptions: worldstate.PlanOptions{OverwriteEdits: true}}); err != nil {
			r.Errorf("%s: restore %s from %s: %v", task, commit, st.Opened.Store, err)
			continue
		}
		if s, err := w.Save(r.Context(), worldstate.SaveOptions{Message: "check"}); err != nil ||
			string(s.Tree) != tree {
			r.Errorf("%s restores to the tree %s, not %s: %v", commit, s.Tree, tree, err)
		}
	}
}

// checkCopies compares the homes with the log: what they had confirmed stands, byte for byte, and who holds the whole
// task has the same state.
func (r *rig) checkCopies(fresh machine, tasks []string) {
	r.Helper()
	whole := make(map[string][]opstream.Record)
	for _, task := range tasks {
		whole[task] = r.records(fresh.taskHome(), task)
	}
	seen := make(map[string]bool)
	for _, p := range r.procs {
		h := p.taskHome()
		c, err := replica.ReadCursor(h, rigTask)
		if err != nil {
			r.Error(err)
		}
		if c == nil || seen[p.home] {
			continue
		}
		seen[p.home] = true
		for task, confirmed := range c.Seqs {
			mine := r.records(h, task)
			for i := range min(confirmed, uint64(len(mine))) {
				if i >= uint64(len(whole[task])) {
					r.Errorf("line %d of %s, which was safe in %s, is lost", i+1, task, p.home)
					break
				}
				if a, b := mine[i], whole[task][i]; a.Seq != b.Seq || a.Kind != b.Kind || !bytes.Equal(a.Body, b.Body) {
					r.Errorf("line %d of %s, which was safe in %s, is another one", i+1, task, p.home)
					break
				}
			}
			if len(mine) == len(whole[task]) && confirmed == uint64(len(mine)) {
				a, errA := taskdir.ReadState(h, task)
				b, errB := taskdir.ReadState(fresh.taskHome(), task)
				if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
					r.Errorf("the state of %s in %s is not that of the log: %v, %v", task, p.home, errA, errB)
				}
			}
		}
	}
}

// records returns the lines of a stream.
func (r *rig) records(h taskdir.Home, task string) (out []opstream.Record) {
	r.Helper()
	s, err := opstream.OpenReader(h.Task(task), nil)
	if err != nil {
		r.Error(err)
		return nil
	}
	defer s.Close()
	for rec, err := range s.Since(0) {
		if err != nil {
			r.Errorf("%s in %s: %v", task, h.State, err)
			break
		}
		out = append(out, rec)
	}
	return out
}

// checkSealed fails where a stored object is not sealed.
func (r *rig) checkSealed() {
	r.Helper()
	b, err := r.opened(false)
	if err != nil {
		r.Fatal(err)
	}
	names, err := b.List(r.Context(), "tasks/", "")
	if err != nil {
		r.Fatal(err)
	}
	for _, name := range names {
		data, err := b.Get(r.Context(), name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.Fatal(err)
		}
		if !bucket.IsSealed(data) || bytes.Contains(data, []byte(r.secret)) {
			r.Errorf("%s is not sealed", name)
		}
	}
}

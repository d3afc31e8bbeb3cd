package beside

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside/reader"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

const (
	// lockPause is the time between two attempts to take a directory's lock.
	lockPause = 2 * time.Millisecond
	// callTime is how long a call without a reported end counts as open: its agent may have
	// been killed.
	callTime = time.Hour
	// maxTaken is how many recorded events are kept for their hooks.
	maxTaken = 100
)

// place is a directory in which sessions are recorded. A recorder keeps it between requests,
// with the last task open; other processes use it for one request.
type place struct {
	svc    *session.Service
	dir    string
	socket string // of the recorder; empty: for one request
	unsure bool   // a process that died may have recorded the first waiting event

	turn    sync.Mutex // held by the request that is served; taken before the directory's lock
	mu      sync.Mutex // guards what follows; taken after the directory's lock
	task    *runtime.Task
	environ []string          // of the last hook
	secrets []redact.Secret   // of the hooks' environments
	taken   map[string]*event // recorded events whose hooks have not asked for the reply, by name
	tasks   map[string]string // what taskOf returned
	current string            // the event that is being recorded
	calls   map[string]underWay

	reader reader.Reader // for the passes of a recorder
}

// underWay is an open call that may change files.
type underWay struct {
	Call  string    `json:"call"`
	Since time.Time `json:"since"`
	Mixed string    `json:"mixed,omitempty"` // another session that had a call open meanwhile
}

// lockWorld takes the lock under which a directory is recorded.
func lockWorld(ctx context.Context, h taskdir.Home, dir string) (unlock func(), err error) {
	if err := os.MkdirAll(folder(h, dir), 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := durable.TryLock(filepath.Join(folder(h, dir), "lock"))
		if !errors.Is(err, durable.ErrLocked) {
			return func() { f.Close() }, err
		}
		if err := model.Wait(ctx, lockPause); err != nil {
			return nil, err
		}
	}
}

// record records the events that wait, in their order, and calls deliver with the reply to
// the hook of one of them, if there is one. If deliver fails, the next reply repeats it. The
// directory's lock is taken before the place's: the process that holds it may ask for the task
// to be closed.
func (p *place) record(ctx context.Context, event string, deliver func(reply []byte) error) (err error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	unlock, err := lockWorld(ctx, p.svc.Home, p.dir)
	if err != nil {
		return err
	}
	defer unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() {
		// The task stays open only within a turn, in a recorder. After an error it is opened, and so folded, anew.
		if err != nil || p.socket == "" || p.task != nil && !p.task.Ledger.State().Turn.Open {
			err = session.JoinClose(err, p.closeTask())
		}
	}()
	if err := p.drain(ctx); err != nil {
		return err
	}
	e, ok := p.taken[event]
	delete(p.taken, event)
	if !ok || !slices.Contains(contextual[e.Agent], e.Name) {
		return nil
	}
	task := p.taskOf(e)
	if err := p.open(ctx, task, e); err != nil {
		return err
	}
	k := readDelivered(p.svc.Home, task)
	after := k.Seq
	if e.Source == "compact" { // the context has lost what it was shown
		if after, err = beforeLastJump(p.svc, task, after); err != nil {
			return err
		}
	}
	news, err := runtime.Outside{Task: p.task}.News(after)
	if err != nil {
		return err
	}
	if text := fit(forOthers(news)); text != "" && deliver(e.reply(text)) != nil {
		return nil
	}
	if last := p.task.Ledger.State().Last; last != k.Seq {
		k.Seq = last
		save(p.svc.Home, task, k)
	}
	return nil
}

// learn adds the secrets of a hook's environment to those that are redacted.
func (p *place) learn(environ []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Equal(environ, p.environ) {
		return nil
	}
	p.environ = environ
	known := func(s redact.Secret) bool { return slices.Contains(p.secrets, s) }
	more := slices.DeleteFunc(redact.FromEnviron(environ), known)
	if len(more) == 0 {
		return nil
	}
	p.secrets = append(p.secrets, more...)
	return p.closeTask() // it is opened again with them
}

// drain records the waiting events. One that fails is reported and removed, so that it does
// not block later ones. If a session's task cannot be opened, its events wait for the next request.
func (p *place) drain(ctx context.Context) error {
	files, err := spooled(p.svc.Home, p.dir)
	if err != nil || len(files) == 0 {
		return err
	}
	if p.calls, err = callsUnderWay(p.svc.Home, p.dir); err != nil {
		return err
	}
	var failed error
	waiting := map[string]bool{}
	for _, file := range files {
		e, err := readSpooled(file)
		if err == nil {
			task := p.taskOf(e)
			if waiting[task] {
				continue
			}
			e.Model = e.model()
			if err = p.open(ctx, task, e); err != nil {
				// The session's later events wait, too, since they are recorded in order.
				failed, waiting[task] = errors.Join(failed, err), true
				clear(p.tasks) // its stream may be damaged
				continue
			}
			err = p.recordFile(ctx, file, e)
		}
		p.unsure = false
		if err != nil {
			failed = errors.Join(failed,
				fmt.Errorf("event %q in %s was not recorded: %w", e.Name, filepath.Base(file), err))
		}
		if err := os.Remove(file); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// recordFile records one event, and what follows from it for the directory's other sessions.
func (p *place) recordFile(ctx context.Context, file string, e *event) error {
	p.current = file
	defer func() {
		if v := recover(); v != nil { // an event that stays would end each recorder
			panic(errors.Join(fmt.Errorf("event %q was not recorded: %v", e.Name, v), os.Remove(file)))
		}
	}()
	task, h := p.task.Ledger.ID, p.svc.Home
	if e.Odd != "" {
		LogError(h, string(e.Agent), fmt.Errorf("event %q was recorded without %s", e.Name, e.Odd))
	}
	if field := e.missingField(); field != "" {
		LogError(h, string(e.Agent), fmt.Errorf("event %q has no %s: if this happens at each of them, its hooks have "+
			"changed, and its sessions can be imported until this program is updated", e.Native, field))
	}
	if err := p.useModel(ctx, e.Model); err != nil {
		return err
	}
	if err := recordEvent(ctx, p.task, e, p.unsure, h.User); err != nil {
		return err
	}
	if p.taken == nil || len(p.taken) >= maxTaken {
		p.taken = map[string]*event{}
	}
	p.taken[filepath.Base(file)] = e
	if k := readDelivered(h, task); e.PermissionMode != "" && k.Mode != e.PermissionMode {
		k.Mode = e.PermissionMode
		save(h, task, k)
	}
	return p.recordCalls()
}

// useModel records the model that the open task's session uses, if it is another one than before.
// Most sessions name it only after they began.
func (p *place) useModel(ctx context.Context, model string) error {
	if model == "" || model == p.task.Ledger.State().Model.Name {
		return nil
	}
	row, err := p.svc.EAS(p.dir, model)
	if err != nil {
		return err
	}
	return p.task.Ledger.Record(ctx, &op.TaskResumed{
		Program: p.svc.Program(), Model: model, EAS: row.EAS, EASFrom: row.Source, Window: row.Advertised,
	})
}

func (p *place) taskOf(e *event) string {
	first := TaskOf(e.Agent, e.SessionID)
	if p.tasks[first] == "" {
		if p.tasks == nil {
			p.tasks = map[string]string{}
		}
		p.tasks[first] = recordedIn(p.svc.Home, e.Agent, e.SessionID, p.dir)
	}
	return p.tasks[first]
}

// open opens a session's task, or makes it, unless it is open.
func (p *place) open(ctx context.Context, task string, e *event) error {
	if p.task != nil && p.task.Ledger.ID == task {
		return nil
	}
	if err := p.closeTask(); err != nil {
		return err
	}
	svc, h := p.svc, p.svc.Home
	o := runtime.Options{
		Recorder: runtime.Recorder{Socket: p.socket, Disturbed: p.disturbed}, Recreate: true,
		Cards:   runtime.Cards{Reader: p.reader.Choose},
		Program: svc.Program(), Secrets: append(svc.TaskSecrets(p.dir, nil), p.secrets...),
	}
	if embedder, err := svc.Embedder(); err == nil {
		o.Cards.Embedder = embedder
	}
	var err error
	if h.HasTask(task) {
		if p.task, err = runtime.OpenTask(ctx, h, task, o); !errors.Is(err, taskdir.ErrNoTask) {
			return err
		}
	}
	row, err := svc.EAS(p.dir, cmp.Or(e.Model, "unknown"))
	if err != nil {
		return err
	}
	n := runtime.New{Request: cmp.Or(e.Prompt, state.NoPrompt), TaskOpened: op.TaskOpened{
		Task: task, Dir: p.dir,
		Model: cmp.Or(e.Model, string(e.Agent)), EAS: row.EAS, EASFrom: row.Source, Window: row.Advertised,
		Encoding: tokens.Estimate, Approval: "deny", Origin: &op.Origin{Agent: string(e.Agent), Session: e.SessionID},
	}}
	p.task, err = runtime.Create(ctx, h, n, o)
	return err
}

// eventWaits reports whether an event waits after the one that is being recorded, except the end of
// a session.
func (p *place) eventWaits() bool {
	files, err := spooled(p.svc.Home, p.dir)
	waits := func(file string) bool { return file > p.current && !endsSession(file) }
	return err != nil || slices.ContainsFunc(files, waits)
}

func endsSession(file string) bool {
	e, err := readSpooled(file)
	return err == nil && e.Name == "SessionEnd"
}

func (p *place) closeTask() error {
	if p.task == nil {
		return nil
	}
	t := p.task
	p.task = nil
	return t.Close()
}

func (p *place) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closeTask()
}

func callsFile(h taskdir.Home, dir string) string { return filepath.Join(folder(h, dir), "calls.json") }

// callsUnderWay reads the calls of a directory's sessions that may change files.
func callsUnderWay(h taskdir.Home, dir string) (map[string]underWay, error) {
	calls := map[string]underWay{}
	data, err := os.ReadFile(callsFile(h, dir))
	if errors.Is(err, os.ErrNotExist) {
		return calls, nil
	}
	if err == nil && json.Unmarshal(data, &calls) != nil {
		calls = map[string]underWay{} // truncated on a full disk: no open call is known
	}
	for task, c := range calls {
		if time.Since(c.Since) > callTime {
			delete(calls, task)
		}
	}
	return calls, err
}

// recordCalls stores whether the open task has a call under way that may change
// files. Calls of two sessions that are under way at once mix both their steps.
func (p *place) recordCalls() error {
	t := runtime.Outside{Task: p.task}
	open := t.Open()
	was, had := p.calls[t.Ledger.ID]
	switch {
	case len(open) == 0 && had:
		delete(p.calls, t.Ledger.ID)
	case !had && t.Writing():
		was = underWay{Call: open[0].Name, Since: time.Now()}
		for other, c := range p.calls {
			was.Mixed, c.Mixed = other, t.Ledger.ID
			p.calls[other] = c
		}
		p.calls[t.Ledger.ID] = was
	default:
		return nil
	}
	data, err := json.Marshal(p.calls)
	if err != nil {
		return err
	}
	return durable.Replace(callsFile(p.svc.Home, p.dir), data, 0o600)
}

// disturbed returns a session that may have changed files in the step just saved, because it
// has a call open or did not wait for its hook. late reports that the step's own session did
// not wait.
func (p *place) disturbed() (by string, late bool) {
	by = p.calls[p.task.Ledger.ID].Mixed
	for other := range p.calls {
		if other != p.task.Ledger.ID {
			by = cmp.Or(by, other)
		}
	}
	files, err := spooled(p.svc.Home, p.dir)
	if err != nil {
		return by, false
	}
	for _, file := range files {
		// The agent of a younger event still waits for its hook, which may have begun some time before it wrote the
		// event.
		if file <= p.current || time.Since(spooledAt(file)) < Wait/2 {
			continue
		}
		e, err := readSpooled(file)
		if err != nil || e.Name != "PreToolUse" {
			continue
		}
		if task := p.taskOf(e); task == p.task.Ledger.ID {
			late = true
		} else {
			by = cmp.Or(by, task)
		}
	}
	return by, late
}

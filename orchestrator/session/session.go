// Package session is the service that every front end uses. It starts, resumes, steers and
// reads tasks, with the user's configuration and the project's files. It prints nothing and
// reads no flags: warnings are returned, and mistakes of the caller are a *UsageError.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/jobs"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/named"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/worldstate"
)

// ErrNotApproved: a project brings something whose present content no user has approved.
var ErrNotApproved = errors.New("its current content is not approved")

// ErrNoModel: neither a model nor a server is named, and none was found.
var ErrNoModel = named.ErrNone

// keyEnv is the usual variable of the API key.
const keyEnv = "OPENAI_API_KEY"

// UsageError is a mistake in the caller's request or configuration.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// SettingError is a mistake in one setting, with whose name its text begins.
type SettingError struct {
	Setting string // as in max-cost
	Text    string
}

func (e *SettingError) Error() string { return e.Setting + e.Text }

// settingf returns a UsageError about a setting. format is what follows its name.
func settingf(setting, format string, args ...any) error {
	return &UsageError{&SettingError{setting, fmt.Sprintf(format, args...)}}
}

// Options configure a Service.
type Options struct {
	Getenv  func(string) string // nil: os.Getenv
	Version string              // of the program; recorded in the tasks
	EAS     []byte              // the built-in table of effective attention spans
	KeyEnv  string              // the variable that holds the API key; empty: OPENAI_API_KEY
	Reader  memory.Reader       // chooses what passes over sessions of other agents ask; nil: nothing
	// Tools are offered in each task, after the built-in ones. An agent spec can leave them out by name. A task that
	// is resumed gets those of the process that resumes it.
	Tools []tool.Tool
	// Model answers in place of the models that names find; its Name is looked up in the tables of EAS and prices. A
	// transient *model.Fault is asked again. Nil: a model is found by its name.
	Model model.Model
	// Store are the settings of each task's stream and world.
	Store runtime.Store
	By    string // the user's name to tasks that a bucket keeps; empty: that on this machine
	// Note is called with what becomes of a message to such a task; nil: nothing is.
	Note func(format string, args ...any)
}

// Service is the program's state in one home, for any front end. Its methods may
// be called from any goroutine.
type Service struct {
	Home taskdir.Home
	o    Options
}

// New returns the service of the home that the environment names.
func New(o Options) (*Service, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	o.KeyEnv = cmp.Or(o.KeyEnv, keyEnv)
	if o.Note == nil {
		o.Note = func(string, ...any) {}
	}
	h, err := taskdir.FindHome(o.Getenv)
	if err != nil {
		return nil, Usagef("%v", err)
	}
	for _, root := range h.Roots() {
		if err := taskdir.Usable(root); err != nil {
			return nil, Usagef("the program's folder %s: %v; %s", root, err, HomeRemedy)
		}
	}
	s := &Service{Home: h, o: o}
	if b, _, err := s.Bucket(h.Setting("remote", o.Getenv)); err == nil { // else its use says why not
		s.Home.Share, s.Home.Shared = b.Put, replica.MirrorHome(b, h).State
	}
	return s, nil
}

// At returns the service of another home with the same environment.
func (s *Service) At(h taskdir.Home) *Service { return &Service{Home: h, o: s.o} }

func (s *Service) getenv(name string) string { return s.o.Getenv(name) }

// Reader chooses what passes over sessions of other agents ask; nil: nothing.
func (s *Service) Reader() memory.Reader { return s.o.Reader }

// Program names the program and its version, as streams record it.
func (s *Service) Program() string { return "anamnesis " + s.o.Version }

func (s *Service) trust() *consent.Trust { return consent.OpenTrust(s.Home.Approvals()) }

// Callbacks are those of a task, whose package explains them.
type Callbacks = runtime.Callbacks

// Client is a front end's callbacks for a session. Each may be nil. They may be called from any
// goroutine, and must not call the session.
type Client struct {
	Callbacks // of the task
	// Started is called with what is about to run, before the first operation.
	Started func(Info)
	// Patience limits how long a provider that fails transiently is waited for, unless Settings do;
	// 0: DefaultPatience.
	Patience time.Duration
	// Retry is called when a pass or a reflection asks the model again.
	Retry func(model.Attempt)
	// Scan is called with the progress of a scan of the directory.
	Scan func(worldstate.Progress)
	// Ended is called at the end of each Run with its outcome, which for an error of Run is failed. Secrets in
	// Detail are redacted.
	Ended func(runtime.Outcome)
	// Note is called with warnings while the session runs.
	Note func(text string)
	// Trust decides whether to use something that a project brings. If nil, it is not used.
	Trust func(ctx context.Context, question string) bool
}

func (c *Client) note(text string) {
	if c.Note != nil {
		c.Note(text)
	}
}

// Info is what a session starts with.
type Info struct {
	Task     string `json:"task"`
	Agent    string `json:"agent,omitempty"`
	Dir      string `json:"dir"`
	Model    string `json:"model"`
	EAS      int    `json:"eas"`
	EASFrom  string `json:"eas_from"`
	Approval string `json:"approval"`
	Plan     bool   `json:"plan,omitempty"`   // it is in plan mode
	Notice   string `json:"notice,omitempty"` // the reason of the approval mode, and the limits
	Limits   string `json:"limits,omitempty"` // of a resumed task, as flags
	Banner   string `json:"banner,omitempty"` // describes a recording

	Title    string   `json:"-"` // see taskdir.Title
	Warnings []string `json:"-"` // found before the task was opened
}

// Session is a task that this process holds. Run belongs to one goroutine.
type Session struct {
	Info
	// Opening are the warnings found while the task was opened.
	Opening []string

	task    *runtime.Task
	home    taskdir.Home
	service *Service
	client  Client
	done    func() // closes the sources of the task's tools

	replica *replica.Holder // nil: the task is kept in this home only
	inbox   uint64          // the last message there that was recorded
	reclaim func() bool     // ends the offer of the directory; nil: none is made
	yielded bool            // another process has the directory
}

// Run runs the agent until its turn ends. Meanwhile, other processes reach the task through
// its socket.
func (s *Session) Run(ctx context.Context) (runtime.Outcome, error) {
	var last runtime.Outcome
	for {
		out, err := s.served(ctx)
		if s.replica != nil && err == nil {
			err = s.replica.Err()
		}
		if err != nil {
			s.ended(runtime.Outcome{Reason: "failed", Detail: err.Error(), Err: err})
			return out, err
		}
		if out.Reason != "idle" || last.Reason == "" {
			last = out
		}
		again := out.Reason == "done" || out.Reason == "limit" || out.Reason == "idle"
		if again && ctx.Err() == nil && s.replica != nil { // the sender of a message may wait until it is recorded
			s.readInbox(ctx, func(error) {})
		}
		if again && ctx.Err() == nil && s.task.Ledger.Unanswered() {
			continue // a message or a jump arrived between the turn's end and the socket's
		}
		s.ended(last)
		return last, nil
	}
}

func (s *Session) ended(out runtime.Outcome) {
	if s.client.Ended != nil {
		out.Detail = s.task.Ledger.Journal.RedactText(out.Detail)
		s.client.Ended(out)
	}
}

func (s *Session) served(ctx context.Context) (runtime.Outcome, error) {
	var reading sync.WaitGroup
	defer reading.Wait()
	turn, end := context.WithCancelCause(ctx)
	defer end(nil)
	if s.replica != nil {
		go func() {
			select {
			case <-s.replica.Lost():
				end(s.replica.Err())
			case <-turn.Done():
			}
		}()
		s.readInbox(turn, end) // an answer may be there to what the task would ask again
		reading.Go(func() { s.followInbox(turn, end) })
	}
	stop, err := s.task.Ledger.Serve(ctx, s.home, end)
	if err != nil {
		s.client.note(fmt.Sprintf("warning: %v; 'say', 'jump' and 'stop' cannot reach the task while it runs", err))
	} else {
		defer stop()
	}
	return s.task.Run(turn)
}

// Say records a message of the user; it enters with the next request.
func (s *Session) Say(ctx context.Context, text string) error {
	return s.task.Ledger.Say(ctx, text, op.SourceSteer)
}

// UnsentError is why a request was not recorded. The session goes on.
type UnsentError struct{ Err error }

func (e *UnsentError) Error() string { return e.Err.Error() }
func (e *UnsentError) Unwrap() error { return e.Err }

// Request records what the user wants next. Run answers it. Errors: *UnsentError.
func (s *Session) Request(ctx context.Context, text string) error {
	text, err := s.service.expand(ctx, s.Dir, text, s.client.Trust)
	if err != nil {
		return &UnsentError{err}
	}
	return s.task.Request(ctx, text)
}

// Jobs are the task's background commands. They may be used while Run runs.
func (s *Session) Jobs() *jobs.Jobs { return s.task.Jobs() }

// SetMode changes the approval mode, and whether the agent only plans, from its next call on.
func (s *Session) SetMode(ctx context.Context, mode approval.Mode, plan bool) error {
	return s.task.SetMode(ctx, mode, plan)
}

// AskNow ends a wait for the provider.
func (s *Session) AskNow() { s.task.AskNow() }

// Jump schedules a jump for the end of the step under way.
func (s *Session) Jump(ctx context.Context, j op.JumpRequested) error {
	return s.task.Ledger.Jump(ctx, j)
}

// Compact replaces all steps but the newest by a block and cards, and returns the tokens
// of the context before and after. It must not be called while Run runs.
func (s *Session) Compact(ctx context.Context) (before, after int, err error) {
	return s.task.Memory.Compact(ctx)
}

// State is the folded state. It must not be used while Run runs.
func (s *Session) State() *state.State { return s.task.Ledger.State() }

// Offer closes the session if another process asks for the directory before the next call of
// Reclaim. A session with a command in the background stays open.
func (s *Session) Offer() {
	reclaim, err := s.task.Offer(func() error {
		s.client.note("another process works in this directory now; your next message continues this task once " +
			"that process has ended")
		return s.close()
	})
	if err != nil {
		s.client.note(fmt.Sprintf("warning: %v; no other task can work in the directory until this session ends", err))
		return
	}
	s.reclaim = reclaim
}

// Reclaim ends an offer and reports whether the session is still open. If not, the task can be
// resumed.
func (s *Session) Reclaim() bool {
	if s.reclaim != nil {
		s.yielded, s.reclaim = !s.reclaim(), nil
	}
	return !s.yielded
}

// Close ends the session. The task can be resumed.
func (s *Session) Close() error {
	if !s.Reclaim() {
		return nil
	}
	return s.close()
}

func (s *Session) close() error {
	err := s.task.Close()
	if untold := s.task.Memory.Untold; untold != nil {
		s.client.note(fmt.Sprintf("other homes do not learn what this task showed: %v", untold))
	}
	s.done()
	return errors.Join(err, release(s.replica))
}

// JoinClose joins an error with that of closing a task or a stream after it, in one line. A
// cause that both name is reported once.
func JoinClose(err, closed error) error {
	if errors.Is(err, opstream.ErrPoisoned) && errors.Is(closed, opstream.ErrPoisoned) {
		return err
	}
	if err == nil || closed == nil || strings.Contains(err.Error(), closed.Error()) {
		return cmp.Or(err, closed)
	}
	return fmt.Errorf("%w; %w", err, closed)
}

// Tasks lists the tasks, including subagents', the one written last at the end.
func (s *Service) Tasks() ([]taskdir.Summary, error) { return taskdir.Summaries(s.Home) }

// LastTask returns the task written last in a directory. It may be a recorded session
// of another agent; subagents' tasks and imported sessions are left out.
func (s *Service) LastTask(dir string) (string, error) {
	return s.lastTask(dir, func(r taskdir.Summary) bool { return r.Parent == "" && !r.Imported })
}

// LastOwnTask returns the task of this program's own agent that was written last in a
// directory: one that can be resumed.
func (s *Service) LastOwnTask(dir string) (string, error) {
	return s.lastTask(dir, func(r taskdir.Summary) bool { return r.Parent == "" && r.Agent == "" })
}

func (s *Service) lastTask(dir string, takes func(taskdir.Summary) bool) (string, error) {
	abs, err := RealDir(dir)
	if err != nil {
		return "", settingf("dir", " %s: %v", dir, errors.Unwrap(err))
	}
	rows, err := s.Tasks()
	if err != nil {
		return "", err
	}
	for _, r := range slices.Backward(rows) {
		if r.Dir == abs && takes(r) {
			return r.ID, nil
		}
	}
	return "", remedy.With(Usagef("no task has worked in %s", abs), remedy.ListTasks, "")
}

// State folds a task's operations.
func (s *Service) State(task string) (*state.State, error) {
	return taskdir.ReadState(s.Home, task)
}

// Live returns the process that runs a task; 0 if none does.
func (s *Service) Live(task string) int { return taskdir.Live(s.Home, task) }

// Ops visits the operations of a task after a sequence number, in order.
func (s *Service) Ops(task string, after uint64, visit func(op.Op) error) error {
	return taskdir.EachOpSince(s.Home, task, after, visit)
}

// Explain returns the context as it was after an operation, with the reasons.
func (s *Service) Explain(task string, seq uint64) (inspect.Explanation, []model.Message, error) {
	return inspect.ExplainAt(s.Home, task, seq)
}

// World opens the snapshots of a task to read them. The caller closes it.
func (s *Service) World(st *state.State) (*worldstate.World, error) {
	o := worldstate.Options{Task: st.Opened.Task, Home: s.Home.User, StoreOnly: true}
	return worldstate.Open(st.Opened.Dir, s.Home.StoreOf(&st.Opened), &o)
}

// Follow opens a task's operations for reading as they are written.
func (s *Service) Follow(task string) (*taskdir.Follower, error) {
	return taskdir.Follow(s.Home, task)
}

// RealDir returns a directory's absolute path without links, by which a project's approvals
// are stored.
func RealDir(dir string) (string, error) {
	real, err := taskdir.WorldDir(dir)
	if err != nil {
		err = Usagef("%w", err)
	}
	return real, err
}

// Package report says what happened in a task, for a user who returns to it: what was asked, how it ended,
// which paths were left and why, what the tests said, what was done outside of the directory. It reads the record
// only; each line names the operation that it rests on.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/anamnesis/testrun"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// Line is a statement and the operation that shows it.
type Line struct {
	Text string    `json:"text"`
	Op   uint64    `json:"op"`
	Time time.Time `json:"time,omitzero"`
}

type Path struct {
	First   int       `json:"first"` // its first step
	From    int       `json:"from"`  // its last step
	To      int       `json:"to"`    // the step that the task went back to
	Reason  string    `json:"reason"`
	Learned string    `json:"learned,omitempty"` // the agent's lesson
	By      string    `json:"by"`                // op.ByAgent or op.ByUser
	Tried   []string  `json:"tried"`             // paths of files that it changed, at most 100
	Failed  *Line     `json:"failed,omitempty"`
	Op      uint64    `json:"op"`
	Time    time.Time `json:"time,omitzero"`
}

type Tests struct {
	Step    int    `json:"step"`
	Command string `json:"command"`
	Op      uint64 `json:"op"`              // the call's result
	Left    bool   `json:"left,omitempty"`  // a jump went back before it
	Stale   bool   `json:"stale,omitempty"` // files changed since
	testrun.Result
}

// Check is one run of the checks of the task's goal.
type Check struct {
	Step   int       `json:"step"`
	Passed bool      `json:"passed"` // all checks did
	Score  float64   `json:"score"`  // tests that passed, or what the goal's command printed
	Of     int       `json:"of"`     // tests; 0: the command's score
	Op     uint64    `json:"op"`
	Rating op.Rating `json:"-"`
	Fails  string    `json:"fails,omitempty"` // the line that says what does
	Broke  *op.Broke `json:"broke,omitempty"`
}

// File is a file that differs from the task's beginning.
type File struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"`            // added | changed | deleted | renamed
	Added   int    `json:"added"`           // lines
	Removed int    `json:"removed"`         // lines
	Op      uint64 `json:"op"`              // the last that changed it; 0: not known
	Yours   bool   `json:"yours,omitempty"` // only the user changed it
}

// Count says how often something happened.
type Count struct {
	What string `json:"what"`
	N    int    `json:"n"`
	Op   uint64 `json:"op"` // the last time
}

type Question struct {
	Line
	Answer string           `json:"answer,omitempty"` // empty: it is open, or was dropped
	By     string           `json:"by,omitempty"`     // who answered, and from where
	Asked  op.QuestionAsked `json:"-"`
	Open   bool             `json:"open,omitempty"`
}

// Report is what happened in a task.
type Report struct {
	Task  string `json:"task"`
	Dir   string `json:"dir"`
	Model string `json:"model"`
	// Agent is another agent whose session was recorded. If it is Imported, its times are not known.
	Agent     string     `json:"agent,omitempty"`
	Imported  bool       `json:"imported,omitempty"`
	State     string     `json:"state"`           // as in the list of tasks
	Waits     string     `json:"waits,omitempty"` // what the task waits for
	WaitsOp   uint64     `json:"waits_op,omitempty"`
	Began     time.Time  `json:"began"`
	Last      time.Time  `json:"last"`
	Steps     int        `json:"steps"`
	Ops       uint64     `json:"ops"`
	Asked     []Line     `json:"asked"`           // the user's words
	Doing     *Line      `json:"doing,omitempty"` // what runs, of a running task
	Ended     *Line      `json:"ended,omitempty"`
	Limit     op.Limit   `json:"limit,omitempty"`  // that ended it
	Answer    *Line      `json:"answer,omitempty"` // to the last request
	Until     string     `json:"until,omitempty"`  // the checks of the goal
	Goal      []Check    `json:"goal"`             // runs of its checks
	Best      uint64     `json:"best,omitempty"`   // the best run, to which the task goes back
	Left      []Path     `json:"left"`
	Tests     []Tests    `json:"tests"`
	Files     []File     `json:"files"`
	FilesOp   uint64     `json:"files_op,omitempty"` // the snapshot that they are of
	Git       []Line     `json:"git"`                // repositories whose HEAD has moved
	NoFiles   string     `json:"no_files,omitempty"` // why Files is not known
	Learned   []Line     `json:"learned"`            // cards and facts
	Outside   []Line     `json:"outside"`            // commands that reached beyond the directory
	Questions []Question `json:"questions"`
	Breaks    []Line     `json:"breaks"` // where a process that worked on the task ended, and another one went on
	Open      []Line     `json:"open"`   // todos
	Subagents []Line     `json:"subagents"`
	Refused   []Count    `json:"refused"` // calls
	Faults    []Count    `json:"faults"`  // of the provider
	Repairs   []Count    `json:"repairs"` // of the provider's oddities; see op.Oddities

	ModelTime   time.Duration `json:"model_ns"`
	ToolTime    time.Duration `json:"tool_ns"`
	CheckTime   time.Duration `json:"check_ns"`
	WaitingTime time.Duration `json:"waiting_ns"` // for the provider
	AskingTime  time.Duration `json:"asking_ns"`  // for the user's answers
	IdleTime    time.Duration `json:"idle_ns"`    // no turn ran
	Usage       op.Usage      `json:"usage"`

	called    map[string]op.Call // by their ids, until they return
	calls     map[string]uint64  // those that run
	subagents map[string]int     // entries of Subagents by their calls
	jump      op.JumpIntended    // the one under way
	fails     []Line
	git       map[string]op.GitAt // repositories as first seen
	saved     map[int]string      // commits by step
	parents   map[int]int         // of steps
	last      op.Body             // of the last operation that is no seal
	at        int                 // the step whose files are there
	changed   []change            // not discarded
	todos     []uint64            // lists that are not discarded
	until     time.Time           // the end of the wait for the provider
	asking    bool                // a question is open
}

// change is an operation that records changes of files.
type change struct {
	seq   uint64
	step  int
	paths []string // at most 100
	yours bool
}

// maxText bounds a quoted text, in bytes.
const maxText = 300

func line(o op.Op, text string) Line {
	return Line{Text: quote.CutBytes(strings.Join(strings.Fields(text), " "), maxText), Op: o.Seq, Time: o.Time}
}

func (r *Report) Add(o op.Op) {
	if r.saved == nil {
		r.Began, r.Last = o.Time, o.Time
		r.called, r.calls = make(map[string]op.Call), make(map[string]uint64)
		r.subagents, r.saved = make(map[string]int), make(map[int]string)
		r.git, r.parents = make(map[string]op.GitAt), make(map[int]int)
	}
	by, resumed := o.Body.(*op.TaskResumed)
	r.Advance(o.Time, resumed && by.PID != 0 && by.Why == "")
	r.Ops = o.Seq
	before := r.last
	if _, sealed := o.Body.(*op.LogSealed); !sealed {
		r.until, r.last = time.Time{}, o.Body
	}
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		r.Task, r.Dir, r.Model = b.Task, b.Dir, b.Model
		if b.Origin != nil {
			r.Agent, r.Imported = b.Origin.Agent, b.Origin.Imported()
		}
	case *op.TaskResumed:
		r.Model, r.Task = cmp.Or(b.Model, r.Model), cmp.Or(b.Task, r.Task)
		r.resumed(o, b, before)
	case *op.UserSaid:
		// The question lists the words that answer it.
		if replies := b.Source == op.SourceAnswer || b.Source == op.SourceRejection; !replies || len(r.Questions) == 0 {
			r.Asked = append(r.Asked, line(o, b.Text))
		}
		r.Ended, r.Answer = nil, nil
	case *op.QuestionAsked:
		r.Questions = append(r.Questions, Question{Line: line(o, b.Text), Asked: *b})
		r.asking = true
	case *op.QuestionAnswered:
		for i := range r.Questions {
			if q := &r.Questions[i]; q.Op == b.Asked {
				q.Answer, q.By = quote.CutBytes(b.Words(q.Asked.About), maxText), b.By+", "+b.From
			}
		}
		r.asking = false
	case *op.ModelReplied:
		r.ModelTime += time.Duration(b.Millis) * time.Millisecond
		r.Usage = r.Usage.Plus(b.Usage)
		if len(b.Calls) == 0 && strings.TrimSpace(b.Text) != "" {
			r.Answer = &Line{Text: b.Text, Op: o.Seq, Time: o.Time}
		}
		for _, c := range b.Calls {
			r.called[c.ID] = c
		}
		for _, name := range b.Repairs {
			r.count(&r.Repairs, name+" ("+b.Origin+")", o.Seq)
		}
	case *op.ModelFailed:
		r.count(&r.Faults, line(o, b.Error).Text, o.Seq)
		if b.Wait != nil {
			r.until, r.WaitsOp = b.Wait.Until, o.Seq
		}
	case *op.ToolCalled:
		// The user may have edited it.
		r.calls[b.Call], r.called[b.Call] = o.Seq, op.Call{ID: b.Call, Name: b.Name, Args: b.Args}
	case *op.ToolReturned:
		r.result(o, b)
	case *op.SubagentStarted:
		r.subagents[b.Call] = len(r.Subagents)
		r.Subagents = append(r.Subagents, line(o, b.Task+" ("+b.Agent+"): "+b.Description))
	case *op.SubagentEnded:
		if i, ok := r.subagents[b.Call]; ok {
			text := fmt.Sprintf("%s: %s after %s", r.Subagents[i].Text, b.Reason, quote.Number(b.Steps, "step"))
			r.Subagents[i] = line(o, text)
		}
	case *op.TodosSet:
		r.todos = append(r.todos, o.Seq)
	case *op.WorldSaved:
		r.saved[o.Step], r.parents[o.Step] = b.Commit, b.Parent
		r.at, r.FilesOp = o.Step, o.Seq
		r.addChange(o, b.Changed, false)
	case *op.WorldChanged:
		r.addChange(o, b.Changed, b.By == state.ChangedByUser)
	case *op.GitSeen:
		r.gitSeen(o, b)
	case *op.CheckRan:
		r.checked(o, b)
	case *op.JumpRequested:
		r.jump = op.JumpIntended{Reason: b.Reason, Learned: b.Learned, By: b.By}
	case *op.JumpIntended:
		r.jump = op.JumpIntended{Reason: cmp.Or(b.Reason, r.jump.Reason),
			Learned: cmp.Or(b.Learned, r.jump.Learned), By: cmp.Or(b.By, r.jump.By)}
		if b.Card != "" {
			r.Learned = append(r.Learned, line(o, "draft "+b.Card+": "+b.Learned))
		}
	case *op.JumpDone:
		r.addPath(o, b)
	case *op.PassDone:
		for _, id := range b.Cards {
			r.Learned = append(r.Learned, line(o, "card "+id))
		}
	case *op.TurnEnded:
		text := b.Reason
		if b.Detail != "" {
			text += ": " + b.Detail
		}
		ended := line(o, text)
		r.Ended, r.Limit, r.asking = &ended, b.Limit, false
	}
}

// Advance counts the time since the last operation. resumed: a process takes the task over, so that none
// worked on it before.
func (r *Report) Advance(to time.Time, resumed bool) {
	d := max(0, to.Sub(r.Last))
	switch {
	case r.Ended != nil || resumed:
		r.IdleTime += d
	case r.asking:
		r.AskingTime += d
	case !r.until.IsZero():
		r.WaitingTime += min(d, max(0, r.until.Sub(r.Last)))
	}
	if to.After(r.Last) {
		r.Last = to
	}
}

func (r *Report) addChange(o op.Op, paths []string, yours bool) {
	if len(paths) > 0 && o.Step > 0 {
		r.changed = append(r.changed, change{o.Seq, o.Step, paths, yours})
	}
}

func (r *Report) checked(o op.Op, b *op.CheckRan) {
	c := Check{Step: r.at, Passed: b.Passed, Op: o.Seq, Rating: b.Rated(), Broke: b.Broke}
	c.Score, c.Of = c.Rating.Value, c.Rating.Of
	for _, k := range b.Checks {
		c.Fails = cmp.Or(c.Fails, k.Line)
	}
	r.CheckTime += time.Duration(b.Millis) * time.Millisecond
	r.Goal = append(r.Goal, c)
}

// gitSeen notes how a repository's HEAD stands beside where it was first seen.
func (r *Report) gitSeen(o op.Op, b *op.GitSeen) {
	was, seen := r.git[b.Dir]
	if !seen {
		r.git[b.Dir] = b.GitAt
		return
	}
	name := "HEAD of " + b.Dir + " was "
	r.Git = slices.DeleteFunc(r.Git, func(l Line) bool { return strings.HasPrefix(l.Text, name) })
	if was.String() != b.GitAt.String() {
		r.Git = append(r.Git, line(o, fmt.Sprintf("%s%s, is %s", name, was, b.GitAt)))
	}
}

// Finish says what the end of the task makes of its operations. onPath reports whether a step leads to the one
// where the task is; running: a process works on it.
func (r *Report) Finish(onPath func(step int) bool, running bool) {
	for i := range r.Tests {
		t := &r.Tests[i]
		t.Left = !onPath(t.Step)
		t.Stale = !t.Left &&
			slices.ContainsFunc(r.changed, func(c change) bool { return c.step > t.Step && onPath(c.step) })
	}
	for i := range r.Files {
		f := &r.Files[i]
		for _, c := range r.changed {
			if onPath(c.step) && slices.Contains(c.paths, f.Path) {
				f.Op, f.Yours = c.seq, c.yours && (f.Yours || f.Op == 0)
			}
		}
	}
	// The task has gone back to these.
	r.Left = slices.DeleteFunc(r.Left, func(p Path) bool { return p.From > p.To && onPath(p.From) })
	for i := range r.Open {
		if n := len(r.todos); n > 0 {
			r.Open[i].Op = r.todos[n-1]
		}
	}
	if !running || r.Ended != nil {
		return
	}
	for id, seq := range r.calls {
		if r.Doing == nil || seq > r.Doing.Op {
			r.Doing = &Line{Text: tool.Display(r.called[id], r.Dir), Op: seq}
		}
	}
}

// resumed notes that another process continues the task, after the operation before.
func (r *Report) resumed(o op.Op, b *op.TaskResumed, before op.Body) {
	how := "in the middle of the turn"
	switch before.(type) {
	case *op.QuestionAsked, *op.QuestionAnswered:
		how = "while it waited for an answer"
	}
	switch {
	case b.Why != "":
		r.Breaks = append(r.Breaks, line(o, "the model "+b.Model+" took over: "+b.Why))
	case r.Ended == nil && b.PID != 0: // otherwise the same process goes on
		r.Breaks = append(r.Breaks, line(o, "the process had ended "+how+"; resumed"))
	case r.Ended != nil && b.Continue:
		r.Breaks = append(r.Breaks, line(o, r.Ended.Text+"; resumed"))
		r.Ended = nil
	}
}

func (r *Report) count(list *[]Count, what string, seq uint64) {
	i := slices.IndexFunc(*list, func(c Count) bool { return c.What == what })
	if i < 0 {
		*list = append(*list, Count{What: what})
		i = len(*list) - 1
	}
	(*list)[i].N++
	(*list)[i].Op = seq
}

// result adds the result of a call: what it says of tests, how it failed, and what it reached.
func (r *Report) result(o op.Op, b *op.ToolReturned) {
	called := r.called[b.Call]
	delete(r.calls, b.Call)
	delete(r.called, b.Call)
	if b.Refused {
		why, _, _ := strings.Cut(b.Text, "\n")
		r.count(&r.Refused, line(o, tool.Display(called, r.Dir)+": "+why).Text, o.Seq)
		return
	}
	if b.Name != "AskUser" { // its time is the user's
		r.ToolTime += time.Duration(b.Millis) * time.Millisecond
	}
	command := ""
	if op.Acts(b.Name) == op.RunsShell {
		command = shell.Command(called.Args)
	}
	if command == "" || b.Exit == nil {
		return
	}
	if run, ok := testrun.Parse(command, b.Output(), *b.Exit); ok && run.Status != testrun.Unclear {
		r.Tests = append(r.Tests, Tests{Step: o.Step, Command: line(o, command).Text, Op: o.Seq, Result: run})
	}
	out := failure.Output{Command: command, Text: cmp.Or(b.Stdout, b.Text), Stderr: b.Stderr,
		Exit: *b.Exit, HasExit: true}
	if f, failed := failure.Read(out); failed {
		r.fails = append(r.fails, line(o, f.Signature))
	}
	changed := shell.Reached(command, r.Dir, b.Isolated)
	if b.Network || len(changed) > 0 || shell.ShowsOutside(command, r.Dir, b.Isolated) {
		if *b.Exit != 0 {
			command = fmt.Sprintf("(failed, exit %d) %s", *b.Exit, command)
		}
		r.Outside = append(r.Outside, line(o, command))
	}
}

func (r *Report) addPath(o op.Op, b *op.JumpDone) {
	asked := r.jump
	r.jump = op.JumpIntended{}
	if !b.Abandoned {
		r.at, r.FilesOp = b.To, o.Seq
	}
	if !b.Backward || b.Abandoned {
		return
	}
	discarded := func(seq uint64) bool {
		return slices.ContainsFunc(b.Discarded, func(d op.Range) bool { return d.Contains(seq) })
	}
	r.todos = slices.DeleteFunc(r.todos, discarded)
	p := Path{First: b.From, From: b.From, To: b.To, Reason: asked.Reason, Learned: asked.Learned, By: asked.By,
		Tried: b.Reverted, Op: o.Seq, Time: o.Time}
	for parent := r.parents[p.First]; parent > p.To; parent = r.parents[p.First] {
		p.First = parent
	}
	for _, f := range slices.Backward(r.fails) {
		if discarded(f.Op) {
			p.Failed = &f
			break
		}
	}
	r.Left = append(r.Left, p)
}

// Asks returns the question that waits for an answer; nil: none does.
func (r *Report) Asks() *Question {
	for i := range slices.Backward(r.Questions) {
		if r.Questions[i].Open {
			return &r.Questions[i]
		}
	}
	return nil
}

// Commit returns the snapshot of a step; empty if it has none.
func (r *Report) Commit(step int) string { return r.saved[step] }

// BestTests returns the runs of tests that say most: the first, the one with most passed tests, and the last on the
// path where the task is; nil if there is none.
func (r *Report) BestTests() (first, best, last *Tests) {
	for i := range r.Tests {
		t := &r.Tests[i]
		if first == nil {
			first = t
		}
		if best == nil || t.Status == testrun.Passed && best.Status != testrun.Passed ||
			t.Status == best.Status && t.Passed > best.Passed {
			best = t
		}
		if !t.Left {
			last = t
		}
	}
	return first, best, last
}

// Package report says what happened in a task, for somebody who comes back to it: what was asked, how it ended,
// which paths were left and why, what the tests said, what was done outside of the directory. It reads the record
// only; each line names the operation that it rests on.
package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/anamnesis/testrun"
	"anamnesis/opstream/op"
)

// Line is a statement and the operation that shows it.
type Line struct {
	Text string    `json:"text"`
	Op   uint64    `json:"op"`
	Time time.Time `json:"time,omitzero"`
}

// Path is a path that was left.
type Path struct {
	From   int       `json:"from"` // the last step of it
	To     int       `json:"to"`   // the step that the task went back to
	Reason string    `json:"reason"`
	By     string    `json:"by"`    // op.ByAgent or op.ByUser
	Tried  []string  `json:"tried"` // paths of files that it changed, at most 100
	Failed *Line     `json:"failed,omitempty"`
	Op     uint64    `json:"op"`
	Time   time.Time `json:"time,omitzero"`
}

// Tests is one test run.
type Tests struct {
	Step    int    `json:"step"`
	Command string `json:"command"`
	Op      uint64 `json:"op"` // the call's result
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
}

// File is a file that differs from the task's beginning.
type File struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"`    // added | changed | deleted | renamed
	Added   int    `json:"added"`   // lines
	Removed int    `json:"removed"` // lines
}

// Count says how often something happened.
type Count struct {
	What string `json:"what"`
	N    int    `json:"n"`
	Op   uint64 `json:"op"` // the last time
}

// Question is a question to the user.
type Question struct {
	Line
	Answer string `json:"answer,omitempty"` // empty: it is open, or was dropped
	By     string `json:"by,omitempty"`     // who answered, and from where
	Open   bool   `json:"open,omitempty"`
}

// Report is what happened in a task.
type Report struct {
	Task      string     `json:"task"`
	Dir       string     `json:"dir"`
	Model     string     `json:"model"`
	State     string     `json:"state"`           // as in the list of tasks
	Waits     string     `json:"waits,omitempty"` // what the task waits for
	Began     time.Time  `json:"began"`
	Last      time.Time  `json:"last"`
	Steps     int        `json:"steps"`
	Ops       uint64     `json:"ops"`
	Asked     []Line     `json:"asked"` // the user's requests
	Ended     *Line      `json:"ended,omitempty"`
	Answer    *Line      `json:"answer,omitempty"`
	Questions []Question `json:"questions"`
	Breaks    []Line     `json:"breaks"` // where a process that worked on the task ended, and another one went on
	Goal      []Check    `json:"goal"`   // runs of its checks
	Left      []Path     `json:"left"`
	Tests     []Tests    `json:"tests"`
	Files     []File     `json:"files"`
	NoFiles   string     `json:"no_files,omitempty"` // why Files is not known
	Learned   []Line     `json:"learned"`
	Outside   []Line     `json:"outside"` // commands that reached beyond the directory
	Open      []Line     `json:"open"`    // todos and questions that are not answered
	Faults    []Count    `json:"faults"`  // of the provider
	Repairs   []Count    `json:"repairs"` // of the provider's oddities; see op.Oddities

	ModelTime   time.Duration `json:"model_ns"`
	ToolTime    time.Duration `json:"tool_ns"`
	WaitingTime time.Duration `json:"waiting_ns"`
	Usage       op.Usage      `json:"usage"`

	commands map[string]string // of open calls
	jump     *op.JumpRequested
	fails    []Line
	saved    map[int]string // commits by step
	at       int            // the step whose files are there
}

// maxText bounds a quoted text, in bytes.
const maxText = 300

func line(o op.Op, text string) Line {
	return Line{Text: quote.CutBytes(strings.Join(strings.Fields(text), " "), maxText), Op: o.Seq, Time: o.Time}
}

// Add adds the next operation.
func (r *Report) Add(o op.Op) {
	if r.Began.IsZero() {
		r.Began = o.Time
	}
	r.Last, r.Ops = o.Time, o.Seq
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		r.Task, r.Dir, r.Model = b.Task, b.Dir, b.Model
	case *op.TaskResumed:
		r.Model = cmp.Or(b.Model, r.Model)
		r.resumed(o, b)
	case *op.UserSaid:
		if b.Source != op.SourceAnswer {
			r.Asked = append(r.Asked, line(o, b.Text))
		}
		r.Ended = nil
	case *op.QuestionAsked:
		r.Questions = append(r.Questions, Question{Line: line(o, b.Text)})
	case *op.QuestionAnswered:
		for i := range r.Questions {
			if q := &r.Questions[i]; q.Op == b.Asked {
				q.Answer, q.By = quote.CutBytes(b.Words(), maxText), b.By+", "+b.From
			}
		}
	case *op.ModelReplied:
		r.ModelTime += time.Duration(b.Millis) * time.Millisecond
		r.Usage = r.Usage.Plus(b.Usage)
		if len(b.Calls) == 0 && strings.TrimSpace(b.Text) != "" {
			answer := Line{Text: b.Text, Op: o.Seq, Time: o.Time}
			r.Answer = &answer
		}
		for _, name := range b.Repairs {
			r.count(&r.Repairs, name+" ("+b.Origin+")", o.Seq)
		}
	case *op.ModelFailed:
		r.count(&r.Faults, quote.CutBytes(strings.Join(strings.Fields(b.Error), " "), maxText), o.Seq)
		if b.Wait != nil {
			r.WaitingTime += max(0, b.Wait.Until.Sub(o.Time))
		}
	case *op.ToolCalled:
		if op.Acts(b.Name) == op.RunsShell {
			if r.commands == nil {
				r.commands = make(map[string]string)
			}
			r.commands[b.Call] = shell.Command(b.Args)
		}
	case *op.ToolReturned:
		r.result(o, b)
	case *op.WorldSaved:
		r.Steps++
		if r.saved == nil {
			r.saved = make(map[int]string)
		}
		r.saved[o.Step] = b.Commit
		r.at = o.Step
	case *op.CheckRan:
		c := Check{Step: r.at, Passed: b.Passed, Op: o.Seq, Rating: b.Rated()}
		c.Score, c.Of = c.Rating.Value, c.Rating.Of
		r.Goal = append(r.Goal, c)
	case *op.JumpRequested:
		r.jump = b
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
		r.Ended = &ended
	}
}

// resumed notes that another process goes on with the task.
func (r *Report) resumed(o op.Op, b *op.TaskResumed) {
	switch {
	case b.Why != "":
		r.Breaks = append(r.Breaks, line(o, "the model "+b.Model+" took over: "+b.Why))
	case r.Ended == nil:
		r.Breaks = append(r.Breaks, line(o, "the process had ended without a word; resumed"))
	case !strings.HasPrefix(r.Ended.Text, "done"):
		r.Breaks = append(r.Breaks, line(o, r.Ended.Text+"; resumed"))
	}
	r.Ended = nil
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
	r.ToolTime += time.Duration(b.Millis) * time.Millisecond
	command := r.commands[b.Call]
	if delete(r.commands, b.Call); command == "" || b.Exit == nil {
		return
	}
	if run, ok := testrun.Parse(command, b.Output(), *b.Exit); ok && run.Status != testrun.Unclear {
		r.Tests = append(r.Tests, Tests{o.Step, quote.CutBytes(command, maxText), o.Seq, run})
	}
	if f, failed := failure.Read(failure.Output{Command: command, Text: cmp.Or(b.Stdout, b.Text), Stderr: b.Stderr, Exit: *b.Exit, HasExit: true}); failed {
		r.fails = append(r.fails, line(o, f.Signature))
	}
	if !b.Refused && (b.Network || shell.ShowsOutside(command, r.Dir, b.Isolated)) {
		r.Outside = append(r.Outside, line(o, command))
	}
}

// addPath adds the path that a jump back addPath.
func (r *Report) addPath(o op.Op, b *op.JumpDone) {
	asked := r.jump
	r.jump = nil
	if !b.Abandoned {
		r.at = b.To
	}
	if !b.Backward || b.Abandoned {
		return
	}
	p := Path{From: b.From, To: b.To, Tried: b.Reverted, Op: o.Seq, Time: o.Time}
	if asked != nil {
		p.Reason, p.By = asked.Reason, asked.By
	}
	for _, f := range slices.Backward(r.fails) {
		if slices.ContainsFunc(b.Discarded, func(d op.Range) bool { return d.Contains(f.Op) }) {
			p.Failed = &f
			break
		}
	}
	r.Left = append(r.Left, p)
}

// Commit returns the snapshot of a step; empty if it has none.
func (r *Report) Commit(step int) string { return r.saved[step] }

// Best returns the runs of tests that say most: the first, the one with most passed tests, the last. Fewer if
// they are the same.
func (r *Report) Best() (first, best, last *Tests) {
	for i := range r.Tests {
		t := &r.Tests[i]
		if first == nil {
			first = t
		}
		if best == nil || t.Status == testrun.Passed && best.Status != testrun.Passed || t.Status == best.Status && t.Passed > best.Passed {
			best = t
		}
		last = t
	}
	return first, best, last
}

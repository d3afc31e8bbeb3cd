package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

const (
	// tasksShown is how many tasks one page lists.
	tasksShown = 100
	// opsShown is how many operations one page lists; a page that follows a
	// task drops the oldest when twice as many stand there.
	opsShown = 200
	// textColumns is how much of an operation's text its line shows.
	textColumns = 120
)

func (s *Server) taskRoutes() {
	s.handle("GET /tasks", s.showTasks)
	s.handle("GET /tasks/{task}", s.showTask)
	s.handle("GET /tasks/{task}/live", s.showLive)
	s.handle("GET /tasks/{task}/ops/{seq}", s.showOp)
	s.handle("GET /tasks/{task}/ops/{seq}/context", s.showContext)
	s.handle("GET /tasks/{task}/steps/{step}", s.showStep)
}

// taskList is one page of the list of tasks.
type taskList struct {
	Tasks        []taskdir.Summary // the one written last first
	Total        int
	First, Last  int // which of them, from 1
	Newer, Older string
	Subagents    int  // how many tasks are of subagents
	All          bool // they are listed, too
}

func (s *Server) showTasks(w http.ResponseWriter, r *http.Request) error {
	all, err := s.tasks.Tasks()
	if err != nil {
		return err
	}
	slices.Reverse(all)
	l := taskList{All: r.URL.Query().Has("all")}
	all = slices.DeleteFunc(all, func(t taskdir.Summary) bool {
		if t.Parent != "" {
			l.Subagents++
		}
		return t.Parent != "" && !l.All
	})
	skip, err := numberIn(r, "skip", 0)
	if err != nil {
		return err
	}
	from := min(int(min(skip, 1<<30)), max(len(all)-1, 0))
	to := min(from+tasksShown, len(all))
	l.Tasks, l.Total, l.First, l.Last = all[from:to], len(all), from+1, to
	path := "/tasks?"
	if l.All {
		path += "all=yes&"
	}
	if from > 0 {
		l.Newer = fmt.Sprintf("%sskip=%d", path, max(from-tasksShown, 0))
	}
	if to < len(all) {
		l.Older = fmt.Sprintf("%sskip=%d", path, to)
	}
	return s.render(w, http.StatusOK, "tasks", view{Title: "Tasks", Section: "/tasks", Body: l})
}

// numberIn reads a number of the query; fallback where it is not given.
func numberIn(r *http.Request, name string, fallback uint64) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "%s=%q in the address is no number. Go back to the list of tasks.", name, text)
	}
	return n, nil
}

// taskPage is a task's timeline as a page shows it.
type taskPage struct {
	ID, Dir, Model, Request string
	Parent                  *op.Parent // of a subagent: the task whose agent began it
	Path                    string     // of this page, without a query
	Standing                standing
	Damage                  string
	Tree                    treeView
	Chart                   chartView
	Ops                     opsView
	Live                    liveView
	Auto                    *detail // what matters now, opened at once; nil: nothing has happened
}

// standing is how the task is.
type standing struct {
	State   string // a word
	Text    string // a sentence
	Running bool
}

// opsView is the part of the operation line that is shown.
type opsView struct {
	Path          string // of the task
	Groups        []opGroup
	First, Last   uint64 // the operations shown; 0 where there is none
	Total         uint64
	Newest        bool // the end is shown, and follows the task
	Before, After string
	Damage        string
}

// opGroup are the operations of one step that are shown.
type opGroup struct {
	Step  int
	What  string // its calls
	Signs []string
	Open  bool // they are seen at once
	Left  bool // a jump left the step
	Lines []opLine
}

// opLine is one operation of the line.
type opLine struct {
	Seq    uint64
	Step   int
	Kind   string
	Time   string // of the day
	Tokens int
	Text   string
	Faint  bool   // nothing that was said or done
	Left   bool   // of a step that a jump left
	Output string // the end of what a command that failed printed
}

// shown is what of a task a page shows, as its address says it.
type shown struct {
	first uint64 // operation; 0: the newest
	row   int    // of the tree; below 0: where the task stands
}

func shownBy(r *http.Request) (shown, error) {
	first, err := numberIn(r, "ops", 0)
	if err != nil {
		return shown{}, err
	}
	row, err := numberIn(r, "row", 1<<30)
	if err != nil {
		return shown{}, err
	}
	v := shown{first: first, row: -1}
	if row < 1<<30 {
		v.row = int(row)
	}
	return v, nil
}

// query returns the address of a page that shows something else of the task.
func (v shown) query(path string) string {
	q := url.Values{}
	if v.first > 0 {
		q.Set("ops", strconv.FormatUint(v.first, 10))
	}
	if v.row >= 0 {
		q.Set("row", strconv.Itoa(v.row))
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func (s *Server) showTask(w http.ResponseWriter, r *http.Request) error {
	v, err := shownBy(r)
	if err != nil {
		return err
	}
	id := r.PathValue("task")
	live := s.tasks.Live(id) // before the stream: what ends a turn is read then
	t, err := s.watches.look(id)
	if err != nil {
		return err
	}
	p := t.page(v, live)
	p.Auto = t.auto(live)
	t.mu.Unlock()
	if p.Auto != nil && p.Auto.Step != nil {
		p.Auto.Step.compare(r.Context(), s, p.ID)
	}
	return s.render(w, http.StatusOK, "task", view{Title: p.ID, Section: "/tasks", Script: "timeline.js", Style: "timeline.css", Body: p})
}

// page returns what is shown of a task. live is the process that runs it, 0 for
// none. The caller holds mu.
func (w *watch) page(v shown, live int) taskPage {
	st, path := w.builder.State(), taskPath(w.id)
	p := taskPage{
		ID: w.id, Parent: st.Opened.Parent, Dir: st.Opened.Dir, Model: st.Model, Request: st.Request, Path: path,
		Standing: w.standing(live), Damage: w.damage(), Tree: w.tree(v), Chart: chartOf(w.builder.Requests(), w.builder.Marks()),
	}
	first := v.first
	if first == 0 {
		first = newestFirst(w.last)
	}
	p.Ops = w.ops(v, first, opsShown)
	if p.Ops.Newest {
		v.first = 0 // it grows with the task
	}
	p.Live = w.live(v, p.Ops.First, p.Standing)
	return p
}

// newestFirst is the first of the newest operations that a page shows.
func newestFirst(last uint64) uint64 { return max(last, opsShown) - opsShown + 1 }

func (w *watch) standing(live int) standing {
	st := w.builder.State()
	s := standing{State: st.Standing(live != 0), Running: live != 0}
	if w.last == 0 || !s.Running && w.broken() {
		s.State = "unreadable"
	}
	switch s.State {
	case "running":
		s.Text = fmt.Sprintf("Running, in process %d.", live)
	case "done":
		s.Text = "Finished: the agent has answered."
	case "interrupted":
		s.Text = fmt.Sprintf("Interrupted. 'anamnesis resume %s' continues it.", w.id)
	case "unreadable":
		s.Text = "Nothing can be read of it."
		if w.last > 0 {
			s.Text = fmt.Sprintf("It can be read up to operation %d, and cannot go on as it is.", w.last)
		}
	default:
		s.Text = fmt.Sprintf("Stopped: %s. 'anamnesis resume %s' continues it.", s.State, w.id)
		if end := st.Turn.End; end != nil && end.Detail != "" {
			s.Text = fmt.Sprintf("Stopped: %s. %s", s.State, end.Detail)
		}
	}
	return s
}

// ops reads a part of the operation line.
func (w *watch) ops(v shown, first uint64, limit int) opsView {
	first = max(min(first, w.last), 1)
	o := opsView{Path: taskPath(w.id), Total: w.last}
	lines, err := w.follower.Lines(first-1, limit)
	if err != nil && w.end == nil {
		o.Damage = err.Error()
	}
	for i, l := range lines {
		if l.Seq > w.last { // written since the rest of the page was read
			lines = lines[:i]
			break
		}
	}
	if n := len(lines); n > 0 {
		o.First, o.Last = lines[0].Seq, lines[n-1].Seq
	}
	o.Groups = w.groups(lines)
	o.Newest = o.Last == w.last
	if n := len(o.Groups); n > 0 && o.Newest {
		o.Groups[n-1].Open = true
	}
	if o.First > 1 {
		v.first = max(o.First, opsShown+1) - opsShown
		o.Before = v.query(o.Path)
	}
	if !o.Newest {
		if v.first = o.Last + 1; w.last-o.Last <= opsShown {
			v.first = 0
		}
		o.After = v.query(o.Path)
	}
	return o
}

// groups puts operations together by their steps.
func (w *watch) groups(lines []taskdir.Line) []opGroup {
	var out []opGroup
	st, left := w.builder.State(), w.builder.Left()
	for _, l := range lines {
		if n := len(out); n == 0 || out[n-1].Step != l.Step {
			g := opGroup{Step: l.Step, Left: left(l.Step)}
			if l.Step < st.Steps.Len() {
				if n := st.Steps.At(l.Step).Failed; n > 0 {
					g.Signs = append(g.Signs, fmt.Sprintf("%d failed", n))
				}
			}
			if g.Left {
				g.Signs = append(g.Signs, "left")
			}
			out = append(out, g)
		}
		g := &out[len(out)-1]
		g.Lines = append(g.Lines, lineOf(l, g.Left, st.Opened.Dir))
	}
	for i := range out {
		out[i].What = whatOf(out[i].Lines)
	}
	return out
}

// whatOf says what was done in a step: its calls, or what else there is.
func whatOf(lines []opLine) string {
	var calls []string
	said := ""
	for _, l := range lines {
		switch {
		case l.Kind == "tool.called":
			calls = append(calls, l.Text)
		case said == "" && !l.Faint && l.Kind != "task.opened":
			said = l.Text
		}
	}
	if len(calls) > 0 {
		said = strings.Join(calls, " · ")
	}
	return term.Line(said, textColumns)
}

// What is shown at once of the output of a command that failed: its end.
const (
	failedLines = 12
	failedBytes = 4 << 10
)

// failedOutput is the end of what a failed call printed; empty for other operations.
func failedOutput(o op.Op) string {
	b, ok := o.Body.(*op.ToolReturned)
	if !ok || !b.IsError && (b.Exit == nil || *b.Exit == 0) {
		return ""
	}
	text := strings.TrimRight(b.Text, "\n")
	if len(text) > failedBytes {
		text = strings.ToValidUTF8(text[len(text)-failedBytes:], "")
	}
	lines := strings.Split(Clean(text), "\n")
	return strings.Join(lines[max(0, len(lines)-failedLines):], "\n")
}

func lineOf(l taskdir.Line, left bool, dir string) opLine {
	o := opLine{Output: failedOutput(l.Op), Seq: l.Seq, Step: l.Step, Kind: l.Name, Time: l.Time.Local().Format(time.TimeOnly), Tokens: l.Tok, Left: left}
	text := timeline.Describe(l.Op, dir)
	if l.Err != nil {
		text = "its body cannot be read: " + l.Err.Error()
	}
	o.Text = term.Line(text, textColumns)
	switch l.Name {
	case "model.asked", "tool.started", "log.sealed", "world.saved":
		o.Faint = true
	}
	return o
}

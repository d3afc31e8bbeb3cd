package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"anamnesis/cmd/internal/page/picture"
	"anamnesis/cmd/internal/reportview"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/search"
	"anamnesis/orchestrator/taskdir"
)

const (
	// tasksShown is how many tasks one page lists.
	tasksShown = 100
	// tasksFound is how many a search shows.
	tasksFound = 30
	// opsShown is how many operations one page lists. A page that follows a task drops
	// the oldest when it has twice as many.
	opsShown = 200
)

type taskList struct {
	Tasks        []taskdir.Summary // most recently written first
	Total        int
	First, Last  int // which of them, from 1
	Newer, Older string
	Subagents    int  // how many tasks are of subagents
	All          bool // they are listed, too
	// Query is what is looked for in all tasks. Found then takes the place of the list.
	Query  string
	Errors bool // alone
	Found  *search.Found
}

func (s *Server) showTasks(w http.ResponseWriter, r *http.Request) error {
	if q := strings.TrimSpace(r.URL.Query().Get("q")); q != "" {
		return s.searchTasks(w, r, q)
	}
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
	return s.render(w, r, http.StatusOK, "tasks", view{Title: "Tasks", Section: "/tasks", Body: l})
}

func (s *Server) searchTasks(w http.ResponseWriter, r *http.Request, q string) error {
	l := taskList{Query: q, Errors: r.URL.Query().Has("errors")}
	found, err := search.Find(r.Context(), s.tasks.Home, search.Query{Words: q, Errors: l.Errors, Most: tasksFound},
		func(int, int) {})
	if errors.Is(err, search.ErrNoWords) {
		return refuse(http.StatusBadRequest,
			"The question has no word to look for. Name a word, a path or a part of an error.")
	} else if err != nil {
		return err
	}
	l.Found = found
	return s.render(w, r, http.StatusOK, "tasks", view{Title: "Tasks: " + q, Section: "/tasks", Body: l})
}

// numberIn returns a number of the query, or fallback if it has none.
func numberIn(r *http.Request, name string, fallback uint64) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "%s=%q in the address is not a number. Go back to the list of tasks.",
			name, text)
	}
	return n, nil
}

type taskPage struct {
	ID, Dir, Model, Request string
	Parent                  *op.Parent // of a subagent: the task whose agent began it
	Path                    string     // of this page, without a query
	Standing                standing
	Damage                  string
	Course                  course
	Tree                    treeView
	Ops                     opsView
	Live                    liveView
	Auto                    *detail // the current point; nil before the first step
}

// standing is the task's state.
type standing struct {
	Path    string // of the task
	State   string // a word
	Text    string // a sentence
	Running bool
	Asks    *asks // nil: nothing
}

// key tells two standings apart.
func (s standing) key() string {
	if s.Asks == nil {
		return s.State
	}
	return s.State + " " + strconv.FormatUint(s.Asks.Op, 10)
}

// opsView is the part of the operation line that is shown.
type opsView struct {
	Path          string // of the task
	Groups        []picture.Group
	First, Last   uint64 // the operations shown; 0 where there is none
	Total         uint64
	Newest        bool // the end is shown and updated
	Before, After string
	Damage        string
}

// shown is the part of a task that a page's address selects.
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

// query returns the address of the page for this part.
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
	if s.mirror != nil {
		if err := s.mirror(r.Context(), id); err != nil {
			return err
		}
	}
	live := s.tasks.Live(id) // before the stream, so that a turn's end is read
	t, err := s.watches.acquire(id)
	if err != nil {
		return err
	}
	p := t.page(v, live)
	p.Auto = t.auto(live)
	t.mu.Unlock()
	if p.Auto != nil && p.Auto.Step != nil {
		p.Auto.Step.compare(r.Context(), s, p.ID)
	}
	return s.render(w, r, http.StatusOK, "task",
		view{Title: p.ID, Section: "/tasks", Done: did(r.URL.Query().Get("did")), Script: "timeline.js",
			Style: "timeline.css", Body: p})
}

type reportView struct {
	Path     string // of the task
	Sections []reportview.Section
	Figures  []reportview.Section // what it cost
	Cut      bool                 // lists were shortened
}

// showReport answers with the head of a task's page. The page asks for it by itself: the comparison of the files
// with the beginning may take a while.
func (s *Server) showReport(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("task")
	t, err := s.tasks.Report(r.Context(), id)
	if err != nil {
		return err
	}
	v := reportView{Path: taskPath(id)}
	for _, part := range reportview.Sections(t,
		reportview.Options{Long: r.URL.Query().Has("long"), Remote: s.tasks.Home.Remote}) {
		switch name, _, _ := strings.Cut(part.Name, " ("); name {
		case "Paths left", "Still to do": // the lists of jumps and of what is to do stand beside it
			continue
		case "Cost", "Time":
			v.Figures = append(v.Figures, part)
			continue
		}
		for i := range part.Items {
			var cut bool
			part.Items[i].Text, cut = strings.CutSuffix(part.Items[i].Text, " (--long)")
			v.Cut = v.Cut || cut
		}
		v.Sections = append(v.Sections, part)
	}
	return s.renderPart(w, "report", v)
}

// page returns a task's page. live is the process that runs it, or 0. The caller holds mu.
func (w *watch) page(v shown, live int) taskPage {
	st, path := w.builder.State(), taskPath(w.id)
	p := taskPage{
		ID: w.id, Parent: st.Opened.Parent, Dir: st.Opened.Dir, Model: st.Model.Name,
		Request: taskdir.Title(st.Said.First), Path: path,
		Standing: w.standing(live), Damage: w.damage(), Course: w.course(), Tree: w.tree(v),
	}
	first := cmp.Or(v.first, newestFirst(w.last))
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
	s := standing{Path: taskPath(w.id), State: w.tasks.Home.Stands(w.id, st, live != 0), Running: live != 0,
		Asks: asksOf(w.id, st.Questions.Open())}
	if w.last == 0 || !s.Running && w.broken() {
		s.State = "unreadable"
	}
	if w.tasks.Home.Standing != nil && s.State != "unreadable" { // a copy: what the bucket shows
		s.Running, s.Text = s.State == "running" || s.State == "asking", "In the bucket: "+meaning(s.State)+"."
		return s
	}
	s.Text = meaning(s.State)
	switch end := st.Turn.End; {
	case s.State == "running" && st.Outage != nil:
		s.Text += "; it " + st.Outage.Text(time.Now())
	case s.State == "unreadable" && w.last > 0:
		s.Text = fmt.Sprintf("It can be read up to operation %d, and cannot be continued as it is.", w.last)
	case s.State != "done" && end != nil && end.Detail != "":
		s.Text += ": " + end.Detail
	}
	return s
}

func (w *watch) ops(v shown, first uint64, limit int) opsView {
	first = max(min(first, w.last), 1)
	o := opsView{Path: taskPath(w.id), Total: w.last}
	lines, err := w.follower.Lines(first-1, limit)
	if err != nil && w.end == nil {
		o.Damage = err.Error()
	}
	for i, l := range lines {
		if l.Seq > w.last { // written after the rest of the page was read
			lines = lines[:i]
			break
		}
	}
	if n := len(lines); n > 0 {
		o.First, o.Last = lines[0].Seq, lines[n-1].Seq
	}
	o.Groups = picture.Groups(lines, w.builder)
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

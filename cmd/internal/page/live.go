package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"anamnesis/cmd/internal/page/picture"
)

// A page that follows a task names what it shows in each request. The answer holds only what
// is new; without news it is empty.
const (
	liveEvery    = "1s" // while the task runs
	restingEvery = "5s" // while no process runs it; it may be resumed
)

// liveView is the address that a page polls, and how often.
type liveView struct {
	URL, Every        string
	Ops               uint64
	Steps, Step, Jump int
}

// live returns what a page polls that shows v, and operations from first on.
func (w *watch) live(v shown, first uint64, now standing) liveView {
	st := w.builder.State()
	q := url.Values{
		"after": {strconv.FormatUint(w.last, 10)},
		"tree":  {w.version()},
		"state": {now.key()},
		"ended": {strconv.FormatBool(w.end != nil)},
	}
	if v.first == 0 { // the newest are shown
		q.Set("first", strconv.FormatUint(first, 10))
	} else {
		q.Set("ops", strconv.FormatUint(v.first, 10))
	}
	if v.row >= 0 {
		q.Set("row", strconv.Itoa(v.row))
	}
	l := liveView{
		URL: taskPath(w.id) + "/live?" + q.Encode(), Every: restingEvery,
		Ops: w.last, Steps: st.Steps.CountEnded(), Step: st.Current, Jump: st.Totals.Jumps,
	}
	if now.Running {
		l.Every = liveEvery
	}
	return l
}

// version identifies the data that the tree is drawn from.
func (w *watch) version() string {
	st := w.builder.State()
	return fmt.Sprintf("%d.%d.%d.%d", w.restarts, st.Steps.Len(), st.Current, w.builder.Rows()+len(st.Goal.Runs))
}

// news is the answer to a page that follows a task.
type news struct {
	Live     liveView
	Standing *standing       // nil: as before
	Tree     *treeView       // nil: as before
	Course   *course         // with the tree
	Whole    *opsView        // replaces the operations shown
	Same     *picture.Group  // to add to the last step shown
	More     []picture.Group // steps to add
	Path     string
	Range    *opsView // their numbers
	Auto     *detail  // the current point; nil: as before
}

func (s *Server) showLive(w http.ResponseWriter, r *http.Request) error {
	after, err := numberIn(r, "after", 0)
	if err != nil {
		return err
	}
	first, err := numberIn(r, "first", 0)
	if err != nil {
		return err
	}
	v, err := shownBy(r)
	if err != nil {
		return err
	}
	id := r.PathValue("task")
	live := s.tasks.Live(id) // before the stream, so that a turn's end is read
	t, err := s.watches.acquire(id)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	now := t.standing(live)
	ended := strconv.FormatBool(t.end != nil)
	switch {
	case t.taken(q.Get("tree"), after) || q.Get("ended") != ended:
		t.mu.Unlock()
		// What the page shows was withdrawn, or the stream's end has changed: reload.
		w.Header().Set("HX-Refresh", "true")
		return nil
	case after == t.last && q.Get("state") == now.key():
		t.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	n := t.news(v, after, first, q.Get("tree"))
	if q.Get("state") != now.key() {
		n.Standing = &now
	}
	if n.Whole != nil {
		first = n.Whole.First
	}
	n.Live = t.live(v, first, now)
	if n.Tree != nil {
		n.Auto = t.auto(live)
	}
	t.mu.Unlock()
	if n.Auto != nil && n.Auto.Step != nil {
		n.Auto.Step.compare(r.Context(), s, id)
	}
	return s.renderPart(w, "news", n)
}

// taken reports whether the operations that a page shows were withdrawn.
func (w *watch) taken(version string, after uint64) bool {
	var restarts int
	_, err := fmt.Sscanf(version, "%d.", &restarts)
	return err != nil || restarts != w.restarts || after > w.last
}

// news returns what came after an operation, for a page that shows operations from first
// on. If first is 0, the page shows older ones.
func (w *watch) news(v shown, after, first uint64, version string) news {
	n := news{Path: taskPath(w.id)}
	if version != w.version() {
		tree := w.tree(v)
		course := w.course()
		n.Tree, n.Course = &tree, &course
	}
	if first == 0 || w.last == after {
		return n
	}
	if w.last-after > opsShown || w.last-first >= 2*opsShown {
		whole := w.ops(v, newestFirst(w.last), opsShown)
		n.Whole = &whole
		return n
	}
	more := w.ops(v, after+1, opsShown)
	n.More = more.Groups
	if l, err := w.follower.Line(after); err == nil && len(n.More) > 0 && after >= first && n.More[0].Step == l.Step {
		n.Same, n.More = &n.More[0], n.More[1:]
		// Its heading needs all operations of the step.
		if lines, err := w.follower.Lines(w.builder.State().Steps.At(l.Step).First-1, opsShown); err == nil {
			if whole := picture.Groups(lines, w.builder); len(whole) > 0 && whole[0].Step == l.Step {
				n.Same.What = whole[0].What
			}
		}
	}
	more.First = first
	n.Range = &more
	return n
}

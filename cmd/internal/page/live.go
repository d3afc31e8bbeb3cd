package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"anamnesis/cmd/internal/page/picture"
)

// A page that follows a task asks by what it has: nothing is answered while
// nothing is new, and nothing is sent twice.
const (
	liveEvery    = "1s" // while the task runs
	restingEvery = "5s" // while nobody runs it; it may be resumed
)

// liveView is what a page asks for next, and how often.
type liveView struct {
	URL, Every        string
	Ops               uint64
	Steps, Step, Jump int
}

// live returns what a page asks for that shows what v says, and operations from
// first on.
func (w *watch) live(v shown, first uint64, now standing) liveView {
	st := w.builder.State()
	q := url.Values{
		"after": {strconv.FormatUint(w.last, 10)},
		"tree":  {w.version()},
		"state": {now.State},
		"ended": {strconv.FormatBool(w.end != nil)},
	}
	if v.first == 0 { // the end is shown, and grows
		q.Set("first", strconv.FormatUint(first, 10))
	} else {
		q.Set("ops", strconv.FormatUint(v.first, 10))
	}
	if v.row >= 0 {
		q.Set("row", strconv.Itoa(v.row))
	}
	l := liveView{
		URL: taskPath(w.id) + "/live?" + q.Encode(), Every: restingEvery,
		Ops: w.last, Steps: st.EndedSteps(), Step: st.Current, Jump: st.Totals.Jumps,
	}
	if now.Running {
		l.Every = liveEvery
	}
	return l
}

// version says what the tree is drawn from.
func (w *watch) version() string {
	st := w.builder.State()
	return fmt.Sprintf("%d.%d.%d.%d", w.restarts, st.Steps.Len(), st.Current, w.builder.Rows())
}

// news is what a page that follows a task is sent.
type news struct {
	Live     liveView
	Standing *standing // nil: as before
	Tree     *treeView // nil: as before
	Chart    *picture.Chart
	Whole    *opsView        // in the place of the operations shown
	Same     *picture.Group  // to add to the last step shown
	More     []picture.Group // steps to add
	Path     string
	Range    *opsView // of which numbers those are
	Auto     *detail  // what matters now; nil: as before
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
	live := s.tasks.Live(id)
	t, err := s.watches.look(id)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	now := t.standing(live)
	ended := strconv.FormatBool(t.end != nil)
	switch {
	case t.taken(q.Get("tree"), after) || q.Get("ended") != ended:
		t.mu.Unlock()
		// What the page shows was taken back, or its end is another: all anew.
		w.Header().Set("HX-Refresh", "true")
		return nil
	case after == t.last && q.Get("state") == now.State:
		t.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	n := t.news(v, after, first, q.Get("tree"))
	if q.Get("state") != now.State {
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

// taken reports whether what a page was drawn from has been withdrawn since.
func (w *watch) taken(version string, after uint64) bool {
	var restarts int
	_, err := fmt.Sscanf(version, "%d.", &restarts)
	return err != nil || restarts != w.restarts || after > w.last
}

// news returns what came after an operation, for a page that shows the newest
// from first on; with first 0 it shows older ones.
func (w *watch) news(v shown, after, first uint64, version string) news {
	n := news{Path: taskPath(w.id)}
	if version != w.version() {
		tree, chart := w.tree(v), picture.ChartOf(w.builder.Requests(), w.builder.Marks())
		n.Tree, n.Chart = &tree, &chart
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
		// Its head is made from all of the step.
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

package page

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/page/patch"
	"anamnesis/cmd/internal/page/picture"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

// treeView is a part of the tree of steps, as a drawing and as lists.
type treeView struct {
	picture.Drawing
	Path          string
	Branches      []picture.Branch
	First, Last   int // rows shown, from 1
	Total         int
	Before, After string
}

// maxJumpsListed is how many jumps a task's page lists; the tree shows all.
const maxJumpsListed = 40

// course is how a task went, beside its report.
type course struct {
	Path        string
	Jumps       []timeline.Arc // the newest first
	More        int            // jumps before these
	Goal, Curve string         // how the goal's checks went: in words, and as an SVG path
	Todos       []op.Todo
	Tokens      string // of the requests to the model, against its limits
}

func (w *watch) course() course {
	st := w.builder.State()
	c := course{Path: taskPath(w.id), Jumps: w.builder.Tree().Arcs, Todos: st.Todos,
		Tokens: requestTokens(w.builder.Requests())}
	slices.Reverse(c.Jumps)
	c.More = max(0, len(c.Jumps)-maxJumpsListed)
	c.Jumps = c.Jumps[:len(c.Jumps)-c.More]
	_, c.Goal = st.Goal.Curve()
	c.Curve = picture.Curve(st.Goal.Heights())
	return c
}

func (w *watch) tree(v shown) treeView {
	whole := w.builder.Tree()
	nodes, from := whole.Window(v.row, picture.RowsShown)
	t := treeView{Drawing: picture.Draw(whole, from, len(nodes)), Path: taskPath(w.id), First: from + 1, Last: from +
		len(nodes), Total: len(whole.Nodes)}
	t.Branches = picture.Branches(nodes)
	if from > 0 {
		v.row = max(from-picture.RowsShown, 0)
		t.Before = v.query(t.Path)
	}
	if t.Last < t.Total {
		v.row = t.Last
		t.After = v.query(t.Path)
	}
	return t
}

// requestTokens says how large the requests to the model were.
func requestTokens(requests []timeline.Request) string {
	if len(requests) == 0 {
		return "The model was not asked yet."
	}
	last, peak := requests[len(requests)-1], 0
	for _, r := range requests {
		peak = max(peak, r.Tokens)
	}
	text := fmt.Sprintf("Last request %d tokens, %d %% of the EAS of %d", last.Tokens,
		last.Tokens*100/max(last.EAS, 1), last.EAS)
	if last.Window > 0 {
		text += fmt.Sprintf(", window %d", last.Window)
	}
	return fmt.Sprintf("%s. %s, at most %d tokens.", text, quote.Number(len(requests), "request"), peak)
}

// worldDiff compares two snapshots of a task's world. It takes no lock and changes nothing.
func (s *Server) worldDiff(ctx context.Context, st *state.State, from, to string) (patch.Diff, error) {
	w, err := s.tasks.World(st)
	if err != nil {
		return patch.Diff{}, err
	}
	defer w.Close()
	changes, err := session.Changes(ctx, w, worldstate.ID(from), worldstate.ID(to), nil)
	if err != nil {
		return patch.Diff{}, err
	}
	var text patch.Buffer
	if err := w.Patch(ctx, &text, changes); err != nil && !errors.Is(err, patch.ErrFull) {
		return patch.Diff{}, err
	}
	return patch.Read(text.String()), nil
}

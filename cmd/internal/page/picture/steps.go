package picture

import (
	"fmt"
	"strings"

	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
)

const (
	// TextColumns is how much of a text one line shows.
	TextColumns = 120
	// maxNesting is how deep lists are nested; deeper branches are in the innermost.
	maxNesting = 16
	// marksShown is how many marks a step's row shows; its own page has all.
	marksShown = 3
	// markColumns is how much of a mark's text is shown.
	markColumns = 160
)

// Item is one step in the nested lists.
type Item struct {
	timeline.Node
	Opens   bool       // a nested list begins before it
	Splits  bool       // another branch begins: a list ends and one begins
	Leaf    bool       // its entry has no nested list
	Shuts   []struct{} // lists that end after it
	Branch  string     // label of the list that begins
	What    string
	Signs   []string // its state, in words
	Made    []mark
	MoreOps uint64 // the first mark that is not shown
}

// mark is an event at a step.
type mark struct {
	Seq         uint64
	Sign, Short string
	Text        string
}

// Items returns where nested lists begin and end: a branch is a list within the entry of the
// row before it. It also returns the lists that are open at the end.
func Items(nodes []timeline.Node) ([]Item, []struct{}) {
	out := make([]Item, len(nodes))
	depth := 0
	for i, n := range nodes {
		it := Item{Node: n, Signs: signs(n)}
		it.Made, it.MoreOps = marksOf(n)
		if it.What = term.Line(n.Text, TextColumns); it.What == "" {
			it.What = "no call"
		}
		if i > 0 {
			next := min(max(n.Lane-nodes[0].Lane, 0), depth+1, maxNesting)
			above := &out[i-1]
			if it.Opens = next > depth; !it.Opens {
				above.Leaf, above.Shuts = true, make([]struct{}, depth-next)
				it.Splits = next > 0 && branches(nodes, i)
			}
			depth = next
		}
		if it.Opens || it.Splits {
			it.Branch = branchName(n)
		}
		out[i] = it
	}
	if len(out) > 0 {
		out[len(out)-1].Leaf = true
	}
	return out, make([]struct{}, depth)
}

// branches reports whether a row begins a branch: its parent is in another lane or not shown.
func branches(nodes []timeline.Node, row int) bool {
	at := row - 1
	for at >= 0 && nodes[at].Step != nodes[row].Parent {
		at--
	}
	return at < 0 || nodes[at].Lane < nodes[row].Lane
}

func branchName(n timeline.Node) string {
	name := fmt.Sprintf("Branch from step %d", n.Parent)
	if n.LeftBy != "" {
		name += ", left: " + n.LeftBy
	}
	return term.Line(name, markColumns)
}

// signs returns a step's state in words; the Drawing shows it by form.
func signs(n timeline.Node) []string {
	var out []string
	if n.Current {
		out = append(out, "here")
	}
	if n.UnderWay {
		out = append(out, "under way")
	}
	if !n.OnPath {
		out = append(out, "left")
	}
	if n.Compacted {
		out = append(out, "compacted")
	}
	if n.Failed > 0 {
		out = append(out, fmt.Sprintf("%d failed", n.Failed))
	}
	return out
}

// marksOf returns the first marks of a step, and the operation of the first one left out.
func marksOf(n timeline.Node) (out []mark, more uint64) {
	for _, m := range n.Marks {
		if len(out) == marksShown {
			return out, m.First
		}
		text, _, _ := strings.Cut(m.Text, "\n")
		if m.Jump != nil && m.Jump.Reason != "" {
			text += ": " + m.Jump.Reason
		}
		for _, id := range m.Cards {
			if !strings.Contains(text, id) {
				text += "; card " + id
			}
		}
		out = append(out, mark{m.First, m.Icon, m.Short, term.Line(text, markColumns)})
	}
	return out, 0
}

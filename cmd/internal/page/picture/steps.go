package picture

import (
	"cmp"
	"fmt"
	"strings"

	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
)

const (
	// TextColumns is how much of a text one line shows.
	TextColumns = 120
	// marksShown is how many marks a step's row shows; its own page has all.
	marksShown = 3
	// markColumns is how much of a mark's text is shown.
	markColumns = 160
)

// Branch is steps that follow one another in a lane.
type Branch struct {
	Name  string
	Items []Item
}

type Item struct {
	timeline.Node
	What    string
	Signs   []string // its state, in words
	Made    []mark
	MoreOps uint64 // the first mark that is not shown
}

type mark struct {
	Seq         uint64
	Sign, Short string
	Text        string
}

// Branches returns rows of the tree as lists. Where a step does not go on from the row before it, a list begins.
func Branches(nodes []timeline.Node) (out []Branch) {
	for i, n := range nodes {
		if i == 0 || n.Lane != nodes[i-1].Lane || n.Parent != nodes[i-1].Step {
			out = append(out, Branch{Name: branchName(n)})
		}
		it := Item{Node: n, Signs: signs(n), What: cmp.Or(term.Line(n.Text, TextColumns), "no call")}
		it.Made, it.MoreOps = marksOf(n)
		b := &out[len(out)-1]
		b.Items = append(b.Items, it)
	}
	return out
}

func branchName(n timeline.Node) string {
	if n.Step == 0 {
		return "From the beginning"
	}
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

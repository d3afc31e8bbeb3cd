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
	// maxNesting is how deep the lists stand in one another; branches of branches
	// beyond stand in the innermost.
	maxNesting = 16
	// marksShown is how many marks stand at one step; its own page has all.
	marksShown = 3
	// markColumns is how much of a mark's text is said.
	markColumns = 160
)

// Item is one step in the nested lists.
type Item struct {
	timeline.Node
	Opens   bool       // a list begins before it, within the entry above
	Splits  bool       // another branch begins: one list ends, and one begins
	Leaf    bool       // its entry ends with it
	Shuts   []struct{} // and so many lists, each with the entry it stands in
	Branch  string     // what the list that begins is called
	What    string
	Signs   []string // how it stands, in words
	Made    []mark
	MoreOps uint64 // the first of the marks that are not shown
}

// mark is something that was made at a step.
type mark struct {
	Seq         uint64
	Sign, Short string
	Text        string
}

// Items says where nested lists begin and end: a branch is a list within the
// entry of the row it follows. It also returns the lists that are open at the end.
func Items(nodes []timeline.Node) ([]Item, []struct{}) {
	out := make([]Item, len(nodes))
	depth := 0
	for i, n := range nodes {
		it := Item{Node: n, Signs: Signs(n)}
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

// branches reports whether a row begins a branch: its parent, if that is shown,
// stands in another lane.
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

// Signs are how a step stands, in words: what the Drawing shows by form.
func Signs(n timeline.Node) []string {
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
	if n.Folded {
		out = append(out, "folded")
	}
	if n.Failed > 0 {
		out = append(out, fmt.Sprintf("%d failed", n.Failed))
	}
	return out
}

// marksOf are what was made at a step, as much as there is room for, and the
// operation of the first that is left out.
func marksOf(n timeline.Node) (out []mark, more uint64) {
	for _, m := range n.Marks {
		sign, short := markSign(m)
		if sign == "" {
			continue
		}
		if len(out) == marksShown {
			return out, m.Seq
		}
		text, _, _ := strings.Cut(m.Text, "\n")
		if m.Jump != nil && m.Jump.Reason != "" {
			text += ": " + m.Jump.Reason
		}
		for _, id := range m.Cards {
			text += "; card " + id
		}
		out = append(out, mark{m.Seq, sign, short, term.Line(text, markColumns)})
	}
	return out, 0
}

// markSign is a mark's sign and its shortest text; none for what the operations
// tell better.
func markSign(m timeline.Mark) (sign, short string) {
	switch m.Kind {
	case timeline.RowJump:
		if m.Jump == nil {
			return "↩", "no jump"
		}
		return "↩", fmt.Sprintf("to %d", m.Jump.To)
	case timeline.RowMail:
		return "✉", "D-Mail"
	case timeline.RowPass:
		switch {
		case m.Block && len(m.Cards) > 0:
			return "◆", fmt.Sprintf("block, %d ✦", len(m.Cards))
		case m.Block:
			return "◆", "block"
		case len(m.Cards) > 0:
			return "✦", fmt.Sprintf("%d new", len(m.Cards))
		}
		return "◇", "pass"
	case timeline.RowCards:
		return "✦", fmt.Sprintf("%d read", len(m.Cards))
	case timeline.RowMask:
		return "◇", "masked"
	case timeline.RowStrategy:
		return "✳", "strategy"
	case timeline.RowWords:
		return "»", "words"
	case timeline.RowEnd:
		return "■", "end"
	}
	return "", ""
}

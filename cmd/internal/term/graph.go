package term

import (
	"slices"
	"strings"
)

// A Node is one snapshot in a graph of snapshots.
type Node struct {
	ID     string
	Parent string // "" or an id that is not in the list for a root
	Text   string
	Filled bool // where the world is
}

// Graph draws a forest, one node a line, each at most width columns: children
// above their parent, each branch in one piece and the one with the newest
// node first. nodes come newest first, children before their parents.
func Graph(nodes []Node, width int) []string {
	known := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		known[n.ID] = true
	}
	var lines []string
	var lanes []string // the node each lane leads down to
	for _, i := range branchOrder(nodes) {
		n := nodes[i]
		at := slices.Index(lanes, n.ID)
		if at < 0 {
			at = len(lanes)
			lanes = append(lanes, n.ID)
		}
		glyph := "○"
		if n.Filled {
			glyph = "●"
		}
		left := strings.Repeat("│ ", at) + glyph + strings.Repeat(" │", len(lanes)-at-1) + "  "
		room := max(width-2*len(lanes)-1, 8)
		lines = append(lines, left+Line(n.Text, room))
		switch to := slices.Index(lanes, n.Parent); {
		case !known[n.Parent]:
			lanes = slices.Delete(lanes, at, at+1)
		case to >= 0: // the parent has a lane already: this one ends in it
			lines = append(lines, strings.Repeat("│ ", to)+"├─"+strings.Repeat("──", at-to-1)+"╯")
			lanes = slices.Delete(lanes, at, at+1)
		default:
			lanes[at] = n.Parent
		}
	}
	return lines
}

// branchOrder returns the nodes' indices so that each branch is contiguous: lanes then never
// cross, and a branch joins the lane to its left.
func branchOrder(nodes []Node) []int {
	index := make(map[string]int, len(nodes))
	for i, n := range nodes {
		index[n.ID] = i
	}
	children := make([][]int, len(nodes))
	newest := make([]int, len(nodes)) // of a node and all above it
	var roots []int
	for i, n := range nodes {
		newest[i] = i
		if p, ok := index[n.Parent]; ok && p > i {
			children[p] = append(children[p], i)
		} else {
			roots = append(roots, i)
		}
	}
	for i := range nodes { // children come first in the list
		for _, c := range children[i] {
			newest[i] = min(newest[i], newest[c])
		}
		slices.SortFunc(children[i], func(a, b int) int { return newest[a] - newest[b] })
	}
	slices.SortFunc(roots, func(a, b int) int { return newest[a] - newest[b] })
	var out []int
	stack := slices.Clone(roots)
	slices.Reverse(stack)
	for opened := make([]bool, len(nodes)); len(stack) > 0; {
		i := stack[len(stack)-1]
		if opened[i] {
			stack = stack[:len(stack)-1]
			out = append(out, i)
			continue
		}
		opened[i] = true
		for _, c := range slices.Backward(children[i]) {
			stack = append(stack, c)
		}
	}
	return out
}

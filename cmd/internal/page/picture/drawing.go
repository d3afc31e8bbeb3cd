// Package picture lays out what a page shows of a task's steps: the tree of steps as a
// drawing and as lists.
package picture

import (
	"fmt"
	"strings"

	"anamnesis/cmd/internal/timeline"
)

// The tree of steps is drawn beside a list, row by row. Lengths are in pixels; rowHeight is
// that of .row in timeline.css.
const (
	rowHeight  = 32
	laneWidth  = 18
	nodeRadius = 6
	// maxLanes is how many lanes are drawn; deeper branches share the last one. The list
	// says where each begins.
	maxLanes = 8
	// arcGutter is the width left of the tree for jumps.
	arcGutter = 44
	// RowsShown is how many steps one page draws.
	RowsShown = 200
	// arcsShown is how many jumps one page draws: the newest of those that touch
	// the rows shown.
	arcsShown = 60
)

// Drawing is a part of the tree of steps as an SVG shows it.
type Drawing struct {
	Width, Height int
	Edges         []edge
	Arcs          []arc
	Nodes         []dot
	Hidden        int // jumps that are not drawn
}

// edge is the line from a step to a child.
type edge struct {
	D    string // of a path
	Left bool   // to a step that was left
}

type arc struct {
	D       string // of a path
	Head    string // the points of its head; "" if it lies outside the drawing
	Forward bool
}

type dot struct {
	timeline.Node
	X, Y int
}

func Draw(tree timeline.Tree, from, rows int) Drawing {
	d := Drawing{Width: arcGutter + min(max(tree.Lanes, 1), maxLanes)*laneWidth, Height: rows * rowHeight}
	for row, n := range tree.Nodes {
		if n.ParentRow >= 0 && row >= from && n.ParentRow < from+rows {
			d.Edges = append(d.Edges, edge{d.edge(tree.Nodes[n.ParentRow].Lane, n.ParentRow-from,
				n.Lane, row-from), !n.OnPath})
		}
	}
	for i, n := range tree.Nodes[from : from+rows] {
		d.Nodes = append(d.Nodes, dot{n, laneX(n.Lane), rowY(i)})
	}
	for i := len(tree.Arcs) - 1; i >= 0; i-- {
		a := tree.Arcs[i]
		inside := func(row int) bool { return row >= from && row < from+rows }
		if len(d.Arcs) == arcsShown || !inside(a.FromRow) && !inside(a.ToRow) {
			d.Hidden++
			continue
		}
		fromLane, toLane := tree.Nodes[a.FromRow].Lane, tree.Nodes[a.ToRow].Lane
		d.Arcs = append(d.Arcs, d.arc(fromLane, a.FromRow-from, toLane, a.ToRow-from, a.Backward))
	}
	return d
}

func laneX(lane int) int { return arcGutter + min(lane, maxLanes-1)*laneWidth + nodeRadius + 2 }

func rowY(row int) int { return row*rowHeight + rowHeight/2 }

// within limits a height to the drawing; lines beyond are cut off at its edge.
func (d Drawing) within(y int) int { return min(max(y, 0), d.Height) }

// edge returns the line down the parent's lane and over to the child's.
func (d Drawing) edge(fromLane, fromRow, toLane, toRow int) string {
	x, y := laneX(fromLane), d.within(rowY(fromRow)+nodeRadius)
	toX, toY := laneX(toLane), rowY(toRow)
	if toX == x || toY > d.Height {
		return fmt.Sprintf("M%d %dV%d", x, y, d.within(toY-nodeRadius))
	}
	return fmt.Sprintf("M%d %dV%dQ%d %d %d %d", x, y, toY-rowHeight/2, x, toY, toX-nodeRadius, toY)
}

// arc returns a curve on the left, wider for a longer jump.
func (d Drawing) arc(fromLane, fromRow, toLane, toRow int, backward bool) arc {
	const gap, head = nodeRadius + 3, 7
	x, y := laneX(fromLane)-gap, d.within(rowY(fromRow))
	toX, toY := laneX(toLane)-gap, d.within(rowY(toRow))
	out := arcGutter - min(10+2*abs(toRow-fromRow), arcGutter+8)
	a := arc{Forward: !backward, D: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, y, out, y, out, toY, toX-head, toY)}
	if toY == rowY(toRow) {
		a.Head = fmt.Sprintf("%d,%d %d,%d %d,%d", toX-head, toY-4, toX, toY, toX-head, toY+4)
	}
	return a
}

func abs(n int) int { return max(n, -n) }

// Curve is the line through heights from 0 to 1 as an SVG path, 200 wide and 30 high; of one height it is level.
func Curve(heights []float64) string {
	var d strings.Builder
	for i, h := range heights {
		fmt.Fprintf(&d, "L%.1f %.1f", 200*float64(i)/float64(max(len(heights)-1, 1)), 28-26*h)
		if len(heights) == 1 {
			d.WriteString("H200")
		}
	}
	return strings.Replace(d.String(), "L", "M", 1)
}

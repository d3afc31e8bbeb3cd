// Package picture lays out what a page shows of a task's steps: the tree of steps as a
// drawing and as nested lists, and the chart of tokens.
package picture

import (
	"cmp"
	"fmt"
	"slices"
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
	// arcGutter is the room for jumps beside the tree.
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

// arc is one jump.
type arc struct {
	D       string // of a path
	Head    string // the points of its head; "" if it lies outside the drawing
	Forward bool
}

// dot is one step.
type dot struct {
	X, Y               int
	Class              string
	Compacted, Current bool
}

// Draw draws a number of rows, beginning at row from.
func Draw(tree timeline.Tree, from, rows int) Drawing {
	d := Drawing{Width: arcGutter + min(max(tree.Lanes, 1), maxLanes)*laneWidth, Height: rows * rowHeight}
	for row, n := range tree.Nodes {
		if n.ParentRow >= 0 && row >= from && n.ParentRow < from+rows {
			d.Edges = append(d.Edges, edge{d.edge(tree.Nodes[n.ParentRow].Lane, n.ParentRow-from,
				n.Lane, row-from), !n.OnPath})
		}
	}
	for i, n := range tree.Nodes[from : from+rows] {
		d.Nodes = append(d.Nodes, dot{laneX(n.Lane), rowY(i), dotClass(n), n.Compacted, n.Current})
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

// rowY is the middle of a row.
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

func dotClass(n timeline.Node) string {
	class := []string{"dot"}
	for _, is := range []struct {
		so   bool
		name string
	}{{!n.OnPath, "left"}, {n.Current, "here"}, {n.UnderWay, "underway"}, {n.Failed > 0, "failed"}} {
		if is.so {
			class = append(class, is.name)
		}
	}
	return strings.Join(class, " ")
}

// The chart of tokens, in the units of its view box.
const (
	chartWidth  = 600
	chartHeight = 140
	// chartHead is the room for the marks' labels, labelWidth that of one of them.
	chartHead  = 20
	labelWidth = 96
	// chartPoints is how many requests the chart shows. Of more, it shows the largest of
	// each interval.
	chartPoints = 300
	// windowRoom is how many times as high as the rest of the chart the window may be to be
	// drawn.
	windowRoom = 3
)

// Chart shows the size of each request against the limits.
type Chart struct {
	Width, Height int
	Tokens        string // of paths
	EAS           string
	Window        string // "" if unknown or far above
	Requests      int
	Last          timeline.Request
	Peak          int
	Share         int // of the EAS in the last request, percent
	Label         string
	EASLabel      chartLabel
	WindowLabel   chartLabel
	Marks         []chartMark // jumps, blocks and maskings
}

// chartLabel names a line of the chart.
type chartLabel struct {
	X, Y int
	Text string
}

// chartMark is an event between two requests.
type chartMark struct {
	X     int
	Text  string // empty if there is no room
	Title string
}

func ChartOf(requests []timeline.Request, marks []timeline.Row) Chart {
	c := Chart{Width: chartWidth, Height: chartHeight, Requests: len(requests), Label: "The model was not asked yet."}
	if len(requests) == 0 {
		return c
	}
	shown := timeline.Thin(requests, chartPoints)
	c.Last = shown[len(shown)-1]
	eas := 0
	for _, r := range shown {
		c.Peak, eas = max(c.Peak, r.Tokens), max(eas, r.EAS)
	}
	top := max(c.Peak, eas, 1)
	drawn := c.Last.Window > 0 && c.Last.Window <= windowRoom*top
	if drawn {
		top = max(top, c.Last.Window)
	}
	path := func(of func(timeline.Request) int) string { return linePath(shown, of, top) }
	c.Tokens = path(func(r timeline.Request) int { return r.Tokens })
	c.EAS = path(func(r timeline.Request) int { return r.EAS })
	if drawn {
		c.Window = path(func(r timeline.Request) int { return r.Window })
	}
	c.EASLabel = chartLabel{4, height(c.Last.EAS, top) - 4, fmt.Sprintf("EAS %d", c.Last.EAS)}
	if drawn {
		c.WindowLabel = chartLabel{4, height(c.Last.Window, top) - 4, fmt.Sprintf("window %d", c.Last.Window)}
	}
	c.Marks = marksAt(shown, marks)
	if c.Last.EAS > 0 {
		c.Share = c.Last.Tokens * 100 / c.Last.EAS
	}
	c.Label = fmt.Sprintf("Tokens of %d requests to the model: at most %d, the last %d, with an EAS of %d", c.Requests,
		c.Peak, c.Last.Tokens, c.Last.EAS)
	if c.Last.Window > 0 {
		c.Label += fmt.Sprintf(" and a window of %d", c.Last.Window)
	}
	if n := len(c.Marks); n > 0 {
		c.Label += fmt.Sprintf("; %d marks of jumps and blocks", n)
	}
	return c
}

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

// marksAt places marks between the requests shown, with as many labels as fit.
func marksAt(shown []timeline.Request, rows []timeline.Row) (out []chartMark) {
	from := -labelWidth
	for _, r := range rows {
		after, _ := slices.BinarySearchFunc(shown, r.First,
			func(q timeline.Request, seq uint64) int { return cmp.Compare(q.Seq, seq) })
		if after == 0 || len(shown) < 2 {
			continue
		}
		m := chartMark{X: (2*after - 1) * chartWidth / (2 * (len(shown) - 1)), Title: fmt.Sprintf("%s %s, op %d: %s",
			r.Icon, r.Short, r.First, r.Text)}
		label := markLabel(r)
		m.X = min(m.X, chartWidth-labelWidth/2)
		if n := len(out); n > 0 && out[n-1].X == m.X { // a jump and its block
			out[n-1].Title += "\n" + m.Title
			if was := out[n-1].Text; was != "" && !strings.Contains(was, label) {
				out[n-1].Text = label + ", " + was
			}
			continue
		}
		if m.X-from >= labelWidth {
			from, m.Text = m.X, label
		}
		out = append(out, m)
	}
	return out
}

// markLabel names a mark of the chart.
func markLabel(r timeline.Row) string {
	switch {
	case r.Jump != nil:
		return r.Icon + " jump " + r.Short
	case r.Kind == timeline.RowPass:
		return "block" // its cards have no room
	}
	return r.Short
}

// chartMargin is kept free below the lines.
const chartMargin = 4

// height is where a number of tokens is drawn; top is at the upper edge.
func height(tokens, top int) int {
	return chartHeight - chartMargin - min(tokens, top)*(chartHeight-chartHead-2*chartMargin)/top
}

// linePath is a line through a value of each request; top is at the upper edge.
func linePath(requests []timeline.Request, of func(timeline.Request) int, top int) string {
	var d strings.Builder
	letter := byte('M')
	for i, r := range requests {
		x := chartWidth
		if n := len(requests); n > 1 {
			x = i * chartWidth / (n - 1)
		} else {
			fmt.Fprintf(&d, "M0 %d", height(of(r), top))
			letter = 'L'
		}
		fmt.Fprintf(&d, "%c%d %d", letter, x, height(of(r), top))
		letter = 'L'
	}
	return d.String()
}

package term

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
)

var (
	styleFaint = lipgloss.NewStyle().Faint(true)
	styleHead  = lipgloss.NewStyle().Bold(true)
	styleJump  = lipgloss.NewStyle().Foreground(lipgloss.Color("3"))
	stylePass  = lipgloss.NewStyle().Foreground(lipgloss.Color("5"))
	styleCard  = lipgloss.NewStyle().Foreground(lipgloss.Color("6"))
	styleStep  = lipgloss.NewStyle().Foreground(lipgloss.Color("2"))
)

// Draw draws a timeline, one row a line, at most width columns: on the
// left the line of operations, on the right the tree of steps. Steps on the
// current path are filled, abandoned ones hollow and set off.
func Draw(tl timeline.Timeline, width int) string {
	lines := []string{
		styleHead.Render(Line(tl.ID, width)),
		styleFaint.Render(Line(fmt.Sprintf("%s · EAS %d · %d ops · at step %d", ModelName(tl.Model), tl.EAS,
			tl.Ops, tl.Current), width)),
	}
	if tl.Goal != "" {
		lines = append(lines, Line("goal "+tl.Goal, width))
	}
	lines = append(lines, styleFaint.Render(fmt.Sprintf("%*s  steps", opsColumn-2, "ops")))
	for i := range tl.Rows {
		lines = append(lines, drawRow(tl, i, width))
	}
	return strings.Join(lines, "\n")
}

const opsColumn = 10 // width of the column of operations, with its gap

func drawRow(tl timeline.Timeline, i, width int) string {
	r := tl.Rows[i]
	ops := fmt.Sprint(op.Range{First: r.First, Last: r.Last})
	left := fmt.Sprintf("%*s  ", opsColumn-2, ops)
	glyph, style := "│ "+r.Icon+" ", styleFaint
	switch r.Kind {
	case timeline.RowStep:
		glyph, style = "● ", styleStep
		if !r.OnPath {
			glyph, style = "│ ○ ", styleFaint
		}
		if i > 0 && branches(tl, i) {
			glyph = strings.Replace(glyph, "│ ○", "├─○", 1)
		}
	case timeline.RowPass, timeline.RowStrategy:
		style = stylePass
	case timeline.RowJump, timeline.RowMail:
		style = styleJump
	case timeline.RowCards:
		style = styleCard
	case timeline.RowWords:
		style = styleHead
	case timeline.RowEnd:
		glyph, style = r.Icon+" ", styleHead
	}
	text := r.Text
	if r.Kind == timeline.RowStep {
		text = fmt.Sprintf("%d  %s", r.Step, r.Text)
	}
	room := max(width-len(left)-lipgloss.Width(glyph), 1)
	var lines []string
	for k, part := range strings.Split(text, "\n") {
		if k > 0 { // further lines of a row stand below its text
			left = strings.Repeat(" ", opsColumn)
			glyph = "│" + strings.Repeat(" ", lipgloss.Width(glyph)-1)
		}
		lines = append(lines, styleFaint.Render(left)+style.Render(glyph+Line(part, room)))
	}
	return strings.Join(lines, "\n")
}

// branches reports whether row i is the first step of an abandoned branch.
func branches(tl timeline.Timeline, i int) bool {
	for k := i - 1; k >= 0; k-- {
		if tl.Rows[k].Kind == timeline.RowStep {
			return tl.Rows[k].OnPath
		}
	}
	return false
}

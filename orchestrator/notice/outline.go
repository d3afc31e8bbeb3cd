package notice

import (
	"fmt"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/steps"
)

// MaxOutlined is how many steps an outline lists.
const MaxOutlined = 60

// Outline lists steps from one on: their calls, their outcome, and whether a jump has left
// them.
func Outline(s *state.State, from int) string {
	var sb strings.Builder
	steps := &s.Steps
	from = max(from, 0)
	for id := from; id < steps.Len(); id++ {
		if id == from+MaxOutlined {
			fmt.Fprintf(&sb, "and %d more steps\n", steps.Len()-id)
			break
		}
		st := steps.At(id)
		if !st.Ended {
			continue
		}
		fmt.Fprintf(&sb, "| step %d (ops %s), after step %d: %s", st.ID, op.Range{First: st.First, Last: st.Last},
			st.Parent, callsText(st))
		if !s.Steps.OnPath(st.ID, s.Current) {
			sb.WriteString("; left by a jump")
			if st.LeftBy != "" {
				sb.WriteString(": " + quote.OneLine(st.LeftBy, MaxDelivered))
			}
		}
		sb.WriteByte('\n')
	}
	if sb.Len() == 0 {
		return fmt.Sprintf("there are no steps from %d on", from)
	}
	return sb.String()
}

func callsText(st steps.Step) string {
	switch {
	case st.ID == 0:
		return "the beginning"
	case len(st.Calls) == 0:
		return "an answer"
	case st.Failed > 0:
		return fmt.Sprintf("%s (%d of %d failed)", List(st.Calls, len(st.Calls)), st.Failed, len(st.Calls))
	}
	return List(st.Calls, len(st.Calls))
}

package notice

import (
	"fmt"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// EditedNote shows the model the arguments that replaced those of its call.
func EditedNote(args string) string {
	return "The user edited this call before it ran. What ran has these arguments: " + args + "\n\n"
}

// UndoneCall tells the model how the call ended the last time.
func UndoneCall(u state.Undone, name string) string {
	return fmt.Sprintf("Held, not run: this same %s call was made in this same state of the files in step %d, and "+
		"you left the path it began by a jump. The reason you gave: %s\nIf something has changed that makes it right "+
		"now, make the call again: it runs then.", name, u.Step, u.Reason)
}

// EndedSubagents lists the subagents that ended with the steps that a jump left.
func EndedSubagents(of []state.BegunSubagent) string {
	if len(of) == 0 {
		return ""
	}
	var ended []string
	for _, c := range of {
		ended = append(ended, fmt.Sprintf("%s (%s)", c.Task, c.Agent))
	}
	return fmt.Sprintf("\nSubagents that ended with the steps you left, and cannot be resumed: %s.",
		List(ended, len(ended)))
}

// MaskLine is what replaces a masked result.
func MaskLine(seq uint64, r *op.ToolReturned) string {
	how := ""
	switch {
	case r.Unknown:
		how = ", outcome unknown"
	case r.Refused:
		how = ", refused"
	case r.Exit != nil:
		how = fmt.Sprintf(", exit %d", *r.Exit)
	case r.IsError:
		how = ", error"
	}
	return fmt.Sprintf("op %d: %s, %s%s (taken out to make room; recall with op %d opens it)", seq, r.Name,
		sizeText(len(r.Text)), how, seq)
}

// sizeText formats a size for users.
func sizeText(bytes int) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d KiB", (bytes+512)/1024)
}

package state

import (
	"anamnesis/orchestrator/loop"
)

// asked returns the call in the form that the tally of repeated calls counts.
func (c *CallState) asked() loop.Call {
	return loop.Call{World: c.World, Tool: c.Name, Args: c.Args, Effects: c.Effects}
}

// goesBack reports whether a recorded call may have rewound the agent, by the names of the
// tools whose spec says Rewinds. A repeated call after that does not count as repeated.
func goesBack(name string) bool {
	return name == "jump_to_step" || name == "SendDMail" || name == "dmail"
}

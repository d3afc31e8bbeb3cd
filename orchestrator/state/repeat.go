package state

import (
	"anamnesis/orchestrator/loop"
)

// asked is the call as the tally of repeated calls counts it.
func (c *CallState) asked() loop.Call {
	return loop.Call{World: c.World, Tool: c.Name, Args: c.Args, Effects: c.Effects}
}

// goesBack reports whether a recorded call may have taken the agent back to where it
// was, by the names of the tools whose spec says Rewinds: that
// does not make what it does next another call.
func goesBack(name string) bool {
	return name == "jump_to_step" || name == "SendDMail" || name == "dmail"
}

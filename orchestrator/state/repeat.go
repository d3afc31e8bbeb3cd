package state

import (
	"anamnesis/orchestrator/loop"
)

// asked is the call as the tally of repeated calls counts it.
func (c *CallState) asked() loop.Call {
	return loop.Call{World: c.World, Tool: c.Name, Args: c.Args, Effects: c.Effects}
}

// GoesBack reports whether a call may bring the agent back to where it was: that
// does not make what it does next another call.
func GoesBack(name string) bool {
	return name == "jump_to_step" || name == "SendDMail" || name == "dmail"
}

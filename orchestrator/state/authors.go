package state

// What changes in the directory while no call, background command or subagent
// runs is the user's. So that no step counts it as its own, the world is looked
// at before the first call of a reply that may write, before and after a wait for
// the user in the middle of its calls, before the first request of a turn, and
// before a jump or a restore. A step whose calls only read owns nothing.

// The authors of op.WorldChanged.
const (
	ChangedByUser  = "user"
	ChangedUnknown = "unknown" // a background command or a subagent was running
)

package state

// Changes while no call, background command or subagent runs are the user's. So that no step
// counts them as its own, the world is saved before the first call of a reply that may write,
// before and after a wait for the user between its calls, before the first request of a turn,
// and before a jump or a restore. A step whose calls only read owns no changes.

// The authors of op.WorldChanged.
const (
	ChangedByUser  = "user"
	ChangedUnknown = "unknown" // a background command or a subagent was running
)

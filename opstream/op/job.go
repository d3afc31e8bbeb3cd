package op

// JobStarted records that a command runs in the background: its call has returned.
type JobStarted struct {
	Job       string `json:"job"`     // its id, such as bg_1
	Call      string `json:"call"`    // the call that began it
	Command   string `json:"command"` // the command line
	Timeout   int    `json:"timeout"` // seconds after which it is ended
	PID       int    `json:"pid"`     // as in ToolStarted
	StartTime uint64 `json:"start_time"`
	BootID    string `json:"boot_id"`
}

// JobEnded ends a background command.
type JobEnded struct {
	Job string `json:"job"`
	// Why is exit | timeout | stopped (by the agent) | jump | closed (the program
	// ended) | lost (it died).
	Why    string `json:"why"`
	Exit   int    `json:"exit"`
	Bytes  int64  `json:"bytes"`            // of output
	Notice string `json:"notice,omitempty"` // shown to the model
	// Network says that text from outside may be in the output: a subagent's answer,
	// when the subagent had any.
	Network bool `json:"network,omitempty"`
}

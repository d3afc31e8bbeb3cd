package op

// Mail is a D-Mail: a message by which the agent replaces everything in its context after a
// checkpoint.
type Mail struct {
	// Checkpoint is the sender's number: a step, or, if Numbered is set, the number of a
	// CheckpointMarked.
	Checkpoint int    `json:"checkpoint"`
	Numbered   bool   `json:"numbered,omitempty"`
	Message    string `json:"message"`
	// RestoreFiles makes it a full jump: files are restored, too, and the next step continues
	// the checkpoint's. Otherwise neither the world nor the current step changes.
	RestoreFiles bool `json:"restore_files,omitempty"`
}

// CheckpointMarked numbers the end of the step under way, for the tool dmail. Numbers begin at
// 0, have no gaps and are not reused.
type CheckpointMarked struct {
	Checkpoint int    `json:"checkpoint"`
	Call       string `json:"call"` // id of the call that marked it
}

// MailDelivered ends a D-Mail that moved no file. The pass made for it takes
// effect.
type MailDelivered struct {
	From   int    `json:"from"` // the step it was sent in, and the current step still
	To     int    `json:"to"`   // the step whose end is the checkpoint
	Reason string `json:"reason"`
}

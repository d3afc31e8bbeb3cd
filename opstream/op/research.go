package op

// ResearchDone records what the agent found out about a subject before acting on it, and from
// which operations of this task.
type ResearchDone struct {
	Call     string   `json:"call"`    // call id
	Subject  string   `json:"subject"` // such as npm:left-pad, host:example.com, model:gpt-9
	Question string   `json:"question"`
	Findings string   `json:"findings"`
	Cites    []uint64 `json:"cites"`
	Look     uint64   `json:"look"` // the cited result that counts: a call that succeeded and only looked
}

// CallPattern matches calls by their tool and, for commands, by a pattern in which * matches
// any text.
type CallPattern struct {
	Tool    string `json:"tool"`
	Command string `json:"command,omitempty"`
}

package memory

// Metrics are the figures of one task in one arm.
type Metrics struct {
	Solved bool   `json:"solved"`
	GaveUp string `json:"gave_up,omitempty"` // steps | tokens | locked, when not solved
	Steps  int    `json:"steps"`             // requests of the agent

	DeadEnds int `json:"dead_ends"` // met, repeated ones included
	Repeated int `json:"repeated"`  // met again in the same state
	// Chances counts the decisions at which some option leads to the solution,
	// Suppressed those of them at which the agent left it out for what it believed.
	Chances    int `json:"chances"`
	Suppressed int `json:"suppressed"`

	Cached     int `json:"cached"` // prompt tokens
	Uncached   int `json:"uncached"`
	Output     int `json:"output"`
	PassTokens int `json:"pass_tokens"` // of these, what the passes took
	Peak       int `json:"peak"`        // largest prompt

	Jumps  int `json:"jumps"`
	Passes int `json:"passes"`
	Asked  int `json:"asked"` // times the loop guard asked the user, who said to go on

	shown   []string // cards recalled, in World C
	written int      // cards written
}

// price is what the tokens cost, in uncached prompt tokens.
func (m *Metrics) price() float64 {
	return float64(m.Uncached) + cachedPrice*float64(m.Cached) + outputPrice*float64(m.Output)
}

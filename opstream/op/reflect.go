package op

// ReflectAsked is the intent to ask the Reflect-Agent: the agent wants to jump back to one
// step again, after several jumps there.
type ReflectAsked struct {
	To    int    `json:"to"`    // the step of the repeated jumps
	Jumps int    `json:"jumps"` // there since the count began; by the goal: how many checks were no better
	Model string `json:"model"`
	// By is [ByGoal] if the goal's checks get no better: To is the step with the best one, to which the task goes
	// back. Empty: the loop guard, as above.
	By string `json:"by,omitempty"`
}

// StrategyGiven is the Reflect-Agent's answer. A plan restarts the count of jumps to that
// step, and the jump continues; with a question alone, a user must answer first.
type StrategyGiven struct {
	To        int      `json:"to"`
	By        string   `json:"by,omitempty"` // see ReflectAsked
	Diagnosis string   `json:"diagnosis"`
	Abandon   []string `json:"abandon,omitempty"`
	Plan      []string `json:"plan,omitempty"`
	Question  string   `json:"question,omitempty"`
	Text      string   `json:"text"`             // the [STRATEGY] message, as the model sees it
	Looked    []Call   `json:"looked,omitempty"` // what the Reflect-Agent looked up
	Calls     int      `json:"calls"`            // model calls
	Usage     Usage    `json:"usage"`
	Millis    int64    `json:"ms"`
}

// ReflectFailed records that there is no strategy: the model failed, or its answers were
// unusable.
type ReflectFailed struct {
	To     int    `json:"to"`
	By     string `json:"by,omitempty"` // see ReflectAsked
	Why    string `json:"why"`
	Looked []Call `json:"looked,omitempty"`
	Calls  int    `json:"calls"`
	Usage  Usage  `json:"usage"`
	Millis int64  `json:"ms"`
}

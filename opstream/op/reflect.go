package op

// ReflectAsked is the intent to ask the Reflect-Agent: the agent wants to go
// back to one step once more, and the times before did not help.
type ReflectAsked struct {
	To    int    `json:"to"`    // the step the agent keeps going back to
	Jumps int    `json:"jumps"` // how often it went there since the count began
	Model string `json:"model"`
}

// StrategyGiven is the Reflect-Agent's answer. With a plan it restarts the
// count of jumps to that step, and the jump goes on; with a question alone a
// user has to answer first.
type StrategyGiven struct {
	To        int      `json:"to"`
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

// ReflectFailed says that there is no strategy: the model was down, or its
// answers could not be used.
type ReflectFailed struct {
	To     int    `json:"to"`
	Why    string `json:"why"`
	Looked []Call `json:"looked,omitempty"`
	Calls  int    `json:"calls"`
	Usage  Usage  `json:"usage"`
	Millis int64  `json:"ms"`
}

// Kind implements Body.
func (*ReflectAsked) Kind() Kind { return KindReflectAsked }

// Kind implements Body.
func (*StrategyGiven) Kind() Kind { return KindStrategyGiven }

// Kind implements Body.
func (*ReflectFailed) Kind() Kind { return KindReflectFailed }

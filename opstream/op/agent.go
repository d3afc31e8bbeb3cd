package op

// Agent is an agent spec with everything resolved: what it extends, its prompt's
// text, its subagents.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"` // what it is for: by it a model chooses a subagent
	From        string `json:"from"`                  // its file, or embedded:NAME.yaml
	// Hash is the SHA-256 of everything below in JSON, hex, with name and description: it
	// changes whenever the agent's behaviour may change.
	Hash string `json:"hash"`
	// Prompt is the system prompt's text before ${NAME}s are filled in; empty in a task's own
	// record, where TaskOpened.System has the result. Args are the values of its own names.
	Prompt string            `json:"prompt,omitempty"`
	Args   map[string]string `json:"prompt_args,omitempty"`
	Model  string            `json:"model,omitempty"` // empty: the run's, or the parent's
	// Tools are names or path.Match patterns of the tools it is offered. If empty, it is
	// offered all that need not be asked for by name. ExcludeTools are removed.
	Tools        []string `json:"tools,omitempty"`
	ExcludeTools []string `json:"exclude_tools,omitempty"`
	ReadOnly     bool     `json:"read_only,omitempty"` // only tools that change nothing are offered
	Approval     string   `json:"approval,omitempty"`  // ask | edits | auto | deny; empty: the run's
	Sandbox      string   `json:"sandbox,omitempty"`   // world | read-only | off; empty: the run's
	// Guarded are calls that need an investigation first, beside the built-in kinds.
	Guarded []CallPattern `json:"guarded,omitempty"`
	// Allow, Ask and Deny are rules, as they are written.
	Allow     []string `json:"allow,omitempty"`
	Ask       []string `json:"ask,omitempty"`
	Deny      []string `json:"deny,omitempty"`
	Subagents []Agent  `json:"subagents,omitempty"` // sorted by name; without subagents of their own
}

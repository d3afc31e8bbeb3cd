package op

// Agent is an agent spec with everything resolved: what it extends, its prompt's
// text, its subagents.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"` // what it is for: by it a model chooses a subagent
	From        string `json:"from"`                  // its file, or embedded:NAME.yaml
	// Hash is the SHA-256 of everything below in JSON, hex, with name and
	// description: it changes when anything the agent does may change.
	Hash string `json:"hash"`
	// Prompt is the system prompt's text before ${NAME}s are filled in; empty in a
	// task's own record, where TaskOpened.System is what came of it. Args are the
	// texts that stand for names of its own.
	Prompt string            `json:"prompt,omitempty"`
	Args   map[string]string `json:"prompt_args,omitempty"`
	Model  string            `json:"model,omitempty"` // empty: the run's, or the parent's
	// Tools are names, or patterns as of path.Match, of the tools it is offered;
	// empty: all that need not be asked for by name. ExcludeTools are taken out.
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
	Subagents []Agent  `json:"subagents,omitempty"` // sorted by name; they have none themselves
}

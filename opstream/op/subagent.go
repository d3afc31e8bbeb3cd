package op

// Parent identifies the task that a subagent's task belongs to. It is in the subagent's first
// operation.
type Parent struct {
	Task     string `json:"task"`
	Op       uint64 `json:"op"`   // the tool.called that began it
	Call     string `json:"call"` // and its call id
	Agent    string `json:"agent"`
	ReadOnly bool   `json:"read_only,omitempty"`
	// Fork: the subagent works in its own directory, a copy of the parent's world.
	Fork bool `json:"fork,omitempty"`
}

// ParentTask is the task whose agent began this one, empty if none did.
func (t *TaskOpened) ParentTask() string {
	if t.Parent == nil {
		return ""
	}
	return t.Parent.Task
}

// WorktreeOf is the directory that the task's was made of, empty if it is the user's own.
func (t *TaskOpened) WorktreeOf() string {
	if t.Worktree == nil {
		return ""
	}
	return t.Worktree.From
}

// ParentAgent is the name of the subagent whose task this is, empty for other tasks.
func (t *TaskOpened) ParentAgent() string {
	if t.Parent == nil {
		return ""
	}
	return t.Parent.Agent
}

// SubagentStarted records that a subagent works on a call. Its task has begun.
type SubagentStarted struct {
	Call        string `json:"call"`
	Task        string `json:"task"` // the subagent's
	Agent       string `json:"agent"`
	Description string `json:"description,omitempty"`
	Resumed     bool   `json:"resumed,omitempty"` // it had worked before
	Dir         string `json:"dir,omitempty"`     // its own, if it has one
	// Before is its model usage until then.
	Before Usage `json:"before"`
	// From is the last operation of its task at that time; 0: none.
	From uint64 `json:"from,omitempty"`
}

// SubagentEnded records how a subagent's turn ended. Its task stays and can be resumed.
type SubagentEnded struct {
	Call string `json:"call"`
	Task string `json:"task"`
	// Reason is one of TurnEnded's, or lost: the program died.
	Reason string `json:"reason"`
	Steps  int    `json:"steps"` // taken since SubagentStarted
	Usage  Usage  `json:"usage"` // since then
}

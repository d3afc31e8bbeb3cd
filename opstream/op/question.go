package op

import (
	"cmp"
	"strings"
)

// What questions are about.
const (
	AboutCall     = "call"     // whether a call may run
	AboutAnswer   = "answer"   // what the agent asks with AskUser
	AboutStrategy = "strategy" // what to try next, if the Reflect-Agent has no plan
	AboutLimit    = "limit"    // whether a limit that is reached is raised
	AboutProvider = "provider" // a fault that a user has to correct, and then to ask again
)

// QuestionAsked is a question to a user. It is open until a QuestionAnswered names it, or until what asked it
// has ended.
type QuestionAsked struct {
	About string `json:"about"` // AboutCall, …
	Text  string `json:"text"`  // the question; for AboutCall, what the answer is about
	// Task is the subagent's that asks; empty: the task itself does.
	Task string `json:"task,omitempty"`
	// Call is the one that asks or may run. Name, Args, Why and Print are of AboutCall: see ApprovalDecided.
	Call  string `json:"call,omitempty"`
	Name  string `json:"name,omitempty"`
	Args  string `json:"args,omitempty"`
	Why   string `json:"why,omitempty"` // the mode or the rule that asks
	Print string `json:"print,omitempty"`
	Note  string `json:"note,omitempty"`  // about an earlier answer
	Limit Limit  `json:"limit,omitempty"` // of AboutLimit
	// Parked: no user was present, so the task waits for an answer from elsewhere.
	Parked bool `json:"parked,omitempty"`
}

// Same reports whether two questions ask for one answer.
func (q *QuestionAsked) Same(o *QuestionAsked) bool {
	return q.About == o.About && q.Task == o.Task && q.Call == o.Call && q.Name == o.Name && q.Print == o.Print &&
		q.Note == o.Note && q.Limit == o.Limit
}

// Answer is a user's answer to a question.
type Answer struct {
	Allow   bool   `json:"allow,omitempty"`    // the call runs, the limit is raised, the provider is asked again
	ForTask bool   `json:"for_task,omitempty"` // and everything else in this task runs, too
	Same    bool   `json:"same,omitempty"`     // and exactly this again in this task
	Like    bool   `json:"like,omitempty"`     // and calls like it in this task: see ApprovalDecided.Rules
	Always  bool   `json:"always,omitempty"`   // and exactly this again in this directory
	Args    string `json:"args,omitempty"`     // the call's arguments as the user edited them; they are decided anew
	Text    string `json:"text,omitempty"`     // words to the model, which survive jumps; of AboutLimit: the new limit
}

// Words returns the answer to a question about something as a user reads it.
func (a *Answer) Words(about string) string {
	switch {
	case a.Args != "":
		return "edited: " + a.Args
	case a.Always:
		return "always"
	case a.Allow:
		return strings.TrimSuffix("yes, "+a.Text, ", ")
	case about == AboutCall:
		return strings.TrimSuffix("no, "+a.Text, ", ")
	}
	return cmp.Or(a.Text, "no")
}

// QuestionAnswered is the first answer to a question.
type QuestionAnswered struct {
	Asked uint64 `json:"asked"` // seq of the QuestionAsked
	Answer
	By    string `json:"by"`   // the user's name on the machine
	From  string `json:"from"` // terminal | answer | page | attach
	Inbox *Sent  `json:"inbox,omitempty"`
}

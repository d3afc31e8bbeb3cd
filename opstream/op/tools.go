package op

import "strings"

// Act is what the calls of a tool do, as far as its recorded name says. A tool's spec says more,
// but streams hold names only, and calls of other agents get these names when they are recorded.
type Act string

// The acts. Other tools have none.
const (
	Reads        Act = "reads"
	Edits        Act = "edits"
	Searches     Act = "searches"
	RunsShell    Act = "runs a shell"
	Fetches      Act = "fetches"
	Thinks       Act = "thinks"
	Plans        Act = "plans"
	Investigates Act = "investigates"
	Rewinds      Act = "rewinds" // may take the agent back to an earlier point
	Delegates    Act = "delegates"
)

// Acts returns what a tool does.
func Acts(tool string) Act {
	act, _ := recorded(tool)
	return act
}

// MainArgs returns the arguments by which a call is shown, the best first.
func MainArgs(tool string) []string {
	_, args := recorded(tool)
	return strings.Fields(args)
}

// recorded is the only table of the tools' names in streams; a test compares it with the tools'
// specs.
func recorded(tool string) (act Act, mainArgs string) {
	switch tool {
	case "ReadFile", "ReadMedia", "ReadOperation":
		act = Reads
	case "WriteFile", "StrReplaceFile", "PatchFile":
		act = Edits
	case "Glob", "Grep":
		return Searches, "pattern"
	case "Bash":
		return RunsShell, "command"
	case "FetchURL", "SearchWeb":
		act = Fetches
	case "Think":
		return Thinks, "thought"
	case "SetTodoList":
		act = Plans
	case "investigate":
		return Investigates, "subject"
	case "jump_to_step":
		return Rewinds, "step_id"
	case "SendDMail": // the message is for the agent
		return Rewinds, "checkpoint_id"
	case "dmail":
		return Rewinds, "action"
	case "AskUser":
		return "", "question"
	case "Task":
		return Delegates, "description"
	case "recall":
		return "", "query op"
	}
	return act, "path command pattern query url name message"
}

// Package remedy says what would help against an error, as a value: each front end words it for
// its users, or leaves it out.
package remedy

type Kind string

// The remedies. What the name of an [Error] is stands beside each.
const (
	ListTasks       Kind = "list tasks"
	FindStream      Kind = "find the stream of a task"        // the task
	ShowTimeline    Kind = "show the timeline of a task"      // the task
	ReadImported    Kind = "read an imported session"         // the task
	Salvage         Kind = "salvage a task's stream"          // the task
	Resume          Kind = "resume a task"                    // the task
	Request         Kind = "say what is next"                 // the task
	Relocate        Kind = "name a task's directory"          // the task
	RelocateOrMake  Kind = "find or recreate the directory"   // the task
	ContinueKept    Kind = "continue a task where it is kept" // the task
	Detach          Kind = "continue a copy of a task"        // the task
	FinishJump      Kind = "finish or abandon a jump"         // the task
	RestoreFiles    Kind = "restore the files alone"          // the task
	JumpOther       Kind = "take another agent's files back"  // the task
	OtherDirectory  Kind = "use another directory"
	OtherModel      Kind = "name another model"
	OtherReflect    Kind = "name another model for the Reflect-Agent"
	NameModel       Kind = "name a model"
	NameServer      Kind = "name the model's server" // the variable of the key
	SetUpModel      Kind = "set up a model"          // the variable of the key
	ListAgents      Kind = "list agents"
	ApproveAgent    Kind = "approve an agent" // the agent
	ApproveSkills   Kind = "approve skills"
	ListServers     Kind = "list MCP servers"
	AddServer       Kind = "add an MCP server"
	ApproveServer   Kind = "approve an MCP server"    // the server
	GrantServer     Kind = "grant an MCP server more" // the server
	SandboxOff      Kind = "run without a sandbox"
	SandboxReadOnly Kind = "let commands write nothing"
	SaveStore       Kind = "begin a store" // the store
	FindStore       Kind = "name a store"
	AddressAgain    Kind = "give the model's address again"
	JumpAlone       Kind = "jump without continuing the session"
	Search          Kind = "search for published figures again"
	ListProposals   Kind = "list proposals"
)

// Error is an error with its remedy. Its text says only what is wrong, and where.
type Error struct {
	Err  error
	Kind Kind
	Name string // of the task, agent, server or store that the remedy is about
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func With(err error, k Kind, name string) error { return &Error{err, k, name} }

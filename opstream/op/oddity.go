package op

// Oddity is a way in which an endpoint departs from the form of chat completions, and what is done about it.
// A reply lists the names in Repairs; a name may have a detail after a colon.
type Oddity struct {
	Name   string
	Sign   string // what the endpoint does
	Repair string // what is done about it
}

// The names of the repairs of replies.
const (
	RepairThinkInContent = "think_in_content"
	RepairCallAsText     = "call_as_text"
	RepairUnreadCall     = "unread_call"
	RepairContentParts   = "content_parts"
	RepairArgsObject     = "args_object"
	RepairArgsString     = "args_string"
	RepairArgsTwice      = "args_twice"
	RepairArgsControls   = "args_controls"
	RepairNoFinish       = "no_finish"
	RepairCallID         = "call_id"
	RepairWithout        = "without"  // :FIELD of the request
	RepairHistory        = "history"  // :WAY in which the history is written
	RepairToolSchema     = "schema"   // :TOOL
	RepairToolLeftOut    = "left_out" // :TOOL
)

// Oddities lists the oddities of endpoints that are repaired.
func Oddities() []Oddity {
	return []Oddity{
		{RepairThinkInContent, "thinking stands in the text, between tags", "it is taken out of the answer"},
		{RepairCallAsText, "a tool call comes as text", "it runs as any call"},
		{RepairUnreadCall, "a tool call comes as text and cannot be read", "the model is told to call the tool again"},
		{RepairContentParts, "the content is a list of parts", "its texts are joined"},
		{RepairArgsObject, "arguments are an object instead of a string", "they are written as a string"},
		{RepairArgsString, "arguments are a string in a string, or in a code block", "they are unwrapped"},
		{RepairArgsTwice, "arguments are sent twice", "one of them is dropped"},
		{RepairArgsControls, "line breaks in arguments are not escaped", "they are escaped"},
		{RepairNoFinish, "the reply is complete without a finish reason", "it counts as ended"},
		{RepairCallID, "a call has no id, or the id of an earlier one", "it gets a new one"},
		{RepairWithout, "a field of the request is refused", "this request and later ones are made without it"},
		{RepairHistory, "the history is refused as it is written", "it is written in the way that the refusal names"},
		{RepairToolSchema, "the schema of a tool would be refused", "it is written in the accepted form"},
		{RepairToolLeftOut, "the endpoint refuses a tool", "the tool is left out"},
	}
}

package state

// NoPrompt is the request of a session that began without one.
const NoPrompt = "(the session began without a prompt)"

// Recall is the search for cards.
type Recall struct {
	Done bool   // cards were recalled for the present situation
	Why  string // start: the next recall is due; none is at a jump, whose words find cards of other projects
}

package state

// NoPrompt is the request of a session that began without one.
const NoPrompt = "(the session began without a prompt)"

// Recall is the search for cards.
type Recall struct {
	Done bool   // cards were recalled for the present situation
	Why  string // start: the next recall is due. There is none at a jump: cards found by its words were of other projects
}

// Queries returns the queries for a search of the cards about a request.
func Queries(request string) []string {
	if request == NoPrompt {
		return nil
	}
	return []string{request}
}

package op

// Sent names the object of a bucket's inbox that an operation records: what a user sent to the task from another
// machine. Each is recorded once.
type Sent struct {
	N  uint64 `json:"n"`      // of the object, from 1
	By string `json:"sender"` // their name, as they say
}

// InboxRead records an object of the inbox that became no operation of its own: a request to end the turn, or one that
// was refused.
type InboxRead struct {
	Sent
	Verb    string `json:"verb,omitempty"`
	Refused string `json:"refused,omitempty"` // why
}

// SentBy returns the object of the inbox that an operation records; nil: it came another way.
func SentBy(b Body) *Sent {
	switch b := b.(type) {
	case *UserSaid:
		return b.Inbox
	case *JumpRequested:
		return b.Inbox
	case *QuestionAnswered:
		return b.Inbox
	case *InboxRead:
		return &b.Sent
	}
	return nil
}

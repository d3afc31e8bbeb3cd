package op

// Sent names the message of a bucket's inbox that an operation records. Each is recorded once.
type Sent struct {
	N  uint64 `json:"n"`      // of the message, from 1
	By string `json:"sender"` // their name, as they say
}

// InboxRead records a message of the inbox that asks to end the turn, or that is refused.
type InboxRead struct {
	Sent
	Verb    string `json:"verb,omitempty"`
	Refused string `json:"refused,omitempty"` // why
}

// SentBy returns the message of the inbox that an operation records; nil: it came another way.
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

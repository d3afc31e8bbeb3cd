package replica

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"

	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
)

const maxMessageBytes = 1 << 20

// Message is an object of a task's inbox: a user's command to the process that holds the task, whichever that is.
type Message struct {
	V       int             `json:"v"`
	Task    string          `json:"task"`
	N       uint64          `json:"n"`
	ID      string          `json:"id"` // random: no two senders' objects are equal
	By      string          `json:"by"` // as the sender says
	Command taskdir.Command `json:"command"`
}

func inboxName(task string, n uint64) string {
	return fmt.Sprintf("%s%s/inbox/%016d", tasksPrefix, task, n)
}

// Send gives a message the first number after one that is free, and returns it.
func Send(ctx context.Context, b bucket.Bucket, after uint64, m Message) (uint64, error) {
	for m.V, m.N, m.ID = version, after+1, randomName(); ; m.N++ {
		data, _ := json.Marshal(m) // it has texts and numbers only
		created, err := withRetries(ctx, func() (bool, error) {
			err := b.Create(ctx, inboxName(m.Task, m.N), data)
			if !errors.Is(err, bucket.ErrExists) {
				return err == nil, err
			}
			stored, err := b.Get(ctx, inboxName(m.Task, m.N))
			return bytes.Equal(stored, data), err // our own, whose answer was lost
		})
		if created || err != nil && !errors.Is(err, bucket.ErrKey) { // one with another key is another sender's
			return m.N, err
		}
	}
}

// ReadInbox visits the messages of a task's inbox after a number, in order, until visit fails. What is in the place of
// one and cannot be read is visited with the reason.
func ReadInbox(ctx context.Context, b bucket.Bucket, task string, after uint64,
	visit func(Message, error) error) error {
	names, err := b.List(ctx, path.Dir(inboxName(task, 0))+"/", inboxName(task, after))
	for i := 0; i < len(names) && err == nil; i++ {
		n, bad := strconv.ParseUint(path.Base(names[i]), 10, 64)
		if bad != nil || inboxName(task, n) != names[i] {
			continue // no sender makes such a name
		}
		data, bad := b.Get(ctx, names[i])
		if bad != nil && !errors.Is(bad, bucket.ErrKey) {
			return bad
		}
		var m Message
		if bad == nil {
			bad = json.Unmarshal(data, &m)
		}
		switch {
		case m.V > version:
			bad = errors.New("a newer program sent it")
		case bad != nil || m.V == 0 || m.Task != task || m.N != n || len(data) > maxMessageBytes:
			bad = errors.New("it is damaged, sealed with another key, too large or of another task")
		}
		m.N = n
		err = visit(m, bad)
	}
	return err
}

// Inbox is [ReadInbox] of the holder's task.
func (h *Holder) Inbox(ctx context.Context, after uint64, visit func(Message, error) error) error {
	return ReadInbox(ctx, h.bucket, h.task, after, visit)
}

package runtime

import (
	"context"
	"strings"
	"sync"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/workspace"
)

// user is the person whom a task may ask. Its methods may be called from any goroutine.
type user struct {
	place     *workspace.Place
	callbacks *Callbacks
	mu        *sync.Mutex // held while the user is asked, by any task of the family
}

// ask asks one question at a time, and makes the answer durable as the user's words.
func (u *user) ask(ctx context.Context, question string) (answer string, ok bool, err error) {
	keep := context.WithoutCancel(ctx)
	if u.place.State().Reply != nil { // otherwise the next look precedes any action of this program
		if err := u.place.BeforeWait(keep); err != nil {
			return "", false, err
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	answer, ok = u.callbacks.Ask(ctx, u.place.Journal.RedactText(question))
	if answer = strings.TrimSpace(answer); !ok || answer == "" {
		return "", false, nil
	}
	return answer, true, u.place.Journal.Post(keep, &op.UserSaid{Text: answer, Source: op.SourceAnswer, Question: question})
}

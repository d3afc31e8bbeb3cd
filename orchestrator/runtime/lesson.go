package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/failure"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

const (
	lessonCards     = 3   // cards looked at for one failure
	maxLessonRunes  = 300 // of a lesson on a result
	lessonSolutions = 2   // of the card
)

// lessonOn returns the line that a failed command's result ends with where a card of
// another task is about the same failure, and the record that it was shown. A card is
// about the same failure if the normal form of the error it quotes is equal. Each
// card is shown once a process.
func (t *Task) lessonOn(ctx context.Context, c op.Call, res *tool.Result) (string, *op.CardsRecalled) {
	if res.Exit == nil || *res.Exit == 0 || t.layers == nil || t.opts.NoLessons {
		return "", nil
	}
	var command struct{ Command string }
	_ = json.Unmarshal([]byte(c.Args), &command) // another tool's call has none
	out := failure.Output{Command: command.Command, Text: res.Stdout, Stderr: res.Stderr, Exit: *res.Exit, HasExit: true, Error: res.IsError}
	f, failed := failure.Read(out)
	if lesson, _ := failure.Lesson(out); !failed || !lesson || f.Signature == "" {
		return "", nil
	}
	hits, err := t.layers.Search(ctx, knowledgebase.Query{Text: f.Line, K: lessonCards, Task: t.ID})
	if err != nil {
		return "", nil // the call is what matters; recall reports a knowledge base that cannot be searched
	}
	for _, h := range hits {
		if h.Card.SourceTask == t.ID || len(h.Card.Solution) == 0 || !quotes(h.Card, f.Signature) {
			continue
		}
		if _, shown := t.lessons.LoadOrStore(h.Card.ID, true); shown {
			continue
		}
		trust := "UNVERIFIED, check it"
		if h.Card.State == card.Reviewed {
			trust = "REVIEWED"
		}
		var solution []string
		for _, s := range h.Card.Solution[:min(lessonSolutions, len(h.Card.Solution))] {
			solution = append(solution, anamnesis.Squash(s))
		}
		advice := []rune(strings.Join(solution, "; "))
		if len(advice) > maxLessonRunes {
			advice = append(advice[:maxLessonRunes-1], '…')
		}
		text := fmt.Sprintf("[lesson %s · %s] the same error was met before: %s", h.Card.ID, trust, string(advice))
		ref := op.CardRef{ID: h.Card.ID, Topic: h.Card.Topic, State: string(h.Card.State), Score: h.Score}
		return text, &op.CardsRecalled{Query: f.Line, Why: recallFailure, Cards: []op.CardRef{ref}}
	}
	return "", nil
}

// recallFailure is the reason of a card that was shown on a failed result.
const recallFailure = "failure"

// quotes reports whether a card's issue quotes an error of this normal form.
func quotes(c *card.Card, signature string) bool {
	for _, issue := range c.Issue {
		if _, line, ok := strings.Cut(issue, " failed: "); ok && failure.Normal(line) == signature {
			return true
		}
	}
	return false
}

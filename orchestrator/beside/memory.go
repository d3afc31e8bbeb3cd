package beside

import (
	"context"
	"regexp"
	"strings"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/session"
)

// JumpText returns the text about the last jump after an operation: the blocks of its passes,
// the user's words from the discarded steps, and the notice. It counts as shown to the agent.
func JumpText(svc *session.Service, task string, after uint64) (string, error) {
	var parts []string
	err := svc.Ops(task, after, func(o op.Op) error {
		after = o.Seq
		switch b := o.Body.(type) {
		case *op.JumpRequested:
			parts = nil
		case *op.PassDone:
			parts = append(parts, b.Block)
		case *op.JumpDone:
			parts = append(parts, b.Words, b.Notice)
		}
		return nil
	})
	text := ""
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			text += p + "\n\n"
		}
	}
	k := readDelivered(svc.Home, task)
	k.Seq = after // hooks do not repeat it
	save(svc.Home, task, k)
	return forOthers(text), err
}

// beforeLastJump returns the operation that requested the last jump, or after if that is
// earlier or there was no jump.
func beforeLastJump(svc *session.Service, task string, after uint64) (uint64, error) {
	last := after
	err := svc.Ops(task, 0, func(o op.Op) error {
		if _, ok := o.Body.(*op.JumpRequested); ok {
			last = o.Seq
		}
		return nil
	})
	return min(after, last), err
}

// forOthers adapts a text for our own agent to another one, which has other tools and whose
// context does not mark discarded steps.
func forOthers(text string) string {
	return strings.TrimSpace(overMCP.Replace(discardedEnd.ReplaceAllString(text, "")))
}

var discardedEnd = regexp.MustCompile(`(?m)^\[END OF DISCARDED STEPS[^\]\n]*\]\n`)

// overMCP replaces the tool that opens an operation by that of the MCP server.
var overMCP = strings.NewReplacer(
	"recall with an op number opens one again", "show_operation opens one again by its number",
	"hold the full record; recall opens them", "hold the full record; show_operation opens them",
)

// bytesPerToken is the assumed length of a token where the model's encoding is unknown.
const bytesPerToken = 4

// Recall searches the cards that a task in a directory may be shown, and quotes them
// as data within a number of bytes.
func Recall(ctx context.Context, svc *session.Service, dir, task string, q knowledgebase.Query, size int) (
	string, error) {
	hits, err := svc.Recall(ctx, dir, task, q)
	if err != nil {
		return "", err
	}
	memory.LookUp(ctx, hits, dir, repoOf(dir))
	text, _ := recalled.Pack(hits, size/bytesPerToken, func(s string) int { return len(s)/bytesPerToken + 1 })
	if text == "" {
		return "No card fits.", nil
	}
	return text, nil
}

// Facts words what a directory's repository showed in earlier tasks; empty if that is nothing, the fault if it cannot
// be read.
func Facts(svc *session.Service, dir string) string {
	text, _, err := memory.TellFacts(svc.Home, dir)
	if err != nil {
		return err.Error()
	}
	return text
}

func Remember(ctx context.Context, svc *session.Service, c *card.Card) error {
	store, err := knowledgebase.Open(svc.Home.KnowledgeBase(), &knowledgebase.Options{
		Redact: svc.Home.CardRedaction(svc.Secrets(nil), new(redact.Learned)),
	})
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.Apply(ctx, knowledgebase.Change{Cards: []*card.Card{c}})
	return err
}

// Package probetest is a model whose attention span is known, for tests of the probe.
package probetest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/probe"
	"anamnesis/opstream/op"
)

// Model reads the text of a prompt, works its answers out, and forgets each with a probability
// that grows with the length: 15% at EAS, and three logits an octave. Equal prompts get equal
// answers.
type Model struct {
	EAS   float64 // tokens
	Count func(string) int
}

var question = regexp.MustCompile(`(?m)^(\d)\. (.*\?)$`)

// Complete implements consult.Model.
func (m Model) Complete(ctx context.Context, system, prompt string) (consult.Completion, error) {
	if err := ctx.Err(); err != nil {
		return consult.Completion{}, err
	}
	text, asked, ok := strings.Cut(prompt, "</text>")
	if !ok {
		return consult.Completion{}, errors.New("probetest: the prompt has no text in it")
	}
	tokens := m.Count(system) + m.Count(prompt)
	recalls := 1 / (1 + math.Exp(3*math.Log2(float64(tokens)/m.EAS)-math.Log(0.85/0.15)))
	var reply strings.Builder
	for _, q := range question.FindAllStringSubmatch(asked, -1) {
		sum := sha256.Sum256([]byte(q[2] + text))
		if float64(binary.LittleEndian.Uint32(sum[:4]))/math.MaxUint32 < recalls {
			fmt.Fprintf(&reply, "ANSWER %s: %s\n", q[1], whom(text, q[2]))
		}
	}
	return consult.Completion{Text: reply.String(), Usage: op.Usage{Prompt: tokens, Completion: 8}}, nil
}

// whom returns the person that a question asks for.
func whom(text, question string) string {
	for _, f := range probe.Facts() {
		if f.Question != question {
			continue
		}
		// Each clue begins with the name.
		before, _, _ := strings.Cut(text, strings.TrimPrefix(f.Clue, "{{name}}"))
		return before[strings.LastIndexAny(before, " \n")+1:]
	}
	return "nobody"
}

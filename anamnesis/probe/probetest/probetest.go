// Package probetest is a simulated model whose attention span is known, for
// tests of the probe: it really reads the text and works the answer out, and
// then forgets it with a probability that grows with the length.
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

// Curve is how the share of right answers falls with the length: Base over
// short texts, times a sigmoid in the logarithm of the length, which is 0.85
// at EAS and falls by Steepness (in logits) an octave.
type Curve struct {
	Base      float64
	EAS       float64 // tokens
	Steepness float64 // 0 means 1: published curves fall by 0.4 to 1.0
}

// Share is the probability of a right answer over so many tokens.
func (c Curve) Share(tokens int) float64 {
	steep := c.Steepness
	if steep == 0 {
		steep = 1
	}
	return c.Base / (1 + math.Exp(steep*math.Log2(float64(tokens)/c.EAS)-math.Log(0.85/0.15)))
}

// Model answers the probe's questions by Curve. Equal prompts get equal
// answers.
type Model struct {
	Curve
	Count func(string) int // counts tokens
}

// Complete implements anamnesis.Model.
func (m Model) Complete(ctx context.Context, system, text string) (consult.Completion, error) {
	if err := ctx.Err(); err != nil {
		return consult.Completion{}, err
	}
	tokens := m.Count(system) + m.Count(text)
	answer, err := Solve(text)
	if err != nil {
		return consult.Completion{}, err
	}
	sum := sha256.Sum256([]byte(text))
	if drawn := float64(binary.LittleEndian.Uint32(sum[:4])) / math.MaxUint32; drawn >= m.Share(tokens) {
		answer = "I do not find it in the text."
	}
	return consult.Completion{Text: "ANSWER: " + answer, Usage: op.Usage{Prompt: tokens, Completion: 8}}, nil
}

var (
	locker   = regexp.MustCompile(`What is the locker number of the ([a-z]+ [a-z]+)\?`)
	register = regexp.MustCompile(`Which number does register ([A-Z]+) hold`)
	line     = regexp.MustCompile(`How was line number (\d) about ([a-z]+),`)
	name     = `([A-Z][a-z]+)`
)

// Solve answers a question of the probe by reading its text.
func Solve(prompt string) (string, error) {
	text, question, ok := strings.Cut(prompt, "</text>")
	if !ok {
		return "", errors.New("probetest: the prompt has no text in it")
	}
	if m := locker.FindStringSubmatch(question); m != nil {
		return find(text, `The locker number of the `+m[1]+` is (\d+)\.`, 0)
	}
	if m := register.FindStringSubmatch(question); m != nil {
		return follow(text, m[1])
	}
	if m := line.FindStringSubmatch(question); m != nil {
		return find(text, `line about `+m[2]+`, the assistant wrote: "[^"]*signed ([a-z]+-\d+)\."`, int(m[1][0]-'1'))
	}
	for _, f := range probe.Facts() {
		if !strings.Contains(question, f.Question) {
			continue
		}
		clue := strings.ReplaceAll(regexp.QuoteMeta(f.Clue), `\{\{name\}\}`, name)
		if who, err := find(text, clue, 0); err == nil {
			return who, nil
		}
	}
	return "", fmt.Errorf("probetest: cannot answer %.200q", question)
}

// find returns the group of the nth match, counted from 0.
func find(text, pattern string, nth int) (string, error) {
	all := regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
	if nth >= len(all) {
		return "", fmt.Errorf("probetest: %d matches of %s", len(all), pattern)
	}
	return all[nth][1], nil
}

// follow walks a chain of registers back to its number.
func follow(text, to string) (string, error) {
	for range 10 {
		if v, err := find(text, `register `+to+` was set to (\d+)\.`, 0); err == nil {
			return v, nil
		}
		from, err := find(text, `register `+to+` took over the value of register ([A-Z]+)\.`, 0)
		if err != nil {
			return "", err
		}
		to = from
	}
	return "", fmt.Errorf("probetest: register %s has no beginning", to)
}

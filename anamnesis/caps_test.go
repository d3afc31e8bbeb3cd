package anamnesis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"anamnesis/anamnesis/consult"
	"anamnesis/opstream/op"
)

// The span that no model of a small span can read, and that model.
const (
	capsTokens = 200_000
	capsEAS    = 4_000
)

// longSpan is a path of capsTokens tokens with a failure in every tenth call.
func longSpan() *span {
	s := newSpan(100, 3)
	for i, n := 0, 0; n < capsTokens; i++ {
		out := strings.Repeat(fmt.Sprintf("line of output %d of some length\n", i), 60)
		n += words(out)
		if i%10 == 9 {
			s.bash(fmt.Sprintf("make target%d", i), 2, out, fmt.Sprintf("error: no rule to make target%d\n", i))
			continue
		}
		s.bash(fmt.Sprintf("make target%d", i), 0, out, "")
	}
	return s
}

// spends answers with what a call of it costs and takes.
func spends(text string, takes time.Duration) func(context.Context, string, string) (consult.Completion, error) {
	return func(ctx context.Context, system, question string) (consult.Completion, error) {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return consult.Completion{}, ctx.Err()
		}
		return consult.Completion{Text: text,
			Usage: op.Usage{Prompt: words(system) + words(question), Completion: 300}}, nil
	}
}

// TestPassCaps: whatever the model does with a span of 200k tokens at an EAS of
// 4k, the pass makes at most 8 calls, none longer than the EAS, ends within its
// caps of cost and time, and the extractor says what the model did not.
func TestPassCaps(t *testing.T) {
	good := `{"failure_causes":[],"falsified":[],"findings":[],"verified":[],"untried":[],"advice":[{"text":"read the Makefile","ops":[]}],"cards":[]}`
	tests := []struct {
		name   string
		answer func(context.Context, string, string) (consult.Completion, error)
		o      Options
		calls  int // at most
		usage  int // at most, tokens; 0: what the calls may cost
		within time.Duration
		writer string
	}{
		{"useful", spends(good, time.Second), Options{}, MaxPieces, 0, time.Minute, WriterModel},
		{"rubbish", spends("I would rather not.", time.Second), Options{}, MaxPieces, 0, time.Minute, WriterExtractor},
		{"slow", spends(good, time.Hour), Options{}, MaxPieces, 0, DefaultTimeout, WriterExtractor},
		{"slower than the pass", spends("no", 50*time.Second), Options{Timeout: 2 * time.Minute}, 3, 0, 2 * time.Minute, WriterExtractor},
		{"few calls", spends("no", time.Second), Options{MaxCalls: 3}, 3, 0, time.Minute, WriterExtractor},
	}
	s := longSpan()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &scripted{
					t: t, answers: []func(context.Context, string, string) (consult.Completion, error){tt.answer},
					limit: capsEAS, count: words,
				}
				r := s.request(capsEAS)
				begun := time.Now()
				res := pass(t, m, r, &tt.o)
				if took := time.Since(begun); took > tt.within {
					t.Errorf("took %v, at most %v", took, tt.within)
				}
				most := tt.usage
				if most == 0 {
					most = tt.calls * (capsEAS + 300)
				}
				if used := res.Usage.Prompt + res.Usage.Completion; res.Calls > tt.calls ||
					len(m.asked) != res.Calls || used > most {
					t.Errorf("%d calls and %d tokens, at most %d and %d", res.Calls, used, tt.calls, most)
				}
				if res.Writer != tt.writer || len(res.Notes.Falsified) == 0 {
					t.Errorf("written by the %s with %d falsified paths; want the %s: %s", res.Writer,
						len(res.Notes.Falsified), tt.writer, res.Fallback)
				}
				if tt.name != "useful" && res.Fallback == "" {
					t.Error("nothing says why the model did not write it all")
				}
			})
		})
	}
}

package script

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

const looped = `
turns:
  - {reply: begin, calls: [{name: Bash, arguments: {command: start}}]}
  - loop:
      until: {contains: ready}
      max: 3
      turns:
        - {reply: wait, calls: [{name: Think}]}
        - {reply: poll, calls: [{name: Bash, arguments: {command: poll}}]}
  - {reply: go, calls: [{name: jump_to_step, arguments: {step_id: 1}}]}
  - {reply: end}
`

// chat plays an agent: it keeps the messages, and asks a model that m gives
// afresh for every turn where processes are killed.
type chat struct {
	messages []model.Message
	turn     int
	last     *model.Past // as the state records it
}

func (c *chat) ask(t interface{ Fatal(...any) }, m *Model, results string) string {
	reply, err := m.Ask(context.Background(), model.Request{Turn: c.turn, Messages: c.messages, Last: c.last}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.turn++
	c.messages = append(c.messages, model.Message{Role: model.RoleAssistant, Text: reply.Text, Calls: reply.Calls})
	for _, call := range reply.Calls {
		c.messages = append(c.messages, model.Message{Role: model.RoleTool, CallID: call.ID, Text: results})
		c.last = &model.Past{CallID: call.ID, Result: results}
	}
	return reply.Text
}

func TestLoop(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%v", killed), func(t *testing.T) {
			m := mustParse(t, looped)
			c := &chat{messages: []model.Message{user("hi")}}
			var said []string
			for _, res := range []string{"ready", "ready", "no", "ready", "ready now", "jumped", ""} {
				if killed {
					m = mustParse(t, looped)
				}
				said = append(said, c.ask(t, m, res))
			}
			if got := strings.Join(said, " "); got != "begin wait poll wait poll go end" {
				t.Errorf("said %q", got)
			}
		})
	}
}

func TestLoopLimit(t *testing.T) {
	m := mustParse(t, looped)
	c := &chat{}
	for range 7 {
		c.ask(t, m, "no")
	}
	_, err := m.Ask(context.Background(), model.Request{Turn: c.turn, Messages: c.messages, Last: c.last}, nil)
	var mis *Mismatch
	if !errors.As(err, &mis) || mis.Line != 5 || !strings.Contains(err.Error(), "after at most 3 rounds") {
		t.Errorf("error %v", err)
	}
}

// The record of the last call finds the position in any process, whatever a compaction removed.
func TestLoopCompacted(t *testing.T) {
	for _, end := range []string{"end", "wait"} {
		m, c := mustParse(t, looped), &chat{messages: []model.Message{user("hi")}}
		results := []string{"ok", "ok", "ready", "jumped"}
		if end == "wait" {
			results = []string{"ok", "ok", "no"}
		}
		for _, res := range results {
			c.ask(t, m, res)
		}
		c.messages = []model.Message{user("[ANAMNESIS_BLOCK]")}
		if got := c.ask(t, mustParse(t, looped), ""); got != end {
			t.Errorf("said %q after the compaction; want %q", got, end)
		}
	}
}

// Another model's call, or one with an id of the script's own, says nothing about the position.
func TestLoopUnknownCall(t *testing.T) {
	for _, id := range []string{"toolu_1", "call_5_1_1", "call_1_9_1"} {
		_, err := mustParse(t, looped).Ask(context.Background(), model.Request{Turn: 3, Last: &model.Past{CallID: id}}, nil)
		if err == nil || !strings.Contains(err.Error(), "a last call of this script") {
			t.Errorf("%s: %v", id, err)
		}
	}
	_, err := mustParse(t, looped).Ask(context.Background(), model.Request{Turn: 9}, nil)
	if err == nil {
		t.Error("without a call: want a mismatch")
	}
}

func TestWithoutLoopsOnlyTheTurnCounts(t *testing.T) {
	m := mustParse(t, "turns: [{reply: a}, {reply: b}, {reply: c}]")
	for _, i := range []int{2, 0, 1, 1} {
		reply, err := m.Ask(context.Background(), model.Request{Turn: i, Messages: []model.Message{
			{Role: model.RoleAssistant, Calls: []op.Call{{ID: "call_0_2_1", Name: "x", Args: "{}"}}},
		}}, nil)
		if err != nil || reply.Text != "abc"[i:i+1] {
			t.Errorf("turn %d: %q, %v", i, reply.Text, err)
		}
	}
}

// A task that is killed after any turns says the same as one that is not.
func TestResumeIsEquivalent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var yaml strings.Builder
		yaml.WriteString("turns:\n")
		for i := range rapid.IntRange(1, 6).Draw(t, "items") {
			if rapid.Bool().Draw(t, "loop") {
				fmt.Fprintf(&yaml, "  - loop:\n      until: {contains: stop}\n      max: 100\n      turns:\n")
				for j := range rapid.IntRange(1, 3).Draw(t, "inner") {
					fmt.Fprintf(&yaml, "        - {reply: r%d-%d, calls: [{name: Bash}]}\n", i, j)
				}
			} else if rapid.Bool().Draw(t, "calls") {
				fmt.Fprintf(&yaml, "  - {reply: r%d, calls: [{name: Bash}, {name: Bash}]}\n", i)
			} else {
				fmt.Fprintf(&yaml, "  - reply: r%d\n", i)
			}
		}
		yaml.WriteString("  - reply: end\n")
		parse := func() *Model {
			m, err := Parse([]byte(yaml.String()))
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		steady, m := parse(), parse()
		c, reference := &chat{}, &chat{}
		said := ""
		for rounds := 0; said != "end"; rounds++ {
			res := "on"
			if rounds > 30 || rapid.Bool().Draw(t, "stop") {
				res = "stop"
			}
			if rapid.Bool().Draw(t, "kill") {
				m = parse()
			}
			want := reference.ask(t, steady, res)
			if said = c.ask(t, m, res); said != want {
				t.Fatalf("turn %d: %q; without the kill %q\n%s", rounds, said, want, yaml.String())
			}
		}
	})
}

func TestCallIDs(t *testing.T) {
	for _, p := range []position{{item: 3}, {item: 1, round: 2, inner: 1}, {item: 1, inner: 1}} {
		turn, got, ok := parseCallID(callPrefix(12, p) + "_1")
		if !ok || turn != 12 || got != p {
			t.Errorf("%+v comes back as %d, %+v, %v", p, turn, got, ok)
		}
	}
	for _, id := range []string{"", "call_abc", "call_1_2", "call_x_1_1", "call_1_1-2_1", "call_-1_1_1", "call_1_1-x-1_1"} {
		if _, _, ok := parseCallID(id); ok {
			t.Errorf("%q is taken for one of ours", id)
		}
	}
}

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
  - {reply: wait}
  - {reply: poll, until: {contains: ready}, calls: [{name: Think}, {name: Bash, arguments: {command: poll}}]}
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

func TestUntil(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%v", killed), func(t *testing.T) {
			m := mustParse(t, looped)
			c := &chat{messages: []model.Message{user("hi")}}
			var said []string
			for _, res := range []string{"ready", "", "no", "still no", "ready now", "jumped", ""} {
				if killed {
					m = mustParse(t, looped)
				}
				said = append(said, c.ask(t, m, res))
			}
			if got := strings.Join(said, " "); got != "begin wait poll poll poll go end" {
				t.Errorf("said %q", got)
			}
		})
	}
}

// The record of the last call finds the position in any process, whatever a compaction removed.
func TestUntilCompacted(t *testing.T) {
	for _, end := range []string{"end", "poll"} {
		m, c := mustParse(t, looped), &chat{messages: []model.Message{user("hi")}}
		results := []string{"ok", "", "ready", "jumped"}
		if end == "poll" {
			results = []string{"ok", "", "no"}
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
func TestUntilUnknownCall(t *testing.T) {
	for _, id := range []string{"toolu_1", "call_5_1_1", "call_1_9_1", "call_3_1_1", "call_1_5_1"} {
		_, err := mustParse(t, looped).Ask(context.Background(),
			model.Request{Turn: 3, Last: &model.Past{CallID: id}}, nil)
		if err == nil || !strings.Contains(err.Error(), "a last call of this script") {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// Only the result of the task's last call ends a turn that is repeated: as the messages show it, else as it was
// recorded.
func TestUntilLastResult(t *testing.T) {
	tool := func(id, text string) model.Message {
		return model.Message{Role: model.RoleTool, CallID: id, Text: text}
	}
	for _, tt := range []struct {
		name     string
		recorded string
		messages []model.Message
		want     string
	}{
		{"recorded", "ready", nil, "go"},
		{"not yet", "no", nil, "poll"},
		{"as it is shown", "no", []model.Message{tool("call_2_2_1", "ready"), tool("call_1_0_0", "no")}, "go"},
		{"of another call", "no", []model.Message{tool("call_1_0_0", "ready")}, "poll"},
		{"in the user's words", "no", []model.Message{{Role: model.RoleUser, CallID: "call_2_2_1", Text: "ready"}}, "poll"},
	} {
		r := model.Request{Turn: 3, Messages: tt.messages, Last: &model.Past{CallID: "call_2_2_1", Result: tt.recorded}}
		if reply, err := mustParse(t, looped).Ask(t.Context(), r, nil); err != nil || reply.Text != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, reply.Text, err, tt.want)
		}
	}
}

// A request that the script does not foresee is a mismatch at its last turn.
func TestNoSuchTurn(t *testing.T) {
	for _, tt := range []struct {
		script string
		turn   int
		line   int
		want   string
	}{
		{"turns: []", 0, 1, "no further request after the script's last turn"},
		{"turns: []", -1, 1, "a turn from 0 on"},
		{"turns:\n  - reply: a\n", 1, 2, "no further request after the script's last turn"},
		{looped, 9, 7, "no further request after the script's last turn"},
	} {
		r := model.Request{Turn: tt.turn}
		if tt.script == looped {
			r.Last = &model.Past{CallID: "call_2_2_1", Result: "ready"}
		}
		_, err := mustParse(t, tt.script).Ask(t.Context(), r, nil)
		if m := (*Mismatch)(nil); !errors.As(err, &m) || m.Line != tt.line || m.Expected != tt.want {
			t.Errorf("turn %d of %q: %v", tt.turn, tt.script, err)
		}
	}
}

func TestWithoutUntilOnlyTheTurnCounts(t *testing.T) {
	m := mustParse(t, "turns: [{reply: a}, {reply: b}, {reply: c}]")
	for _, i := range []int{2, 0, 1, 1} {
		reply, err := m.Ask(context.Background(), model.Request{Turn: i, Messages: []model.Message{
			{Role: model.RoleAssistant, Calls: []op.Call{{ID: "call_0_2_1", Name: "x", Args: "{}"}}},
		}, Last: &model.Past{CallID: "toolu_1"}}, nil)
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
			if rapid.Bool().Draw(t, "until") {
				fmt.Fprintf(&yaml, "  - {reply: r%d, until: {contains: stop}, calls: [{name: Bash}]}\n", i)
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
	if turn, at, ok := parseCallID("call_12_3_1"); !ok || turn != 12 || at != 3 {
		t.Errorf("call_12_3_1 comes back as %d, %d, %v", turn, at, ok)
	}
	for _, id := range []string{"", "call_abc", "call_1_2", "call_x_1_1", "call_1_1-2_1", "call_-1_1_1", "call_1_-1_1"} {
		if _, _, ok := parseCallID(id); ok {
			t.Errorf("%q is taken for one of ours", id)
		}
	}
}

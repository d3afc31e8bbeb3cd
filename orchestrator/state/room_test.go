package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/optest"
)

// TestLimitFor holds the rule: 70% of the window, or four times what the
// model attends to where that is less, but not less than 32,000 tokens for it.
func TestLimitFor(t *testing.T) {
	for _, tt := range []struct{ window, eas, want int }{
		{128_000, 16_000, 64_000},
		{128_000, 64_000, 89_600},
		{128_000, 4_000, 32_000},
		{16_000, 8_000, 11_200},
		{0, 8_000, 32_000},
		{0, 128_000, 512_000},
		{99, 8_000, 69},
	} {
		if got := LimitFor(tt.window, tt.eas); got != tt.want {
			t.Errorf("limitFor(%d, %d) = %d, want %d", tt.window, tt.eas, got, tt.want)
		}
	}
}

// pressed is a stream whose context is over its limit: three steps with large
// results, the last of which the model has not seen.
const pressed = `task.opened 0 {"task":"t","window":10000,"eas":1000}
user.said 0 {"text":"Go.","source":"request"}
cards.recalled 0 {"why":"start"}
world.saved 0 {"commit":"c0"}
model.asked 1 {"last_seq":4}
model.replied 1 {"text":"A.","calls":[{"id":"a","name":"Bash","args":"{}"}],"finish":"tool_calls"}
tool.called 1 {"call":"a","name":"Bash"}
tool.returned 1 {"call":"a","name":"Bash","text":"BIG","exit":1}
world.saved 1 {"parent":0,"commit":"c1","mark":"[step 1]"}
model.asked 2 {"last_seq":9}
model.replied 2 {"text":"B.","calls":[{"id":"b","name":"Bash","args":"{}"}],"finish":"tool_calls"}
tool.called 2 {"call":"b","name":"Bash"}
tool.returned 2 {"call":"b","name":"Bash","text":"BIG"}
world.saved 2 {"parent":1,"commit":"c2","mark":"[step 2]"}
model.asked 3 {"last_seq":14}
model.replied 3 {"text":"C.","calls":[{"id":"c","name":"Bash","args":"{}"}],"finish":"tool_calls"}
tool.called 3 {"call":"c","name":"Bash"}
tool.returned 3 {"call":"c","name":"Bash","text":"BIG"}
world.saved 3 {"parent":2,"commit":"c3","mark":"[step 3]"}
`

// big returns BIG the size it stands for.
func big(text string) string { return strings.ReplaceAll(text, "BIG", strings.Repeat("x", 3000)) }

// TestNextForRoom: old results are masked first; where that is not enough, or
// there is nothing left to mask, the oldest steps are compacted; a request that the
// provider refuses for its length is made smaller as often as is allowed.
func TestNextForRoom(t *testing.T) {
	mask := func(seqs string, target string) string {
		return fmt.Sprintf(`context.masked 4 {"results":[%s],"target":%s}`+"\n", seqs, target)
	}
	line := func(seq int) string { return fmt.Sprintf(`{"seq":%d,"line":"op %d","tok":20}`, seq, seq) }
	overflow := "model.asked 4 {\"last_seq\":19}\nmodel.failed 4 {\"overflow\":true,\"error\":\"413\"}\n"
	failed := "turn.ended 4 {\"reason\":\"failed\"}\ntask.resumed 4 {\"continue\":true}\n"
	small := strings.Replace(pressed, "BIG", "small", 3)
	tests := []struct {
		name   string
		ops    string
		tools  int
		want   ActionKind
		detail string
		seqs   []uint64
		steps  []int
	}{
		{name: "old results, down to the target", ops: pressed, want: ActMask, seqs: []uint64{8, 13}},
		{name: "what tools take counts", ops: strings.Replace(pressed, "10000", "15000", 1), tools: 2000, want: ActMask, seqs: []uint64{8, 13}},
		{name: "a window that holds it all", ops: strings.Replace(pressed, "10000", "15000", 1), want: ActAsk},
		{name: "masked enough", ops: pressed + mask(line(8)+","+line(13), "4200"), want: ActAsk},
		{name: "not masked enough", ops: strings.Replace(pressed, `"A."`, `"`+strings.Repeat("y", 2000)+`"`, 1) + mask(line(8)+","+line(13), "4200"), want: ActCompact, steps: []int{1}},
		{name: "nothing worth a block", ops: pressed + mask(line(8)+","+line(13), "2900"), want: ActAsk},
		{name: "an overflow masks what was not seen, too", ops: pressed + mask(line(8)+","+line(13), "4200") + overflow, want: ActMask, seqs: []uint64{18}},
		{name: "an overflow of nothing, once", ops: small + overflow, want: ActAsk},
		{name: "an overflow of nothing, twice", ops: small + overflow + overflow, want: ActEndTurn, detail: "nothing in it can be masked or compacted: the context has about 72 tokens, the model's window is 10000 tokens, and the provider says \"413\""},
		{name: "the next turn after it", ops: small + overflow + overflow + failed, want: ActAsk},
		{name: "too many overflows", ops: pressed + strings.Repeat(overflow, maxOverflows+1), want: ActEndTurn, detail: "also after 4 times"},
		{name: "an answer ends the count", ops: pressed + strings.Repeat(overflow, maxOverflows) + "model.asked 4 {\"last_seq\":19}\nmodel.replied 4 {\"text\":\"x\",\"finish\":\"stop\"}\nworld.saved 4 {\"parent\":3,\"commit\":\"c\"}\nuser.said 5 {\"text\":\"on\"}\n" + strings.ReplaceAll(overflow, " 4 ", " 5 "), want: ActMask, seqs: []uint64{8, 13}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := optest.Fold(t, Fold, optest.Parse(t, big(tt.ops)))
			got := Next(s, Limits{ToolTokens: tt.tools})
			if got.Kind != tt.want || !slices.Equal(got.Seqs, tt.seqs) || !slices.Equal(got.Steps, tt.steps) || !strings.Contains(got.Detail, tt.detail) {
				t.Errorf("Next = %+v at %d tokens, want kind %d, results %v, steps %v", got, s.Context.Tokens, tt.want, tt.seqs, tt.steps)
			}
		})
	}
}

// TestTarget: a context is made smaller to six tenths of the limit of the window, less what tools take, but no less than
// six tenths of the rest.
func TestTarget(t *testing.T) {
	for tools, want := range map[int]int{0: 4200, 1000: 3600, 6000: 2100} {
		s := optest.Fold(t, Fold, optest.Parse(t, big(pressed)))
		if got := Next(s, Limits{ToolTokens: tools}); got.Target != want || got.Limit != max(7000-tools, 3500) {
			t.Errorf("with tools of %d tokens: %+v, want a target of %d", tools, got, want)
		}
	}
	if got := Queries("fix it"); !slices.Equal(got, []string{"fix it"}) {
		t.Errorf("cards are looked for by %q", got)
	}
	if got := Queries(NoPrompt); got != nil {
		t.Errorf("without a prompt cards are looked for by %q", got)
	}
}

// TestStepsLimit: what steps have left in the context is compacted beyond the EAS, but not below
// a floor, nor below what many steps of the task's size take; a few steps at the end and the
// user's words stay.
func TestStepsLimit(t *testing.T) {
	stream := func(eas, steps, size int) *State {
		var sb strings.Builder
		fmt.Fprintf(&sb, "task.opened 0 {\"task\":\"t\",\"window\":400000,\"eas\":%d}\nuser.said 0 {\"text\":\"Go.\",\"source\":\"request\"}\ncards.recalled 0 {\"why\":\"start\"}\nworld.saved 0 {\"commit\":\"c0\"}\n", eas)
		for i := range steps {
			seq, id := 5+5*i, i+1
			fmt.Fprintf(&sb, "model.asked %d {\"last_seq\":%d}\nmodel.replied %d {\"text\":\"A.\",\"calls\":[{\"id\":\"a\",\"name\":\"Bash\",\"args\":\"{}\"}],\"finish\":\"tool_calls\"}\ntool.called %d {\"call\":\"a\",\"name\":\"Bash\"}\n", id, seq-1, id, id)
			fmt.Fprintf(&sb, "tool.returned %d {\"call\":\"a\",\"name\":\"Bash\",\"text\":%q}\nworld.saved %d {\"parent\":%d,\"commit\":\"c\",\"mark\":\"[step %d]\"}\n", id, strings.Repeat("x", size), id, i, id)
		}
		return optest.Fold(t, Fold, optest.Parse(t, sb.String()))
	}
	for _, tt := range []struct {
		name             string
		eas, steps, size int
		want             ActionKind
		compacted        int
	}{
		{"below the floor", 4_000, 30, 450, ActAsk, 0},
		{"above the floor", 4_000, 40, 450, ActCompact, 38},
		{"below the EAS", 64_000, 40, 450, ActAsk, 0},
		{"few steps, but large ones", 4_000, 20, 1_500, ActAsk, 0},
	} {
		s := stream(tt.eas, tt.steps, tt.size)
		got := Next(s, Limits{})
		if got.Kind != tt.want || len(got.Steps) != tt.compacted || tt.compacted > 0 && got.Steps[0] != 1 {
			t.Errorf("%s: Next = %+v at %d tokens, limit %d; want kind %d, %d steps", tt.name, got, s.Context.Tokens, s.StepsLimit(), tt.want, tt.compacted)
		}
	}
}

// TestWindowAfterRefusal: after a refused context one as large that is answered gives the model its window back; a smaller
// one does not, and nothing changes without a refusal.
func TestWindowAfterRefusal(t *testing.T) {
	for _, tt := range []struct{ overflows, asked, window, want int }{
		{1, 900, 900, 1000}, {1, 901, 900, 1000}, {2, 900, 900, 1000}, {1, 899, 900, 900}, {0, 900, 900, 900}, {0, 10, 900, 900},
	} {
		var s State
		s.Pressure.Overflows, s.Pressure.Asked, s.Pressure.Window, s.Model.Window = tt.overflows, tt.asked, 1000, tt.window
		s.reply(1, &op.ModelReplied{Text: "x"})
		if s.Model.Window != tt.want || s.Pressure.Overflows != 0 {
			t.Errorf("%+v: window %d, %d refusals", tt, s.Model.Window, s.Pressure.Overflows)
		}
	}
}

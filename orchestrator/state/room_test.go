package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/state/steps"
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
			if got.Kind != tt.want || !slices.Equal(got.Seqs, tt.seqs) || !slices.Equal(got.Steps, tt.steps) ||
				!strings.Contains(got.Detail, tt.detail) {
				t.Errorf("Next = %+v at %d tokens, want kind %d, results %v, steps %v", got, s.Context.Tokens, tt.want,
					tt.seqs, tt.steps)
			}
		})
	}
}

// TestTarget: a context is made smaller to six tenths of the limit of the window, less what tools take, but no less
// than six tenths of the rest.
func TestTarget(t *testing.T) {
	for tools, want := range map[int]int{0: 4200, 1000: 3600, 6000: 2100} {
		s := optest.Fold(t, Fold, optest.Parse(t, big(pressed)))
		if got := Next(s, Limits{ToolTokens: tools}); got.Target != want || got.Limit != max(7000-tools, 3500) {
			t.Errorf("with tools of %d tokens: %+v, want a target of %d", tools, got, want)
		}
	}
}

// TestStepsLimit: what steps have left in the context is compacted beyond the EAS, but not below
// a floor, nor below what many steps of the task's size take; a few steps at the end and the
// user's words stay.
func TestStepsLimit(t *testing.T) {
	stream := func(eas, steps, size int) *State {
		var sb strings.Builder
		fmt.Fprintf(&sb,
			"task.opened 0 {\"task\":\"t\",\"window\":400000,\"eas\":%d}\nuser.said 0 {\"text\":\"Go.\",\"source\":\"request\"}\ncards.recalled 0 {\"why\":\"start\"}\nworld.saved 0 {\"commit\":\"c0\"}\n", eas)
		for i := range steps {
			seq, id := 5+5*i, i+1
			fmt.Fprintf(&sb,
				"model.asked %d {\"last_seq\":%d}\nmodel.replied %d {\"text\":\"A.\",\"calls\":[{\"id\":\"a\",\"name\":\"Bash\",\"args\":\"{}\"}],\"finish\":\"tool_calls\"}\ntool.called %d {\"call\":\"a\",\"name\":\"Bash\"}\n", id, seq-1, id, id)
			fmt.Fprintf(&sb,
				"tool.returned %d {\"call\":\"a\",\"name\":\"Bash\",\"text\":%q}\nworld.saved %d {\"parent\":%d,\"commit\":\"c\",\"mark\":\"[step %d]\"}\n", id, strings.Repeat("x", size), id, i, id)
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
			t.Errorf("%s: Next = %+v at %d tokens, limit %d; want kind %d, %d steps", tt.name, got, s.Context.Tokens,
				s.StepsLimit(), tt.want, tt.compacted)
		}
	}
}

// TestWindowAfterRefusal: after a refused context one as large that is answered gives the model its window back; a
// smaller one does not, and nothing changes without a refusal.
func TestWindowAfterRefusal(t *testing.T) {
	for _, tt := range []struct{ overflows, asked, window, want int }{
		{1, 900, 900, 1000}, {1, 901, 900, 1000}, {2, 900, 900, 1000}, {1, 899, 900, 900}, {0, 900, 900, 900}, {0, 10, 900, 900},
	} {
		var s State
		s.Pressure.Overflows, s.Pressure.Asked, s.Pressure.Window, s.Model.Window = tt.overflows, tt.asked,
			1000, tt.window
		s.reply(1, &op.ModelReplied{Text: "x"})
		if s.Model.Window != tt.want || s.Pressure.Overflows != 0 {
			t.Errorf("%+v: window %d, %d refusals", tt, s.Model.Window, s.Pressure.Overflows)
		}
	}
}

// atSize is a state whose window allows 7,000 tokens and whose context has as many as given, all of them in results
// that the model has seen, one of each step from 1 on.
func atSize(results ...int) *State {
	s := &State{Last: 100}
	s.Turn.Open, s.Model.Window, s.Model.EAS, s.Pressure.Seen = true, 10_000, 1000, 100
	s.Steps.Add(steps.Step{Ended: true})
	for i, tok := range results {
		id := i + 1
		s.Steps.Add(steps.Step{ID: id, Parent: i, First: uint64(10 * id), Last: uint64(10 * id), Ended: true})
		s.Context.Entries = append(s.Context.Entries,
			projection.Entry{Seq: uint64(10 * id), Step: id, Tok: tok, Msg: model.Message{Role: model.RoleTool}})
		s.Context.Tokens += tok
	}
	return s
}

// TestRoomBounds: what is done at a limit and beside it.
func TestRoomBounds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		results []int
		set     func(s *State)
		want    string
	}{
		{"as large as is allowed", []int{3000, 3000, 500, 500}, nil, "ask"},
		{"one more", []int{3000, 3000, 500, 501}, nil, "mask [10] 4200"},
		{"as large as it is to become", []int{3000, 1200}, func(s *State) { s.Pressure.Target = 4200 }, "ask"},
		{"one more than that", []int{3000, 1201}, func(s *State) { s.Pressure.Target = 4200 }, "mask [10] 4200"},
		{"it fits after many refusals", []int{3000, 1200}, func(s *State) { s.Pressure.Target, s.Pressure.Overflows = 4200, maxOverflows+1 }, "ask"},
		{"the last refusal that is dealt with", []int{3000, 1300}, func(s *State) { s.Pressure.Target, s.Pressure.Overflows = 4200, maxOverflows }, "mask [10] 4200"},
		{"one more refusal", []int{3000, 1300}, func(s *State) { s.Pressure.Target, s.Pressure.Overflows = 4200, maxOverflows+1 }, "end, window unknown"},
		{"one more, of a known window", []int{3000, 1300}, func(s *State) {
			s.Pressure.Target, s.Pressure.Overflows, s.Pressure.Window = 4200, maxOverflows+1, 9000
		}, "end"},
		{"what one result frees is just enough", []int{2833, 5000}, func(s *State) { s.Context.Tokens = 7001 }, "mask [10] 4200"},
		{"it is one too few", []int{2832, 5000}, func(s *State) { s.Context.Tokens = 7001 }, "mask [10 20] 4200"},
		{"a result that is too small to mask", []int{63, 64, 7000}, nil, "mask [20 30] 4200"},
		{"one that is small without its mark", []int{100, 7000}, func(s *State) { s.Context.Entries[0].MarkTok = 37 }, "mask [20] 4200"},
		{"one that is masked", []int{3000, 4100}, func(s *State) { s.Context.Entries[0].Masked = 9 }, "mask [20] 4200"},
		{"one that was just seen", []int{7100}, func(s *State) { s.Pressure.Seen = 10 }, "mask [10] 4200"},
		{"one that was not", []int{7100}, func(s *State) { s.Pressure.Seen = 9 }, "ask"},
		{"the text of steps", []int{3000, 3000, 600, 600}, texts, "compact [1 2]"},
		{"the newest steps", []int{3000, 4500}, texts, "ask"},
		{"the newest steps, which were refused", []int{3000, 4500}, func(s *State) { texts(s); s.Pressure.Overflows = 1 }, "compact [1 2]"},
		{"words carried over", []int{3000, 3000, 600, 600}, func(s *State) { texts(s); s.Context.Entries[0].Kind = projection.EntryWords }, "compact [2]"},
		{"what belongs to no step", []int{3000, 3000, 600, 600}, func(s *State) { texts(s); s.Context.Entries[0].Step = 0 }, "compact [2]"},
		{"steps that were just seen", []int{3000, 3000, 600, 600}, func(s *State) { texts(s); s.Pressure.Seen = 10 }, "compact [1]"},
		{"steps that were not", []int{3000, 3000, 600, 600}, func(s *State) { texts(s); s.Pressure.Seen = 9 }, "ask"},
		{"one step frees just enough", []int{3400, 3000, 400, 400}, texts, "compact [1]"},
		{"it frees one too few", []int{3400, 3000, 400, 401}, texts, "compact [1 2]"},
		{"steps that are worth a block", []int{800, 7000, 1}, texts, "compact [1]"},
		{"steps that are not", []int{799, 7000, 1}, texts, "ask"},
	} {
		s := atSize(tt.results...)
		if tt.set != nil {
			tt.set(s)
		}
		var got string
		switch act := Next(s, Limits{Limits: op.Limits{Steps: 1000}}); act.Kind {
		case ActAsk:
			got = "ask"
		case ActMask:
			got = fmt.Sprintf("mask %v %d", act.Seqs, act.Target)
		case ActCompact:
			got = fmt.Sprintf("compact %v", act.Steps)
		case ActEndTurn:
			if got = "end"; strings.Contains(act.Detail, "window is unknown") {
				got += ", window unknown"
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// texts makes all entries of a context words of the agent, which nothing masks.
func texts(s *State) {
	for i := range s.Context.Entries {
		s.Context.Entries[i].Msg.Role = model.RoleAssistant
	}
}

// TestRefused: a refused request shows how large the window is at most, until the turn ends.
func TestRefused(t *testing.T) {
	for _, tt := range []struct{ window, tokens, during int }{{0, 500, 500}, {0, 0, 1}, {900, 500, 500}, {500, 900, 500}, {500, 500, 500}} {
		var s State
		s.Model.Window, s.Context.Tokens = tt.window, tt.tokens
		s.overflowed("413")
		if s.Model.Window != tt.during || s.Pressure.Window != tt.window || s.Pressure.Target != tt.tokens*6/10 {
			t.Errorf("%d tokens were refused, the window was %d: now %d, %+v", tt.tokens, tt.window,
				s.Model.Window, s.Pressure)
		}
		for range 2 { // the second turn was not refused
			if s.Pressure.relieve(&s.Model); s.Model.Window != tt.window ||
				s.Pressure.Overflows+s.Pressure.Target != 0 {
				t.Errorf("at the turn's end: window %d, want %d, %+v", s.Model.Window, tt.window, s.Pressure)
			}
			s.Pressure.Window = 7
		}
	}
}

// TestBeyondLimit: steps whose text is more than the model attends to are compacted, whatever the window; the system
// prompt, the first words and words carried over do not count.
func TestBeyondLimit(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(s *State)
		want string
	}{
		{"as many as are allowed", func(*State) {}, "[]"},
		{"one more", func(s *State) { s.Context.Entries[1].Tok++; s.Context.Tokens++ }, "[1 2]"},
		{"the first words", func(s *State) { s.Context.Entries[0].Step = 0; s.Context.Tokens++; s.Context.Entries[1].Tok++ }, "[]"},
		{"words carried over", func(s *State) {
			s.Context.Entries[0].Kind = projection.EntryWords
			s.Context.Tokens++
			s.Context.Entries[1].Tok++
		}, "[]"},
	} {
		s := atSize(8000, 6000, 1000, 1000)
		texts(s)
		s.Model.Window = 0
		if tt.set(s); fmt.Sprint(s.beyondLimit()) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, s.beyondLimit(), tt.want)
		}
	}
	s := atSize(1, 1, 1, 1)
	for range s.Last {
		s.tokenSums.add(30)
	}
	if got := s.StepsLimit(); got != max(minStepsTokens, meanSteps*3000/4) {
		t.Errorf("with 3000 tokens in 4 steps: %d", got)
	}
}

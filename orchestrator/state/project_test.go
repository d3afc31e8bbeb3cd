package state

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state/projection"
)

// TestProjection holds the exact messages for streams of operations.
func TestProjection(t *testing.T) {
	files, err := filepath.Glob("testdata/projection/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ops := optest.Parse(t, string(ar.Files[0].Data))
			got := optest.Render(optest.Fold(t, Fold, ops).Context.Chat())
			if *optest.Update {
				ar.Files = append(ar.Files[:1], txtar.File{Name: "messages", Data: got})
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(ar.Files) < 2 || !bytes.Equal(got, ar.Files[1].Data) {
				t.Errorf("messages differ; -update rewrites them if they are right:\n%s", got)
			}
		})
	}
}

// walk drives a random but possible stream: what Next decides, with random
// outcomes, a user who speaks at any moment, crashes and jumps.
type walk struct {
	t     *rapid.T
	s     *State
	ops   []op.Op
	calls int
	words []string          // everything the user said
	sent  [][]model.Message // every request sent, in order
}

func (w *walk) add(b op.Body) {
	o := op.Op{Seq: uint64(len(w.ops) + 1), Step: w.s.Steps.Next(), Tok: 10, Body: b}
	switch b := b.(type) {
	case *op.ToolReturned: // some fill the context
		o.Tok = rapid.SampledFrom([]int{10, 70, 400, 3000}).Draw(w.t, "tokens")
	case *op.PassDone:
		o.Tok = 400
	case *op.UserSaid:
		w.words = append(w.words, b.Text)
	}
	if err := Fold(w.s, o); err != nil {
		w.t.Fatalf("op %d: %v", o.Seq, err)
	}
	w.ops = append(w.ops, o)
	if err := optest.CheckChat(w.s.Context.Chat()); err != nil {
		w.t.Fatalf("after op %d (%s): %v", o.Seq, b.Kind(), err)
	}
}

func (w *walk) reply() {
	var calls []op.Call
	for range rapid.IntRange(0, 3).Draw(w.t, "calls") {
		w.calls++
		calls = append(calls, op.Call{ID: fmt.Sprint("c", w.calls), Name: "Bash", Args: "{}"})
	}
	w.add(&op.ModelReplied{Text: fmt.Sprint("reply ", len(w.ops)), Calls: calls, Finish: "stop"})
}

func (w *walk) perform(a Action) {
	switch a.Kind {
	case ActIdle, ActEndTurn:
		if a.Kind == ActEndTurn {
			if w.s.Jump.Pending != nil {
				w.add(&op.JumpDropped{To: w.s.Jump.Pending.To, Why: "stuck"})
			}
			w.add(&op.TurnEnded{Reason: a.Reason})
		}
		w.add(&op.UserSaid{Text: fmt.Sprint("request ", len(w.ops)), Source: op.SourceRequest})
	case ActRecall:
		w.add(&op.CardsRecalled{Why: a.Reason})
	case ActAsk:
		w.sent = append(w.sent, w.s.Context.Chat())
		w.add(&op.ModelAsked{LastSeq: w.s.Last})
		if rapid.Bool().Draw(w.t, "steered while asking") {
			w.add(&op.UserSaid{Text: fmt.Sprint("steer ", len(w.ops)), Source: op.SourceSteer})
		}
		switch rapid.IntRange(0, 9).Draw(w.t, "fault") {
		case 0:
			w.add(&op.TaskResumed{}) // killed while asking
		case 1:
			w.add(&op.ModelFailed{Overflow: true})
		default:
			w.reply()
		}
	case ActRunCalls:
		w.runCalls(a.Calls)
	case ActReflect:
		w.reflect()
	case ActAskUser:
		if rapid.Bool().Draw(w.t, "answered") {
			w.add(&op.UserSaid{Text: fmt.Sprint("answer ", len(w.ops)), Source: op.SourceAnswer})
			return
		}
		w.perform(Action{Kind: ActEndTurn, Reason: "stuck"})
	case ActMask:
		w.mask(a)
	case ActCompact:
		w.compactOldest(a)
	case ActCloseUnknown:
		for _, c := range a.Calls {
			w.add(&op.ToolReturned{Call: c.ID, Name: c.Name, Text: projection.UnknownResult, IsError: true,
				Unknown: true})
		}
	case ActSaveWorld:
		id := w.s.Steps.Next()
		w.add(&op.WorldSaved{
			Parent: w.s.Current, Commit: fmt.Sprintf("commit%d", id), Tree: fmt.Sprintf("tree%d", id),
			Mark: fmt.Sprintf("[step %d]", id),
		})
	case ActJump:
		w.jump()
	case ActMail:
		w.mailPass()
		if rapid.Bool().Draw(w.t, "killed before the delivery") {
			w.add(&op.TaskResumed{})
			return
		}
		w.deliver()
	case ActDropJump:
		w.add(&op.JumpDropped{To: w.s.Jump.Pending.To, Why: a.Detail})
	case ActFinishJump:
		j := w.s.Jump.Intended
		w.add(&op.JumpDone{
			From: j.From, To: j.To, Discarded: j.Discarded, Backward: j.Backward,
			Words: w.wordsIn(j.Discarded, w.s.Carried), Notice: "notice",
		})
	}
}

func (w *walk) runCalls(calls []CallState) {
	for _, c := range calls {
		if !c.Called {
			w.add(&op.ToolCalled{
				Call: c.ID, Name: c.Name, Args: c.Args, World: fmt.Sprintf("tree%d", w.s.Current),
				Effects: rapid.Bool().Draw(w.t, "effects"),
			})
		}
		switch rapid.IntRange(0, 9).Draw(w.t, "call") {
		case 0:
			w.add(&op.TaskResumed{}) // killed while it ran
			return
		case 1:
			w.add(&op.UserSaid{Text: fmt.Sprint("steer ", len(w.ops)), Source: op.SourceSteer})
		case 2, 3:
			if w.s.Jump.Pending == nil {
				j := &op.JumpRequested{To: rapid.IntRange(0, w.s.Steps.Next()).Draw(w.t, "to"),
					By: op.ByAgent, Call: c.ID}
				if rapid.Bool().Draw(w.t, "mail") {
					j.Mail = &op.Mail{Checkpoint: j.To, Message: "mail",
						RestoreFiles: rapid.Bool().Draw(w.t, "restore files")}
				}
				w.add(j)
			}
		}
		w.add(&op.ToolReturned{Call: c.ID, Name: c.Name, Text: fmt.Sprint("result ", len(w.ops))})
	}
}

func (w *walk) jump() {
	to, from := w.s.Jump.Pending.To, w.s.Current
	ranges := w.s.Steps.Ranges(w.s.Discarded(to))
	if w.s.Jump.Pending.Mail != nil {
		w.mailPass()
	} else if rapid.Bool().Draw(w.t, "pass") {
		for _, r := range w.s.Steps.Ranges(w.s.Steps.Uncompacted(w.s.Discarded(to))) {
			w.add(&op.PassDone{Ranges: []op.Range{r}, Block: fmt.Sprintf("[block over %s]", r), Trigger: "jump"})
		}
	}
	w.add(&op.JumpIntended{From: from, To: to, Discarded: ranges, Backward: w.s.Steps.OnPath(to, from)})
}

// mailPass does what Task.mailPass does.
func (w *walk) mailPass() {
	j := w.s.Jump.Pending
	if len(j.Passes) > 0 {
		return
	}
	r := op.Range{First: w.s.Steps.At(j.To + 1).First, Last: w.s.Steps.At(w.s.Steps.Next() - 1).Last}
	p := &op.PassDone{Ranges: []op.Range{r}, Trigger: op.TriggerMail, Block: fmt.Sprintf("[mail over %s]", r)}
	if !j.Mail.RestoreFiles {
		p.Words = w.wordsIn([]op.Range{r}, w.s.Settled)
	}
	w.add(p)
}

// deliver ends a D-Mail: all after its checkpoint that it takes is out, what
// stands before is as it was, and its message is there.
func (w *walk) deliver() {
	before, p := w.s.Context.Chat(), w.s.Jump.Pending.Passes[0]
	w.add(&op.MailDelivered{From: w.s.Current, To: w.s.Jump.Pending.To})
	if !strings.Contains(string(optest.Render(w.s.Context.Chat())), p.Block) {
		w.t.Fatalf("the D-Mail %q did not arrive", p.Block)
	}
	for _, e := range w.s.Context.Entries {
		if p.Ranges[0].Contains(e.Seq) && e.Msg.Role != model.RoleUser {
			w.t.Fatalf("op %d is still there after the D-Mail %q", e.Seq, p.Block)
		}
	}
	for i, m := range w.s.Context.Chat() {
		if strings.Contains(m.Text, p.Block) {
			break
		}
		if string(optest.Render([]model.Message{m})) != string(optest.Render(before[i:i+1])) {
			w.t.Fatalf("message %d stands before the D-Mail and changed", i)
		}
	}
}

// reflect is one reflection, however it ends. A crash leaves its intent alone.
func (w *walk) reflect() {
	to := w.s.Jump.Pending.To
	if n := len(w.s.Jump.Backward(to)); n < MaxBackwardJumps {
		w.t.Fatalf("a reflection after %d jumps to step %d", n, to)
	}
	w.add(&op.ReflectAsked{To: to})
	switch rapid.IntRange(0, 3).Draw(w.t, "reflection") {
	case 0:
		w.add(&op.TaskResumed{}) // killed while reflecting
	case 1:
		w.add(&op.ReflectFailed{To: to, Why: "rubbish"})
	case 2:
		w.add(&op.StrategyGiven{To: to, Question: "Which?", Text: "[STRATEGY] question"})
	case 3:
		w.add(&op.StrategyGiven{To: to, Plan: []string{"look"}, Text: fmt.Sprint("[STRATEGY] plan ", len(w.ops))})
		want := ActJump
		if m := w.s.Jump.Pending.Mail; m != nil && !m.RestoreFiles {
			want = ActMail
		}
		if a := Next(w.s, Limits{}); a.Kind != want {
			w.t.Fatalf("after a strategy: %+v, want kind %d", a, want)
		}
	}
}

// mask does what Task.mask does: everything before the first masked result
// stays as it was, and the context becomes as much smaller as it says.
func (w *walk) mask(a Action) {
	before, tokens := w.s.Context.Chat(), w.s.Context.Tokens
	b := &op.ContextMasked{Before: tokens, Target: a.Target}
	freed := 0
	for _, seq := range a.Seqs {
		o := w.ops[seq-1]
		if a.Reason == "window" && seq > w.s.Pressure.Seen {
			w.t.Fatalf("op %d is masked before the model has seen it", seq)
		}
		b.Results = append(b.Results, op.MaskedResult{Seq: seq, Line: fmt.Sprintf("op %d", seq), Tok: 8})
		freed += o.Tok - 8
	}
	w.add(b)
	if got := w.s.Context.Tokens; got != tokens-freed {
		w.t.Fatalf("the context has %d tokens after masking, want %d", got, tokens-freed)
	}
	after := w.s.Context.Chat()
	first := fmt.Sprintf("op %d", a.Seqs[0])
	for i := range before {
		if strings.HasPrefix(after[i].Text, first) && after[i].Role == model.RoleTool {
			break
		}
		if after[i].Text != before[i].Text {
			w.t.Fatalf("message %d stands before the first masked result and changed", i)
		}
	}
}

func (w *walk) compactOldest(a Action) {
	first, last := w.s.Steps.At(a.Steps[0]), w.s.Steps.At(a.Steps[len(a.Steps)-1])
	r := op.Range{First: first.First, Last: last.Last}
	w.add(&op.PassDone{
		Ranges: []op.Range{r}, Trigger: op.TriggerWindow, Block: fmt.Sprintf("[block over %s]", r),
		Words: w.wordsIn([]op.Range{r}, nil), Target: a.Target,
	})
}

// wordsIn joins what the user said in some ranges, but for operations that
// are left out.
func (w *walk) wordsIn(ranges []op.Range, out func(op.Op) bool) string {
	var said []string
	for _, r := range ranges {
		for _, o := range w.ops[r.First-1 : r.Last] {
			if b, ok := o.Body.(*op.UserSaid); ok && (out == nil || !out(o)) {
				said = append(said, b.Text)
			}
		}
	}
	return strings.Join(said, "\n")
}

// TestProjectionIsAlwaysAChat folds random streams: after every operation the
// projection is a valid chat, users' words are in it or in a jump's message,
// and a request repeats the one before it up to the first thing a pass took out.
func TestProjectionIsAlwaysAChat(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &walk{t: rt, s: new(State)}
		w.add(&op.TaskOpened{
			Task: "t", System: "system", EAS: 1000,
			Window: rapid.SampledFrom([]int{0, 4000, 20000}).Draw(rt, "window"),
		})
		w.add(&op.UserSaid{Text: "the first request", Source: op.SourceRequest})
		limits := Limits{Limits: op.Limits{Steps: 1000}, User: rapid.Bool().Draw(rt, "person")}
		for range 60 {
			w.perform(Next(w.s, limits))
		}
		if w.s.Jump.Intended != nil { // no request goes out in the middle of a jump
			w.perform(Next(w.s, Limits{}))
		}
		text := string(optest.Render(w.s.Context.Chat()))
		for _, word := range w.words {
			if !strings.Contains(text, word) {
				rt.Fatalf("%q, which the user said, is gone", word)
			}
		}
		if got := countedTokens(w.s); got != w.s.Context.Tokens {
			rt.Fatalf("the context has %d tokens and says %d", got, w.s.Context.Tokens)
		}
		if w.s.Totals.Passes == 0 && w.s.Totals.Masked == 0 {
			for i := 1; i < len(w.sent); i++ {
				checkPrefix(rt, w.sent[i-1], w.sent[i])
			}
		}
		again := new(State)
		for _, o := range w.ops {
			if err := Fold(again, o); err != nil {
				rt.Fatal(err)
			}
		}
		if !bytes.Equal(optest.Render(again.Context.Chat()), optest.Render(w.s.Context.Chat())) {
			rt.Fatal("folding the same operations twice gives two projections")
		}
	})
}

// countedTokens adds up the context's entries.
func countedTokens(s *State) int {
	n := s.Context.SystemTok
	for _, e := range slices.Concat(s.Context.Entries, s.Context.Held) {
		n += e.Tok
	}
	return n
}

// checkPrefix asserts that a request begins with the one before it, so that a
// provider's prefix cache holds.
func checkPrefix(t *rapid.T, before, after []model.Message) {
	a, b := optest.Render(before), optest.Render(after)
	a = bytes.TrimSuffix(a, []byte("\n")) // the last message may have grown by merging
	if !bytes.HasPrefix(b, a) {
		t.Fatalf("a request changed what was sent before:\n%s\n=== then ===\n%s", a, b)
	}
}

func TestFoldRefuses(t *testing.T) {
	open := "task.opened 0 {\"task\":\"t\"}\nuser.said 0 {\"text\":\"go\",\"source\":\"request\"}\n"
	tests := map[string]string{
		"a step that was never begun": open + "notice.given 2 {}",
		"a second opening":            open + "task.opened 0 {}",
		"a result without a call":     open + `tool.returned 0 {"call":"x"}`,
		"a step that ends twice":      open + "world.saved 0 {}\nworld.saved 0 {}",
		"a parent from the future":    open + "world.saved 0 {}\nworld.saved 1 {\"parent\":4}",
		"a jump to nowhere":           open + "world.saved 0 {}\njump.done 1 {\"to\":7}",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			s := new(State)
			ops := optest.Parse(t, text)
			var err error
			for _, o := range ops {
				if err != nil {
					t.Fatalf("failed before the last op: %v", err)
				}
				err = Fold(s, o)
			}
			if err == nil {
				t.Error("folded without an error")
			}
		})
	}
}

// TestSubagentMakesBusy: a subagent may change the task's directory, unless it works in one of its own.
func TestSubagentMakesBusy(t *testing.T) {
	for body, want := range map[string]bool{`{"dir":"/fork"}`: false, `{}`: true} {
		s := new(State)
		for _, o := range optest.Parse(t, "task.opened 0 {\"task\":\"t\"}\nsubagent.started 0 "+body) {
			if err := Fold(s, o); err != nil {
				t.Fatal(err)
			}
		}
		if s.World.Busy != want {
			t.Errorf("after subagent.started %s: busy %v", body, s.World.Busy)
		}
	}
}

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
)

// provider answers each request in turn, and keeps when it was asked and what was sent.
type provider struct {
	answers []any // a model.Reply or a *model.Fault; the last one repeats
	asked   []time.Time
	sent    []model.Request
}

func (p *provider) Name() string { return "provider" }

func (p *provider) Ask(_ context.Context, r model.Request, on func(model.Delta)) (model.Reply, error) {
	p.asked = append(p.asked, time.Now())
	p.sent = append(p.sent, r)
	next := p.answers[min(len(p.asked), len(p.answers))-1]
	if f, ok := next.(*model.Fault); ok {
		if f.Partial != "" && on != nil {
			on(model.Delta{Text: f.Partial})
		}
		return model.Reply{}, f
	}
	return next.(model.Reply), nil
}

func busy(after time.Duration) *model.Fault {
	return &model.Fault{Kind: model.FaultHTTP, Status: 503, Retryable: true, RetryAfter: after, Err: errors.New("busy")}
}

func says(text string) model.Reply { return model.Reply{Text: text, Finish: "stop"} }

func times(n int, answer any) (list []any) {
	for range n {
		list = append(list, answer)
	}
	return list
}

// withProvider returns a task that asks p, within a bubble of its own time.
func withProvider(t *testing.T, p *provider, lim state.Limits, back Callbacks) *Task {
	t.Helper()
	task, _ := newTask(t, "turns:\n  - reply: x\n", Options{Limits: lim, Callbacks: back})
	task.opts.Model = p
	return task
}

// TestOutage: a failing provider is waited for as long as the limits say, and asked ever less often; a
// wait that it names is waited for however long it is, and does not count.
func TestOutage(t *testing.T) {
	refused := &model.Fault{Kind: model.FaultRefused, Status: 401, Err: errors.New("bad key")}
	unreachable := &model.Fault{Kind: model.FaultNetwork, Retryable: true, Err: errors.New("no such host")}
	cut := &model.Fault{Kind: model.FaultCut, Retryable: true, Partial: "I be", Err: errors.New("cut")}
	for _, tt := range []struct {
		name        string
		answers     []any
		lim         state.Limits
		reason      string
		detail      string
		asked       int // 0: as often as it takes
		least, most time.Duration
	}{
		{"a short outage", append(times(4, busy(0)), says("Done.")), state.Limits{Outage: 24 * time.Hour}, "done", "", 5, 7 * time.Second, 15 * time.Second},
		{"hours of it", append(times(100, busy(0)), says("Done.")), state.Limits{Outage: 24 * time.Hour}, "done", "", 101, 4 * time.Hour, 9 * time.Hour},
		{"without an end", times(1, busy(0)), state.Limits{Outage: 24 * time.Hour}, "failed", "busy", 0, 24 * time.Hour, 24*time.Hour + time.Second},
		{"without an end, in a session", times(1, busy(0)), state.Limits{Outage: 10 * time.Minute}, "failed", "busy", 0, 10 * time.Minute, 10*time.Minute + time.Second},
		{"not waited for", times(1, busy(0)), state.Limits{}, "failed", "busy", 1, 0, 0},
		{"a reset in days", []any{busy(50 * time.Hour), says("Done.")}, state.Limits{Outage: time.Minute}, "done", "", 2, 50 * time.Hour, 50*time.Hour + time.Minute},
		{"resets again and again", append(times(9, busy(5*time.Hour)), busy(0), says("Done.")), state.Limits{Outage: 10 * time.Minute}, "done", "", 11, 45 * time.Hour, 46 * time.Hour},
		{"a reset each second", times(1, busy(time.Second)), state.Limits{Outage: time.Hour}, "failed", "busy", 0, time.Hour, 2 * time.Hour},
		{"beyond the task's time", times(1, busy(3*time.Hour)), state.Limits{Limits: op.Limits{Time: time.Hour}, Outage: time.Hour}, "limit", "beyond the time of 1h0m0s: model: http (status 503): busy", 1, 0, 0},
		{"the task's time in an outage", times(1, busy(0)), state.Limits{Limits: op.Limits{Time: time.Hour}, Outage: 24 * time.Hour}, "limit", "beyond the time of 1h0m0s", 0, 50 * time.Minute, time.Hour},
		{"a wrong key", []any{busy(0), refused}, state.Limits{Outage: 24 * time.Hour}, "failed", "bad key", 2, 0, time.Second},
		{"an address that never answered", times(1, unreachable), state.Limits{Outage: 24 * time.Hour}, "failed", "no such host", 0, 5 * time.Minute, 5*time.Minute + time.Second},
		{"an address that answered before", append([]any{says("")}, append(times(40, unreachable), says("Done."))...), state.Limits{Outage: 24 * time.Hour}, "done", "", 42, time.Hour, 4 * time.Hour},
		{"replies that break off", times(1, cut), state.Limits{Outage: 24 * time.Hour}, "failed", "cut", maxCut, time.Minute, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &provider{answers: tt.answers}
			// Opened outside the bubble: its stores have goroutines of their own.
			task := withProvider(t, p, tt.lim, Callbacks{})
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				task.opts.Now = time.Now
				task.opts.family.begun = begun
				out, err := task.Run(t.Context())
				if took := time.Since(begun); err != nil || out.Reason != tt.reason ||
					!strings.Contains(out.Detail, tt.detail) || took < tt.least || took > tt.most {
					t.Errorf("Run = %+v, %v after %v; want %s (%s) after %v to %v", out, err, took, tt.reason,
						tt.detail, tt.least, tt.most)
				}
			})
			if tt.asked > 0 && len(p.asked) != tt.asked {
				t.Errorf("asked %d times; want %d", len(p.asked), tt.asked)
			}
			for i := 1; i < len(p.asked); i++ {
				if f, _ := tt.answers[min(i, len(tt.answers))-1].(*model.Fault); f != nil && f.RetryAfter == 0 &&
					p.asked[i].Sub(p.asked[i-1]) > maxWait {
					t.Errorf("wait %d was %v", i, p.asked[i].Sub(p.asked[i-1]))
				}
			}
			if task.Ledger.State().Outage != nil {
				t.Error("the outage did not end with the turn")
			}
		})
	}
}

// TestOutageIsRecorded: the wait stands in the record before it begins, so that another process waits
// on; what had streamed is void; another model is asked at once.
func TestOutageIsRecorded(t *testing.T) {
	half := busy(3 * time.Hour)
	half.Partial = "I be"
	p := &provider{answers: []any{half, says("Done.")}}
	ctx, cancel := context.WithCancel(t.Context())
	var left []time.Duration
	var pieces []model.Delta
	task := withProvider(t, p, state.Limits{Outage: time.Hour}, Callbacks{
		Delta: func(d model.Delta) { pieces = append(pieces, d) },
		Waiting: func(o state.Outage, l time.Duration) {
			left = append(left, l)
			if len(left) == 3 {
				cancel()
			}
		},
	})
	before := task.Ledger.State().Last
	synctest.Test(t, func(t *testing.T) {
		task.opts.Now = time.Now
		if fault, err := task.ask(ctx, t.Context()); err != nil || fault == nil {
			t.Fatalf("ask: %v, %v", fault, err)
		}
		o := task.Ledger.State().Outage
		if o == nil || o.Tries != 1 || time.Until(o.Until) < 3*time.Hour || o.End.Sub(o.Until) < 50*time.Minute {
			t.Fatalf("outage %+v", o)
		}
		if len(p.asked) != 1 || task.Ledger.State().Last != before+2 {
			t.Errorf("%d requests, %d operations; want the request and its failure", len(p.asked),
				task.Ledger.State().Last-before)
		}
		if err := task.Ledger.Journal.Post(t.Context(), &op.UserSaid{Text: "Mind the tabs.", Source: op.SourceSteer}); err != nil {
			t.Fatal(err)
		}
		if fault, err := task.ask(ctx, t.Context()); err != nil || fault != nil || len(left) != 0 {
			t.Errorf("what was posted waits, too: %v, %v, %v", fault, err, left)
		}
		if err := task.Ledger.ApplyQueued(); err != nil {
			t.Fatal(err)
		}
		if fault, err := task.ask(ctx, t.Context()); err != nil || fault != nil || len(p.asked) != 1 {
			t.Errorf("an interrupted wait: %v, %v, %d requests", fault, err, len(p.asked))
		}
	})
	if len(left) != 3 || left[0]-left[2] != 2*time.Second {
		t.Errorf("reported %v", left)
	}
	if last := pieces[len(pieces)-1]; !last.Restart {
		t.Errorf("streamed %+v", pieces)
	}
	// A process that was killed here goes on with the same wait.
	data, err := state.Marshal(task.Ledger.State())
	if err != nil {
		t.Fatal(err)
	}
	st, err := state.Unmarshal(data)
	if err != nil || st.Outage == nil || !st.Outage.Until.Equal(task.Ledger.State().Outage.Until) {
		t.Fatalf("read back %+v, %v", st.Outage, err)
	}
	fold := func(b op.Body) {
		if err := state.Fold(st, op.Op{Seq: st.Last + 1, Step: st.Steps.Next(), Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	if fold(&op.TaskResumed{Model: st.Model.Name, BaseURL: st.Model.BaseURL, Continue: true}); st.Outage == nil {
		t.Error("a resumed task forgot the wait")
	}
	if fold(&op.TaskResumed{Model: "another"}); st.Outage != nil {
		t.Error("another model is waited for")
	}
}

// TestAskNow: a user who does not want to wait is not kept waiting.
func TestAskNow(t *testing.T) {
	p := &provider{answers: []any{busy(3 * time.Hour), says("Done.")}}
	var task *Task
	task = withProvider(t, p, state.Limits{Outage: time.Hour},
		Callbacks{Waiting: func(state.Outage, time.Duration) { task.AskNow() }})
	synctest.Test(t, func(t *testing.T) {
		task.opts.Now = time.Now
		for range 2 {
			if fault, err := task.ask(t.Context(), t.Context()); err != nil || fault == nil && len(p.asked) < 2 {
				t.Fatalf("ask: %v, %v", fault, err)
			}
		}
		if wait := p.asked[1].Sub(p.asked[0]); wait > time.Minute {
			t.Errorf("asked again after %s", wait)
		}
	})
}

// TestEmptyReplies: a reply with neither text nor a call is asked for again, three times, each of them
// recorded, and an empty message is never sent.
func TestEmptyReplies(t *testing.T) {
	thought := model.Reply{Reasoning: "hm", Finish: "stop"}
	for _, tt := range []struct {
		name    string
		answers []any
		reason  string
		asked   int
	}{
		{"once", []any{says(""), says("Done.")}, "done", 2},
		{"thoughts only", []any{thought, says(" \n"), model.Reply{Finish: "tool_calls"}, says("Done.")}, "done", 4},
		{"for ever", []any{says("")}, "failed", 1 + state.MaxEmptyReplies},
		{"cut off", []any{model.Reply{Reasoning: "hm", Finish: "length"}}, "limit", 1 + state.MaxEmptyReplies},
		{"filtered", []any{model.Reply{Finish: "content_filter"}}, "failed", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &provider{answers: tt.answers}
			task := withProvider(t, p, state.Limits{}, Callbacks{})
			out, err := task.Run(t.Context())
			if err != nil || out.Reason != tt.reason || len(p.asked) != tt.asked ||
				task.Ledger.State().Totals.Replies != tt.asked {
				t.Errorf("Run = %+v, %v after %d requests and %d replies; want %s after %d", out, err, len(p.asked),
					task.Ledger.State().Totals.Replies, tt.reason, tt.asked)
			}
			for i, r := range p.sent {
				for _, m := range r.Messages {
					if m.Role == model.RoleAssistant && strings.TrimSpace(m.Text) == "" && len(m.Calls) == 0 {
						t.Errorf("request %d has an empty message", i)
					}
				}
				if last := r.Messages[len(r.Messages)-1]; i > 0 &&
					(last.Role != model.RoleUser || !strings.Contains(last.Text, "neither text nor a tool call") &&
						!strings.Contains(last.Text, "token limit")) {
					t.Errorf("request %d ends with %+v", i, last)
				}
			}
		})
	}
}

// TestExtra: what a provider put beside a reply reaches it again from the record, counts in the context,
// and holds no secret: readable text is redacted as text is, signatures stay unless a known value is in
// them, and a structure whose text was redacted is left out, for its signature no longer fits.
func TestExtra(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	jwt := "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	p := &provider{answers: []any{model.Reply{
		Text: "Looking.", Reasoning: "the key is hunter2hunter2", Finish: "tool_calls", Origin: "http://x m",
		Extra: map[string]json.RawMessage{
			"reasoning_content": raw(`"the key is hunter2hunter2 <b>"`),
			"signed":            raw(`[{"type":"text","text":"the key is hunter2hunter2","signature":"abc"}]`),
			"kept":              raw(`[{"type":"text","text":"<nothing>","source":"plain","signature":"` + jwt + `"}]`),
			"named":             raw(`{"source":"hunter2hunter2"}`),
			"thought_signature": raw(`"hunter2hunter2"`),
		},
		Calls: []op.Call{{ID: "a", Name: "Glob", Args: `{"pattern":"*"}`, Extra: map[string]json.RawMessage{
			"extra_content": raw(`{"google":{"thought_signature":"` + jwt + `"}}`), "leak": raw(`{"x":"hunter2hunter2"}`)}}},
	}, says("Done.")}}
	task, h := newTask(t, "turns:\n  - reply: x\n",
		Options{Secrets: []redact.Secret{{Kind: "password", Value: "hunter2hunter2"}}})
	task.opts.Model = p
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	noSecret(t, h.Task("t"), "hunter2")
	var sent model.Message
	for _, m := range p.sent[1].Messages {
		if m.Role == model.RoleAssistant {
			sent = m
		}
	}
	text := string(sent.Extra["reasoning_content"])
	if sent.Origin != "http://x m" || !strings.Contains(text, "the key is [redacted:password:") || len(sent.Extra) != 2 ||
		!strings.Contains(string(sent.Extra["kept"]), jwt) || len(sent.Calls[0].Extra) != 1 ||
		!strings.Contains(string(sent.Calls[0].Extra["extra_content"]), jwt) {
		t.Errorf("sent back %+v", sent)
	}
}

// TestFallback: a model that will not answer soon is replaced by the next one, whose EAS holds from then
// on; one that fails transiently, or refuses the request itself, is not.
func TestFallback(t *testing.T) {
	refused := func(status int) *model.Fault {
		return &model.Fault{Kind: model.FaultRefused, Status: status, Err: errors.New("no")}
	}
	for _, tt := range []struct {
		name    string
		answers []any
		asked   int
		reason  string
		changed bool
	}{
		{"a quota's reset", []any{busy(3 * time.Hour)}, 1, "done", true},
		{"no money", []any{refused(402)}, 1, "done", true},
		{"no such model", []any{refused(404)}, 1, "done", true},
		{"fails five times", []any{busy(0)}, 5, "done", true},
		{"fails four times", append(times(4, busy(0)), says("Done.")), 5, "done", false},
		{"no key", []any{&model.Fault{Kind: model.FaultRefused, Err: fmt.Errorf("%w: none printed", model.ErrNoKey)}}, 1, "done", true},
		{"no tools", []any{&model.Fault{Kind: model.FaultRefused, Status: 400, Err: fmt.Errorf("no: %w", model.ErrNoTools)}}, 1, "done", true},
		{"a bad request", []any{refused(400)}, 1, "failed", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first, second := &provider{answers: tt.answers}, &provider{answers: []any{says("Done.")}}
			task := withProvider(t, first, state.Limits{Outage: time.Hour}, Callbacks{})
			task.opts.Fallback = func(context.Context) (*Next, error) {
				return &Next{Model: second, Name: "second", EAS: 5000, EASFrom: "table"}, nil
			}
			synctest.Test(t, func(t *testing.T) {
				task.opts.Now = time.Now
				task.opts.family.begun = time.Now()
				if out, err := task.Run(t.Context()); err != nil || out.Reason != tt.reason {
					t.Errorf("Run = %+v, %v; want %s", out, err, tt.reason)
				}
			})
			m := task.Ledger.State().Model
			if changed := m.Name == "second" && m.EAS == 5000 && len(second.asked) == 1; changed != tt.changed ||
				len(first.asked) != tt.asked {
				t.Errorf("model %+v, the first asked %d times, the second %d; want %d", m, len(first.asked),
					len(second.asked), tt.asked)
			}
		})
	}
}

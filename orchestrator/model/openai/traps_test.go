package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/modeltest"
)

// TestBrokenReplies: a reply without a finish reason is a fault that says what happened.
func TestBrokenReplies(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	tests := []struct {
		name      string
		answer    http.HandlerFunc
		kind      model.FaultKind
		retryable bool
		partial   string
		says      string
	}{
		{"connection dropped", breakOff(content("half") + "\n\n"), model.FaultCut, true, "half", "stream broke"},
		{"clean end without a finish reason", sse(content("half")), model.FaultCut, true, "half", "without a finish reason"},
		{"done without a finish reason", sse(content("half"), doneEvent), model.FaultCut, true, "half", "without a finish reason"},
		{"empty body", raw("text/event-stream", ""), model.FaultCut, true, "", "without a finish reason"},
		{"cut inside the JSON of an event", raw("text/event-stream", content("half")+"\n\n"+`data: {"choices":[{"ind`), model.FaultCut, true, "half", "inside an event"},
		{"dropped inside the JSON of an event", breakOff(content("half") + "\n\n" + `data: {"choices":[{"ind`), model.FaultCut, true, "half", "stream broke"},
		{"web page with status 200", raw("text/html", "\n<!DOCTYPE html><html>Sign in</html>"), model.FaultProtocol, false, "", "web page"},
		{"web page called a stream", raw("text/event-stream", "<html>Sign in</html>"), model.FaultProtocol, false, "", "web page"},
		{"some other JSON", raw("application/json", `{"models":[]}`), model.FaultProtocol, false, "", "not a chat completion"},
		{"error as JSON with status 200", raw("application/json", `{"error":{"message":"no such thing","type":"invalid_request_error"}}`), model.FaultHTTP, false, "", "no such thing"},
		{"whole JSON cut", raw("application/json", `{"choices":[{"message":{"content":"ha`), model.FaultCut, true, "", "inside its JSON"},
		{"event that is not JSON", sse(content("half"), "data: {broken}"), model.FaultProtocol, true, "half", "not a JSON object"},
		{"event of the wrong type", sse(content("half"), "data: 17"), model.FaultProtocol, true, "half", "not a JSON object"},
		{"error event of OpenAI", sse(content("half"), `data: {"error":{"message":"The server had an error","type":"server_error","code":null}}`), model.FaultHTTP, true, "half", "The server had an error"},
		{"error event and done", sse(content("half"), `data: {"error":{"message":"Overloaded","type":"overloaded_error"}}`, doneEvent), model.FaultHTTP, true, "half", "Overloaded"},
		{"error event after the finish reason", sse(content("half"), finish("stop"), `data: {"error":{"message":"lost it","type":"server_error"}}`), model.FaultHTTP, true, "half", "lost it"},
		{"error event of vLLM", sse(content("half"), `data: {"object":"error","message":"engine died","type":"InternalServerError","code":500}`), model.FaultHTTP, true, "half", "engine died"},
		{"error event as a string", sse(content("half"), `data: {"error":"an error was encountered while running the model"}`), model.FaultHTTP, true, "half", "while running the model"},
		{"named error event", sse(content("half"), "event: error\ndata: {\"message\":\"rate limited\",\"code\":429}"), model.FaultHTTP, true, "half", "rate limited"},
		{"error event with choices", sse(content("half"), `data: {"error":{"code":502,"message":"upstream died"},"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`), model.FaultHTTP, true, "half", "upstream died"},
		{"finish reason error", sse(content("half"), finish("error")), model.FaultHTTP, true, "half", "with an error"},
		{"overflow in the stream", sse(`data: {"error":{"code":400,"message":"prompt is too long: 9000 tokens > 8000 maximum"}}`), model.FaultOverflow, false, "", "prompt is too long"},
		{"window ends the reply", sse(content("half"), finish("model_context_window_exceeded")), model.FaultOverflow, false, "half", "context window"},
		{"endless line", endless("data: {\"choices\":\"" + long), model.FaultProtocol, false, "", "longer than 8 MiB"},
		{"endless white space", endless(strings.Repeat(" ", 64<<10)), model.FaultProtocol, false, "", "not a chat completion"},
		{"event of endless lines", endless(strings.Repeat("data: ["+strings.Repeat("[", 1<<10)+"\n", 64)), model.FaultProtocol, false, "", "longer than 8 MiB"},
		{"endless event", endless("data: [\"" + long + "\"\n"), model.FaultProtocol, false, "", "longer than 8 MiB"},
		{"endless comments", endless(": " + long + "\n"), model.FaultProtocol, false, "", "longer than 64 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reply, err := ask(t, serve(t, tt.answer).client(t, nil), modeltest.Question())
			f := wantFault(t, err, tt.kind)
			if f.Retryable != tt.retryable || f.Partial != tt.partial || f.Tries != 1 {
				t.Errorf("retryable %v, partial %q, %d tries; want %v, %q, 1", f.Retryable, f.Partial, f.Tries,
					tt.retryable, tt.partial)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %q does not say %q", err, tt.says)
			}
			if reply.Text != "" || reply.Finish != "" {
				t.Errorf("half a reply came with the fault: %+v", reply)
			}
		})
	}
}

// A reply of more calls than are read is a reply: who runs the calls refuses them.
func TestTooManyCalls(t *testing.T) {
	for _, n := range []int{model.MaxCalls, model.MaxCalls + 1, 300} {
		var events []string
		for i := range n {
			events = append(events,
				delta(fmt.Sprintf(
					`{"tool_calls":[{"index":%d,"id":"c%d","function":{"name":"Bash","arguments":"{\"a\":"}}]}`, i, i)),
				delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":"1}"}}]}`, i)))
		}
		reply, err := ask(t, serve(t, sse(append(events, finish("tool_calls"), doneEvent)...)).client(t, nil),
			modeltest.Question())
		if err != nil {
			t.Fatalf("%d calls: %v", n, err)
		}
		if len(reply.Calls) != model.MaxCalls || reply.MoreCalls != (n > model.MaxCalls) ||
			reply.Finish != "tool_calls" {
			t.Errorf("%d calls: %d read, more %v, finish %q", n, len(reply.Calls), reply.MoreCalls, reply.Finish)
		}
		if last := reply.Calls[len(reply.Calls)-1]; last.ID != "c127" || last.Args != `{"a":1}` {
			t.Errorf("%d calls: the last one read is %+v", n, last)
		}
	}
}

// endless repeats body until the client has had enough.
func endless(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if _, err := w.Write([]byte(body)); err != nil {
				return
			}
		}
	}
}

// Streams that are unusual and all the same complete.
func TestOddStreams(t *testing.T) {
	comments := strings.Repeat(": OPENROUTER PROCESSING\n\n", 2000)
	tests := []struct {
		name   string
		answer http.HandlerFunc
		text   string
		think  string
		finish string
	}{
		{"many comments", raw("text/event-stream", comments+content("hello")+"\n\n"+comments+finish("stop")+"\n\n"+doneEvent+"\n\n"), "hello", "", "stop"},
		{"no done mark", sse(content("hello"), finish("stop")), "hello", "", "stop"},
		{"dropped after the finish reason", breakOff(content("hello") + "\n\n" + finish("length") + "\n\n"), "hello", "", "length"},
		{"single newlines", raw("text/event-stream", content("hel")+"\n"+content("lo")+"\n"+finish("stop")+"\n"+doneEvent+"\n"), "hello", "", "stop"},
		{"carriage returns", raw("text/event-stream", content("hello")+"\r\n\r\n"+finish("stop")+"\r\n\r\n"+doneEvent+"\r\n\r\n"), "hello", "", "stop"},
		{"no newline at the end", raw("text/event-stream", content("hello")+"\n\n"+finish("stop")), "hello", "", "stop"},
		{"no space after the colon", raw("text/event-stream", strings.ReplaceAll(content("hello")+"\n\n"+finish("stop")+"\n\n"+doneEvent+"\n\n", "data: ", "data:")), "hello", "", "stop"},
		{"byte order mark", raw("text/event-stream", "\ufeff"+content("hello")+"\n\n"+finish("stop")+"\n\n"), "hello", "", "stop"},
		{"event over two data lines", sse("data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"hello\"}}]}", finish("stop")), "hello", "", "stop"},
		{"event over two data lines at the end", raw("text/event-stream", content("hello")+"\n\ndata: {\"choices\":[{\"index\":0,\ndata: \"finish_reason\":\"stop\"}]}"), "hello", "", "stop"},
		{"names and ids", sse("event: message\nid: 4\nretry: 10\n"+content("hello"), "event: message\n"+finish("stop"), doneEvent), "hello", "", "stop"},
		{"empty data", sse("data:", "data: ", content("hello"), finish("stop")), "hello", "", "stop"},
		{"error null first", sse(`data: {"error":null,"choices":[{"index":0,"delta":{"content":"hello"}}]}`, finish("stop")), "hello", "", "stop"},
		{"reasoning under its other name", sse(delta(`{"reasoning":"let me "}`), delta(`{"reasoning":"see"}`), content("hello"), finish("stop")), "hello", "let me see", "stop"},
		{"reasoning under both names", sse(delta(`{"reasoning":"see","reasoning_content":"see"}`), content("hello"), finish("stop")), "hello", "see", "stop"},
		{"reasoning that is not text", sse(delta(`{"reasoning":{"a":1},"content":"hello"}`), finish("stop")), "hello", "", "stop"},
		{"refusal", sse(delta(`{"refusal":"I cannot."}`), finish("stop")), "I cannot.", "", "stop"},
		{"content filter", sse(content("he"), finish("content_filter")), "he", "", "content_filter"},
		{"second choice", sse(content("hello"), `data: {"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"length"}]}`, finish("stop")), "hello", "", "stop"},
		{"server that does not stream", raw("application/json", `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello","reasoning":"see"},"finish_reason":"stop"}]}`), "hello", "see", "stop"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var streamed, thought string
			c := serve(t, tt.answer).client(t, nil)
			reply, err := c.Ask(t.Context(), modeltest.Question(), func(d model.Delta) {
				streamed += d.Text
				thought += d.Reasoning
			})
			if err != nil {
				t.Fatal(err)
			}
			if reply.Text != tt.text || reply.Reasoning != tt.think || reply.Finish != tt.finish {
				t.Errorf("text %q, reasoning %q, finish %q; want %q, %q, %q", reply.Text, reply.Reasoning, reply.Finish,
					tt.text, tt.think, tt.finish)
			}
			if streamed != tt.text || thought != tt.think {
				t.Errorf("streamed %q and %q; want %q and %q", streamed, thought, tt.text, tt.think)
			}
			if reply.Usage.Prompt == 0 || reply.Usage.Completion == 0 {
				t.Errorf("usage %+v; want an estimate", reply.Usage)
			}
		})
	}
}

func TestToolCalls(t *testing.T) {
	call := func(s string) string { return delta(`{"tool_calls":[` + s + `]}`) }
	tests := []struct {
		name   string
		events []string
		want   []op.Call // an empty id: any that is not empty
	}{
		{"arguments in pieces, interleaved", []string{
			call(`{"index":0,"id":"a","type":"function","function":{"name":"Bash","arguments":""}}`),
			call(`{"index":1,"id":"b","type":"function","function":{"name":"Glob","arguments":"{\"p"}}`),
			call(`{"index":0,"function":{"arguments":"{\"x\":"}}`),
			call(`{"index":1,"function":{"arguments":"\":2}"}}`),
			call(`{"index":0,"function":{"arguments":"1}"}}`),
		}, []op.Call{{ID: "a", Name: "Bash", Args: `{"x":1}`}, {ID: "b", Name: "Glob", Args: `{"p":2}`}}},
		{"no index", []string{
			call(`{"id":"a","function":{"name":"Bash","arguments":"{}"}}`),
			call(`{"id":"b","function":{"name":"Bash","arguments":"{}"}}`),
		}, []op.Call{{ID: "a", Name: "Bash", Args: "{}"}, {ID: "b", Name: "Bash", Args: "{}"}}},
		{"neither index nor id", []string{
			call(`{"function":{"name":"Bash","arguments":"{\"a\""}},{"function":{"arguments":":1}"}}`),
			call(`{"function":{"name":"Glob","arguments":"{}"}}`),
		}, []op.Call{{Name: "Bash", Args: `{"a":1}`}, {Name: "Glob", Args: "{}"}}},
		{"a whole reply without index and id", []string{
			call(`{"function":{"name":"Bash","arguments":"{}"}},{"function":{"name":"Bash","arguments":"{}"}}`),
		}, []op.Call{{Name: "Bash", Args: "{}"}, {Name: "Bash", Args: "{}"}}},
		{"no index, id and name with every piece", []string{
			call(`{"id":"a","function":{"name":"Bash","arguments":"{"}}`),
			call(`{"id":"a","function":{"name":"Bash","arguments":"}"}}`),
		}, []op.Call{{ID: "a", Name: "Bash", Args: "{}"}}},
		{"one index within a chunk", []string{
			call(`{"index":0,"id":"a","function":{"name":"Bash","arguments":"{"}},{"index":0,"function":{"name":"Bash","arguments":"}"}}`),
		}, []op.Call{{ID: "a", Name: "Bash", Args: "{}"}}},
		{"every index zero", []string{
			call(`{"index":0,"id":"a","function":{"name":"Bash","arguments":"{}"}}`),
			call(`{"index":0,"id":"b","function":{"name":"Glob","arguments":"{}"}}`),
		}, []op.Call{{ID: "a", Name: "Bash", Args: "{}"}, {ID: "b", Name: "Glob", Args: "{}"}}},
		{"id and name with every piece", []string{
			call(`{"index":0,"id":"a","function":{"name":"Bash","arguments":"{"}}`),
			call(`{"index":0,"id":"a","function":{"name":"Bash","arguments":"}"}}`),
		}, []op.Call{{ID: "a", Name: "Bash", Args: "{}"}}},
		{"the same id twice", []string{
			call(`{"index":0,"id":"a","function":{"name":"Bash","arguments":"{}"}}`),
			call(`{"index":1,"id":"a","function":{"name":"Glob","arguments":"{}"}}`),
			call(`{"index":2,"id":"a","function":{"name":"Grep","arguments":"{}"}}`),
		}, []op.Call{
			{ID: "a", Name: "Bash", Args: "{}"}, {ID: "a_2", Name: "Glob", Args: "{}"},
			{ID: "a_3", Name: "Grep", Args: "{}"},
		}},
		{"an id of the history", []string{
			call(`{"index":0,"id":"old","function":{"name":"Bash","arguments":"{}"}}`),
		}, []op.Call{{ID: "old_2", Name: "Bash", Args: "{}"}}},
		{"no id", []string{
			call(`{"index":0,"function":{"name":"Bash","arguments":"{}"}}`),
			call(`{"index":1,"id":"","function":{"name":"Glob","arguments":"{}"}}`),
		}, []op.Call{{Name: "Bash", Args: "{}"}, {Name: "Glob", Args: "{}"}}},
		{"no arguments", []string{call(`{"index":0,"id":"a","function":{"name":"Bash"}}`)}, []op.Call{{ID: "a", Name: "Bash", Args: "{}"}}},
		{"malformed arguments stay", []string{call(`{"index":0,"id":"a","function":{"name":"Bash","arguments":"{oops"}}`)}, []op.Call{{ID: "a", Name: "Bash", Args: "{oops"}}},
		{"the form before tool calls", []string{
			delta(`{"function_call":{"name":"Bash","arguments":"{\"a\""}}`),
			delta(`{"function_call":{"arguments":":1}"}}`),
		}, []op.Call{{Name: "Bash", Args: `{"a":1}`}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkCalls(t, tt.events, tt.want) })
	}
}

// checkCalls has a reply of these events end in these calls, where the history
// has one with the id "old".
func checkCalls(t *testing.T, events []string, want []op.Call) {
	t.Helper()
	q := modeltest.Question()
	q.Messages = append(q.Messages,
		model.Message{Role: model.RoleAssistant, Calls: []op.Call{{ID: "old", Name: "Bash", Args: "{}"}}},
		model.Message{Role: model.RoleTool, CallID: "old", Text: "ok"})
	events = append(events, finish("tool_calls"), usageEvent, doneEvent)
	reply, err := ask(t, serve(t, sse(events...)).client(t, nil), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.Calls) != len(want) {
		t.Fatalf("calls %+v; want %+v", reply.Calls, want)
	}
	seen := map[string]bool{"old": true}
	for i, c := range reply.Calls {
		if c.ID == "" || seen[c.ID] {
			t.Errorf("call %d has the id %q; want one of its own", i, c.ID)
		}
		seen[c.ID] = true
		w := want[i]
		if w.ID == "" {
			w.ID = c.ID
		}
		if !reflect.DeepEqual(c, w) {
			t.Errorf("call %d is %+v; want %+v", i, c, w)
		}
	}
}

func TestTimeLimits(t *testing.T) {
	const short = 40 * time.Millisecond
	tests := []struct {
		name    string
		answer  http.HandlerFunc
		change  func(*Options)
		partial string
		says    string
	}{
		{"no header", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(o *Options) { o.FirstByteTimeout = short }, "", "no part of a reply"},
		{"no first byte", hang(""), func(o *Options) { o.FirstByteTimeout = short }, "", "no part of a reply"},
		{"silence", hang(content("half") + "\n\n"), func(o *Options) { o.IdleTimeout = short }, "half", "no further part"},
		{"in all", hang(content("half") + "\n\n"), func(o *Options) { o.TotalTimeout = 5 * short }, "half", "not complete"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ask(t, serve(t, tt.answer).client(t, tt.change), modeltest.Question())
			f := wantFault(t, err, model.FaultTimeout)
			if !f.Retryable || f.Partial != tt.partial || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("retryable %v, partial %q, error %q; want true, %q, …%s…", f.Retryable, f.Partial, err,
					tt.partial, tt.says)
			}
		})
	}
	t.Run("after the finish reason", func(t *testing.T) {
		c := serve(t, hang(content("hello")+"\n\n"+finish("stop")+"\n\n")).client(t, nil)
		c.trailer = short
		reply, err := ask(t, c, modeltest.Question())
		if err != nil || reply.Text != "hello" {
			t.Errorf("reply %q, %v; want hello: it has its finish reason", reply.Text, err)
		}
	})
	t.Run("no wait once the usage has come", func(t *testing.T) {
		c := serve(t, hang(content("hello")+"\n\n"+finish("stop")+"\n\n"+usageEvent+"\n\n")).client(t, nil)
		c.trailer = time.Hour
		if _, err := ask(t, c, modeltest.Question()); err != nil {
			t.Error(err)
		}
	})
}

func TestCancelInTheMiddle(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user pressed Ctrl-C")
	c := serve(t, hang(content("half")+"\n\n")).client(t, nil)
	_, err := c.Ask(ctx, modeltest.Question(), func(d model.Delta) { cancel(why) })
	f := wantFault(t, err, model.FaultCanceled)
	if f.Partial != "half" || f.Retryable || !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("fault %+v (%v); want what had come, and both causes", f, err)
	}
}

// TestMaintenancePage: a web page in place of a reply is a wrong address, or an outage if the endpoint
// has answered before.
func TestMaintenancePage(t *testing.T) {
	var down atomic.Bool
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			raw("text/html", "<html>Back soon.</html>")(w, r)
			return
		}
		sse(content("hello"), finish("stop"))(w, r)
	}).client(t, nil)
	if _, err := ask(t, c, modeltest.Question()); err != nil {
		t.Fatal(err)
	}
	down.Store(true)
	_, err := ask(t, c, modeltest.Question())
	if f := wantFault(t, err, model.FaultProtocol); !f.Retryable {
		t.Errorf("fault %+v", f)
	}
}

func TestNoServer(t *testing.T) {
	e := serve(t, sse())
	c := e.client(t, nil)
	e.Close()
	_, err := ask(t, c, modeltest.Question())
	if f := wantFault(t, err, model.FaultNetwork); !f.Retryable {
		t.Error("a refused connection must be retryable")
	}
}

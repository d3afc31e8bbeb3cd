package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/modeltest"
)

const testKey = "sk-test-0123456789"

// endpoint is a server that answers every request in one way, and keeps the
// latest request's body.
type endpoint struct {
	*httptest.Server
	mu   sync.Mutex
	body []byte
	head http.Header
}

func serve(t *testing.T, answer http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		e.mu.Lock()
		e.body, e.head = body, r.Header.Clone()
		e.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(func() {
		e.CloseClientConnections()
		e.Close()
	})
	return e
}

// request returns the latest request's body.
func (e *endpoint) request(t *testing.T) map[string]any {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	var out map[string]any
	if err := json.Unmarshal(e.body, &out); err != nil {
		t.Fatalf("the request is not JSON: %v\n%s", err, e.body)
	}
	return out
}

// client asks the endpoint; change may be nil.
func (e *endpoint) client(t *testing.T, change func(*Options)) *Client {
	t.Helper()
	o := Options{BaseURL: e.URL + "/v1", Key: testKey, Model: "test-model", HTTPClient: e.Client()}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// raw answers with these bytes and a clean end.
func raw(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, body)
	}
}

// sse answers with a stream of these lines, each event ended by an empty one.
func sse(events ...string) http.HandlerFunc {
	return raw("text/event-stream", strings.Join(events, "\n\n")+"\n\n")
}

// breakOff sends the events and drops the connection.
func breakOff(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, body)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// hang sends the events and then nothing, until the client goes away.
func hang(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, body)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func status(code int, head http.Header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), head)
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// Events.
func content(s string) string { return delta(fmt.Sprintf(`{"content":%q}`, s)) }
func delta(d string) string {
	return fmt.Sprintf(
		`data: {"id":"x","model":"served-model","choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, d)
}
func finish(reason string) string {
	return fmt.Sprintf(
		`data: {"id":"x","model":"served-model","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
}

const (
	usageEvent = `data: {"id":"x","choices":[],"usage":{"prompt_tokens":120,"completion_tokens":20,"total_tokens":140,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":5}}}`
	doneEvent  = "data: [DONE]"
)

func ask(t *testing.T, c *Client, r model.Request) (model.Reply, error) {
	t.Helper()
	return c.Ask(t.Context(), r, nil)
}

func wantFault(t *testing.T, err error, kind model.FaultKind) *model.Fault {
	t.Helper()
	var f *model.Fault
	if !errors.As(err, &f) {
		t.Fatalf("error %v; want a fault of kind %s", err, kind)
	}
	if f.Kind != kind {
		t.Fatalf("fault %s (%v); want kind %s", f.Kind, f, kind)
	}
	return f
}

func TestConformance(t *testing.T) {
	bash := `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"ls\"}"}}]}`
	read := `{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"ReadFile","arguments":"{\"path\":\"a.go\"}"}}]}`
	answers := map[modeltest.Situation]http.HandlerFunc{
		modeltest.Speaks: sse(delta(`{"role":"assistant","content":""}`),
			delta(fmt.Sprintf(`{"reasoning_content":%q}`, modeltest.Thought)),
			content(modeltest.Text[:9]), content(modeltest.Text[9:]), finish("stop"), usageEvent, doneEvent),
		modeltest.Calls:  sse(delta(bash), delta(read), finish("tool_calls"), usageEvent, doneEvent),
		modeltest.Breaks: breakOff(content(modeltest.PartialText) + "\n\n"),
		modeltest.Busy: status(429, http.Header{"Retry-After": {"7"}},
			`{"error":{"message":"slow down","type":"requests"}}`),
		modeltest.Overflows: status(400, nil,
			`{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`),
		modeltest.Hangs: hang(""),
	}
	modeltest.Run(t, func(t *testing.T, s modeltest.Situation) model.Model {
		return serve(t, answers[s]).client(t, nil)
	})
}

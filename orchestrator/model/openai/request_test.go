package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/modeltest"
)

func TestRequest(t *testing.T) {
	e := serve(t, sse(content("ok"), finish("stop"), doneEvent))
	q := model.Request{
		Messages: []model.Message{
			{Role: model.RoleSystem, Text: "Be brief."},
			{Role: model.RoleUser, Text: ""},
			{Role: model.RoleAssistant, Reasoning: "hm", Calls: []op.Call{
				{ID: "a", Name: "Bash", Args: `{"command":"true"}`},
				{ID: "b", Name: "no such tool!", Args: `{oops`},
				{ID: "c", Name: "", Args: ``},
			}},
			{Role: model.RoleTool, CallID: "a", Name: "Bash", Text: ""},
		},
		Tools: []model.ToolSpec{
			{Name: "Bash", Description: "Runs.", Schema: []byte(`{"type":"object","anyOf":[]}`)}, {Name: "Think"},
		},
		MaxTokens: 77,
	}
	if _, err := ask(t, e.client(t, nil), q); err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	err := json.Unmarshal([]byte(`{
		"model": "test-model", "stream": true, "stream_options": {"include_usage": true},
		"max_tokens": 77,
		"messages": [
			{"role": "system", "content": "Be brief."},
			{"role": "user", "content": ""},
			{"role": "assistant", "content": null, "tool_calls": [
				{"id": "a", "type": "function", "function": {"name": "Bash", "arguments": "{\"command\":\"true\"}"}},
				{"id": "b", "type": "function", "function": {"name": "no_such_tool_", "arguments": "{\"malformed_arguments\":\"{oops\"}"}},
				{"id": "c", "type": "function", "function": {"name": "unnamed", "arguments": "{}"}}
			]},
			{"role": "tool", "tool_call_id": "a", "name": "Bash", "content": ""}
		],
		"tools": [
			{"type": "function", "function": {"name": "Bash", "description": "Runs.", "parameters": {"type": "object", "properties": {}}}},
			{"type": "function", "function": {"name": "Think", "parameters": {"type": "object", "properties": {}}}}
		]}`), &want)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.request(t); !reflect.DeepEqual(got, want) {
		g, _ := json.MarshalIndent(got, "", " ")
		t.Errorf("sent\n%s", g)
	}
	if got := e.head.Get("Authorization"); got != "Bearer "+testKey {
		t.Errorf("authorization %q", got)
	}
}

func TestRequestForReasoningModels(t *testing.T) {
	for name, family := range map[string]bool{
		"gpt-5-mini": true, "openai/o3": true, "o4-mini": true, "gpt-4o": false, "ollama-o1": false, "qwen3:8b": false,
	} {
		e := serve(t, sse(content("ok"), finish("stop"), doneEvent))
		if _, err := ask(t, e.client(t, func(o *Options) { o.Model = name }), modeltest.Question()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sent := e.request(t)
		_, old := sent["max_tokens"]
		_, new := sent["max_completion_tokens"]
		if old == family || new != family {
			t.Errorf("%s: max_tokens %v, max_completion_tokens %v", name, old, new)
		}
	}
}

func TestRequestThatCannotBeSent(t *testing.T) {
	e := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
	for name, q := range map[string]model.Request{
		"role":   {Messages: []model.Message{{Role: "narrator", Text: "hi"}}},
		"schema": {Tools: []model.ToolSpec{{Name: "Bash", Schema: []byte("{")}}},
	} {
		_, err := ask(t, e.client(t, nil), q)
		if f := wantFault(t, err, model.FaultProtocol); f.Retryable {
			t.Errorf("%s: retryable", name)
		}
	}
}

func TestStatus(t *testing.T) {
	tests := []struct {
		name      string
		code      int
		head      http.Header
		body      string
		kind      model.FaultKind
		retryable bool
		after     time.Duration
		says      string
	}{
		{"busy, seconds", 429, http.Header{"Retry-After": {"3"}}, `{"error":{"message":"slow down"}}`, model.FaultHTTP, true, 3 * time.Second, "slow down"},
		{"busy, milliseconds", 429, http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"1"}}, `{}`, model.FaultHTTP, true, 250 * time.Millisecond, "429"},
		{"busy, nonsense", 429, http.Header{"Retry-After": {"soon"}}, ``, model.FaultHTTP, true, 0, "no explanation"},
		{"busy, huge", 429, http.Header{"Retry-After": {"1e300"}}, ``, model.FaultHTTP, true, maxReset, ""},
		{"busy, negative", 429, http.Header{"Retry-After": {"-5"}}, ``, model.FaultHTTP, true, 0, ""},
		{"no money", 429, nil, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, model.FaultRefused, false, 0, "quota"},
		{"money that comes back", 429, nil, `{"error":{"message":"You exceeded your current quota. It resets in 2h.","code":"insufficient_quota"}}`, model.FaultHTTP, true, 2 * time.Hour, "quota"},
		{"no balance", 429, nil, `{"error":{"message":"Your account is suspended, check your plan and billing","type":"exceeded_current_quota_error"}}`, model.FaultRefused, false, 0, "billing"},
		{"key, with a time", 401, http.Header{"Retry-After": {"3"}}, `{"error":{"message":"bad key"}}`, model.FaultRefused, false, 0, "bad key"},
		{"overloaded", 529, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.FaultHTTP, true, 0, "Overloaded"},
		{"overloaded as a bad request", 400, nil, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`, model.FaultHTTP, true, 0, "Overloaded"},
		{"too early", 425, nil, ``, model.FaultHTTP, true, 0, ""},
		{"timeout", 408, nil, ``, model.FaultHTTP, true, 0, ""},
		{"server", 500, nil, `{"error":{"message":"oops"}}`, model.FaultHTTP, true, 0, "oops"},
		{"server asks not to retry", 500, http.Header{"X-Should-Retry": {"false"}}, `{"error":{"message":"oops"}}`, model.FaultHTTP, false, 0, "oops"},
		{"gateway's page", 502, nil, "<html><h1>Bad Gateway</h1></html>", model.FaultHTTP, true, 0, "web page"},
		{"unavailable", 503, http.Header{"Retry-After": {"1"}}, "loading model", model.FaultHTTP, true, time.Second, "loading model"},
		{"not implemented", 501, nil, "", model.FaultHTTP, false, 0, ""},
		{"bad request", 400, nil, `{"error":{"message":"bad schema","type":"invalid_request_error"}}`, model.FaultHTTP, false, 0, "bad schema"},
		{"validation", 422, nil, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, model.FaultHTTP, false, 0, "field required"},
		{"key", 401, nil, `{"error":{"message":"Incorrect API key provided: ` + testKey + `"}}`, model.FaultRefused, false, 0, "[API key]"},
		{"model", 404, nil, `{"error":"model 'x' not found"}`, model.FaultRefused, false, 0, "check the model's name"},
		{"forbidden", 403, nil, `{"message":"country not supported"}`, model.FaultRefused, false, 0, "country"},
		{"list", 400, nil, `[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]`, model.FaultHTTP, false, 0, "not valid"},
		{"policy", 400, nil, `{"error":{"message":"filtered","code":"content_filter"}}`, model.FaultRefused, false, 0, "filtered"},
		{"endless error body", 500, nil, strings.Repeat("x", 4<<20), model.FaultHTTP, true, 0, "…"},
		{"redirect nowhere", 304, nil, "", model.FaultHTTP, false, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ask(t, serve(t, status(tt.code, tt.head, tt.body)).client(t, nil), modeltest.Question())
			f := wantFault(t, err, tt.kind)
			if f.Status != tt.code || f.Retryable != tt.retryable || f.RetryAfter != tt.after {
				t.Errorf("status %d, retryable %v, after %v; want %d, %v, %v", f.Status, f.Retryable, f.RetryAfter,
					tt.code, tt.retryable, tt.after)
			}
			text := err.Error()
			if !strings.Contains(text, tt.says) || strings.Contains(text, testKey) || len(text) > 2*excerptLength {
				t.Errorf("error %q; want …%s…, short and without the key", text, tt.says)
			}
		})
	}
}

func TestEndlessErrorBody(t *testing.T) {
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	_, err := ask(t, e.client(t, func(o *Options) { o.TotalTimeout = time.Minute }), modeltest.Question())
	if f := wantFault(t, err, model.FaultHTTP); f.Status != 500 {
		t.Errorf("fault %v", f)
	}
}

// The messages are the providers' own, as their users report them.
func TestOverflow(t *testing.T) {
	yes := []string{
		`{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`,
		`{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again."}}`,
		`{"error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}`,
		`[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`,
		`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}`,
		`{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`,
		`{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`,
		`{"error":{"message":"Please reduce the length of the messages or completion."}}`,
		`{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144"}}`,
		`{"message":"Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length"}`,
		`{"error":{"message":"Range of input length should be [1, 30720]"}}`,
	}
	for _, body := range yes {
		p := parseProblem([]byte(body))
		p.status = 400
		if f := p.fault(nil); f.Kind != model.FaultOverflow || f.Retryable {
			t.Errorf("%s\nis %s, retryable %v; want an overflow", body, f.Kind, f.Retryable)
		}
	}
	if f := (problem{status: 413, message: "too large"}).fault(nil); f.Kind != model.FaultOverflow {
		t.Errorf("413 is %s", f.Kind)
	}
	for _, p := range []problem{
		{status: 429, message: "Rate limit reached: maximum context length per minute"},
		{status: 400, message: "temperature must be at most 2"},
		{status: 400, message: "max_tokens is too large: 999999"},
		{status: 500, message: "internal error"},
	} {
		if f := p.fault(nil); f.Kind == model.FaultOverflow {
			t.Errorf("%+v is taken for an overflow", p)
		}
	}
}

func TestKeyNeverInErrors(t *testing.T) {
	c := serve(t, sse(content("x"),
		`data: {"error":{"message":"bad key `+testKey+`","type":"authentication_error"}}`)).client(t, nil)
	_, err := ask(t, c, modeltest.Question())
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), testKey) {
			t.Errorf("the key stands in %q", e)
		}
	}
	if f := wantFault(t, err, model.FaultHTTP); f.Retryable {
		t.Error("a wrong key is not retryable")
	}
}

func TestNew(t *testing.T) {
	for name, o := range map[string]Options{
		"model":         {BaseURL: "http://localhost"},
		"scheme":        {Model: "m", BaseURL: "localhost:8080/secret-7531"},
		"host":          {Model: "m", BaseURL: "http:///secret-7531"},
		"user":          {Model: "m", BaseURL: "http://me:secret-7531@localhost"},
		"query":         {Model: "m", BaseURL: "http://localhost?key=secret-7531"},
		"unparsable":    {Model: "m", BaseURL: "http://[secret-7531"},
		"key in pieces": {Model: "m", Key: "secret-7531\nX-Evil: 1"},
	} {
		_, err := New(o)
		if !errors.Is(err, ErrOptions) || strings.Contains(err.Error(), "7531") {
			t.Errorf("%s: error %v; want ErrOptions without the operand", name, err)
		}
	}
	for given, want := range map[string]string{
		"":                               DefaultBaseURL,
		"http://localhost:1/v1":          "http://localhost:1/v1",
		" https://h/api/v1// ":           "https://h/api/v1",
		"https://h/v1/chat/completions/": "https://h/v1",
	} {
		c, err := New(Options{Model: " m ", BaseURL: given, Key: testKey + "\n"})
		if err != nil || c.BaseURL() != want || c.Name() != "m" {
			t.Errorf("%q: %v, %v; want %q", given, c, err, want)
		}
	}
}

func TestDetect(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
		models []string
		ok     bool
	}{
		{"two models", raw("application/json", `{"models":[{"name":"qwen3:8b"},{"name":"llama3.2:latest"}]}`), []string{"qwen3:8b", "llama3.2:latest"}, true},
		{"none yet", raw("application/json", `{"models":[]}`), nil, true},
		{"something else", raw("application/json", `{"hello":1}`), nil, false},
		{"a page", raw("text/html", `<html>`), nil, false},
		{"an error", status(500, nil, `{"models":[]}`), nil, false},
		{"silence", hang(""), nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(tt.answer)
			defer srv.Close()
			base, models, ok := Detect(t.Context(), srv.URL)
			if ok != tt.ok || !reflect.DeepEqual(models, tt.models) || ok && base != srv.URL+"/v1" {
				t.Errorf("%q, %q, %v; want %q, %v", base, models, ok, tt.models, tt.ok)
			}
		})
	}
}

func TestOllamaAddress(t *testing.T) {
	for host, want := range map[string]string{
		"": "http://127.0.0.1:11434", "0.0.0.0": "http://127.0.0.1:11434", "[::]:99": "http://127.0.0.1:99", "box": "http://box:11434",
		"10.0.0.2:99": "http://10.0.0.2:99", "[::1]": "http://[::1]:11434", "https://box:99/x": "https://box:99", ":// ": "http://127.0.0.1:11434",
	} {
		if got := OllamaAddress(host); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("x", excerptLength-1) + "é"
	for in, want := range map[string]string{
		"a\n b\t\x1b[31mred": "a b [31mred",
		"\xff\xfe":           "\ufffd",
		long:                 strings.Repeat("x", excerptLength-1) + " …",
	} {
		if got := excerpt([]byte(in)); got != want {
			t.Errorf("excerpt(%q) = %q; want %q", in, got, want)
		}
	}
}

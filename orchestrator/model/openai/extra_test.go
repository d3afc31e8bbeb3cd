package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// call is a delta with one call, and fields beside it.
func call(beside string) string {
	return delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"Bash","arguments":"{}"}` +
		beside + `}]}`)
}

// TestExtraGoesBack: what a provider put beside a message or a call goes back to it as it came, whatever
// it is, and a stream's pieces add up to what the same provider sends at once.
func TestExtraGoesBack(t *testing.T) {
	const sent = `"tool_calls":[{"id":"a","type":"function","function":{"name":"Bash","arguments":"{}"}%s}]`
	for _, tt := range []struct {
		name    string
		events  []string
		message string // but for the role
	}{
		{"DeepSeek, Kimi", []string{delta(`{"role":"assistant","reasoning_content":"I look "}`), delta(`{"reasoning_content":"first."}`), call("")},
			`"content":null,"reasoning_content":"I look first.",` + fmt.Sprintf(sent, "")},
		{"vLLM", []string{delta(`{"reasoning":"I "}`), delta(`{"reasoning":"I ","content":"Looking."}`), call("")},
			`"content":"Looking.","reasoning":"I I ",` + fmt.Sprintf(sent, "")},
		{"Gemini, on the call, without an index", []string{
			delta(`{"tool_calls":[{"id":"a","function":{"name":"Bash","arguments":"{}"},"extra_content":{"google":{"thought_signature":"EjQ+/=="}}}]}`)},
			`"content":null,` + fmt.Sprintf(sent, `,"extra_content":{"google":{"thought_signature":"EjQ+/=="}}`)},
		{"Gemini, on a later piece of the call", []string{call(""), delta(`{"tool_calls":[{"extra_content":{"google":{"thought_signature":"EjQ"}}}]}`)},
			`"content":null,` + fmt.Sprintf(sent, `,"extra_content":{"google":{"thought_signature":"EjQ"}}`)},
		{"Gemini, on the text", []string{content("ok"), delta(`{"content":"","extra_content":{"google":{"thought_signature":"EjQ"}}}`)},
			`"content":"ok","extra_content":{"google":{"thought_signature":"EjQ"}}`},
		{"a signature with every piece", []string{delta(`{"extra_content":{"google":{"thought_signature":"EjQ"}}}`), delta(`{"extra_content":{"google":{"thought_signature":"EjQ"}}}`), call("")},
			`"content":null,"extra_content":{"google":{"thought_signature":"EjQ"}},` + fmt.Sprintf(sent, "")},
		{"OpenRouter", []string{
			delta(`{"reasoning":"I ","reasoning_details":[{"type":"reasoning.text","text":"I ","format":"anthropic-claude-v1","index":0,"signature":null}]}`),
			delta(`{"reasoning":"look","reasoning_details":[{"type":"reasoning.text","text":"look","format":"anthropic-claude-v1","index":0}]}`),
			delta(`{"reasoning_details":[{"type":"reasoning.text","signature":"Sig==","index":0}]}`),
			delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"AAA","id":"rs_1","format":"openai-responses-v1","index":1}]}`),
			delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"BBB","id":"rs_2","index":1}]}`),
			call("")},
			`"content":null,"reasoning":"I look","reasoning_details":[{"type":"reasoning.text","text":"I look","format":"anthropic-claude-v1","index":0,"signature":"Sig=="},
			{"type":"reasoning.encrypted","data":"AAA","id":"rs_1","format":"openai-responses-v1","index":1},{"type":"reasoning.encrypted","data":"BBB","id":"rs_2","index":1}],` + fmt.Sprintf(sent, "")},
		{"blocks without an index", []string{
			delta(`{"thinking_blocks":[{"type":"thinking","thinking":"I "}]}`),
			delta(`{"thinking_blocks":[{"type":"thinking","thinking":"look","signature":"S1"}]}`),
			delta(`{"thinking_blocks":[{"type":"thinking","thinking":"again"}]}`),
			delta(`{"thinking_blocks":[{"type":"redacted_thinking","data":"R1"}]}`),
			delta(`{"thinking_blocks":[{"type":"redacted_thinking","data":"R2"}]}`), call("")},
			`"content":null,"thinking_blocks":[{"type":"thinking","thinking":"I look","signature":"S1"},{"type":"thinking","thinking":"again"},
			{"type":"redacted_thinking","data":"R1"},{"type":"redacted_thinking","data":"R2"}],` + fmt.Sprintf(sent, "")},
		{"fields that nobody knows", []string{delta(`{"state":{"n":12345678901234567890,"ok":true,"list":[1,"x"]},"empty":[],"none":null}`), call(`,"cache":"c<1>"`)},
			`"content":null,"state":{"n":12345678901234567890,"ok":true,"list":[1,"x"]},` +
				fmt.Sprintf(sent, `,"cache":"c<1>"`)},
		{"a field beside the arguments", []string{delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"Bash","arguments":"{}","state":"s"}}]}`)},
			`"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"Bash","arguments":"{}","state":"s"}}]`},
		{"thinking in the content", []string{
			delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"let "}]}]}`),
			delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"me"}],"signature":"S"}]}`),
			content("Look"), delta(`{"content":[{"type":"text","text":"ing."}]}`)},
			`"content":[{"type":"thinking","thinking":[{"type":"text","text":"let me"}],"signature":"S"},{"type":"text","text":"Looking."}]`},
		{"text parts", []string{content("Look"), delta(`{"content":[{"type":"text","text":"ing."}]}`)}, `"content":"Looking."`},
		{"at once", []string{`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_details":[{"type":"reasoning.text","text":"a"},{"type":"reasoning.text","text":"b"}],
			"tool_calls":[{"id":"a","type":"function","function":{"name":"Bash","arguments":"{}"}}]},"finish_reason":"stop"}]}`},
			`"content":null,"reasoning_details":[{"type":"reasoning.text","text":"a"},{"type":"reasoning.text","text":"b"}],` + fmt.Sprintf(sent, "")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := serve(t, sse(append(tt.events, finish("stop"), doneEvent)...))
			if tt.events[0][0] == '{' {
				e = serve(t, raw("application/json", tt.events[0]))
			}
			c := e.client(t, nil)
			reply, err := ask(t, c, model.Request{Messages: []model.Message{{Role: model.RoleUser, Text: "go"}}})
			if err != nil {
				t.Fatal(err)
			}
			var want any
			decode(t, `{"role":"assistant",`+tt.message+`}`, &want)
			if got := history(t, e, c, reply.Message()); !reflect.DeepEqual(got, want) {
				g, _ := json.Marshal(got)
				t.Errorf("sent back\n%s\nwant\n%s", g, tt.message)
			}
			// Another model at the same address is another provider.
			other := history(t, e, e.client(t, func(o *Options) { o.Model = "other" }),
				reply.Message()).(map[string]any)
			delete(other, "tool_calls")
			if len(other) != 2 {
				t.Errorf("another model got %v", other)
			}
		})
	}
}

// decode reads JSON without loss.
func decode(t *testing.T, text string, v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// history sends a reply back and returns how it was sent.
func history(t *testing.T, e *endpoint, c *Client, m model.Message) any {
	t.Helper()
	if _, err := ask(t, c, model.Request{Messages: []model.Message{{Role: model.RoleUser, Text: "go"}, m}}); err != nil {
		t.Fatal(err)
	}
	var sent struct{ Messages []any }
	e.mu.Lock()
	defer e.mu.Unlock()
	decode(t, string(e.body), &sent)
	return sent.Messages[1]
}

// TestMend: an endpoint that refuses a history says how it wants it, and gets it so once and for all.
func TestMend(t *testing.T) {
	calls := []op.Call{
		{ID: "a", Name: "Bash", Args: "{}"},
		{ID: "b", Name: "Bash", Args: "{}", Extra: map[string]json.RawMessage{"extra_content": json.RawMessage(`{"google":{"thought_signature":"own"}}`)}},
	}
	for _, tt := range []struct {
		name   string
		status int
		says   string
		wants  func(reply map[string]any) bool // of both replies of the history
		times  int
	}{
		{"DeepSeek, replies of another model", 400, "The `reasoning_content` in the thinking mode must be passed back to the API.",
			func(m map[string]any) bool { s, _ := m["reasoning_content"].(string); return s != "" }, 3},
		{"Kimi", 400, "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
			func(m map[string]any) bool { s, _ := m["reasoning_content"].(string); return s != "" }, 3},
		{"Gemini, calls of another model", 400, "Function call is missing a thought_signature in functionCall parts.",
			func(m map[string]any) bool {
				for _, c := range m["tool_calls"].([]any) {
					google, _ := c.(map[string]any)["extra_content"].(map[string]any)
					if google["google"] == nil {
						return false
					}
				}
				return true
			}, 3},
		{"Groq, Cerebras", 400, "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning' is unsupported)]",
			func(m map[string]any) bool { _, has := m["reasoning"]; return !has }, 3},
		{"Mistral", 422, "Extra inputs are not permitted: body.messages.1.assistant.state, input: a file is missing",
			func(m map[string]any) bool { _, has := m["state"]; return !has }, 3},
		{"a list that has to be text", 400, "messages.1: content must be a string", func(m map[string]any) bool { s, _ := m["content"].(string); return s == "hi" }, 3},
		{"something else", 400, "bad schema", func(map[string]any) bool { return false }, 2},
		{"not mended by it", 400, "reasoning_content is missing", func(map[string]any) bool { return false }, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int32
			var e *endpoint
			e = serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				e.mu.Lock()
				defer e.mu.Unlock()
				var sent struct{ Messages []map[string]any }
				decode(t, string(e.body), &sent)
				for _, m := range sent.Messages {
					if m["role"] == "assistant" && !tt.wants(m) {
						w.WriteHeader(tt.status)
						fmt.Fprintf(w, `{"error":{"message":%q}}`, tt.says)
						return
					}
				}
				sse(content("ok"), finish("stop"), doneEvent)(w, r)
			})
			c := e.client(t, nil)
			own := model.Message{Role: model.RoleAssistant, Text: "hi", Calls: calls, Origin: c.origin(),
				Extra: map[string]json.RawMessage{
					"reasoning": json.RawMessage(`"r"`), "state": json.RawMessage(`1`), "content": json.RawMessage(`[{"type":"thinking"}]`)}}
			foreign := own
			foreign.Origin = "elsewhere"
			q := model.Request{Messages: []model.Message{own, foreign}}
			_, first := ask(t, c, q)
			_, second := ask(t, c, q)
			if mended := tt.wants(map[string]any{"content": "hi", "reasoning_content": "x", "tool_calls": []any{}}); mended != (first == nil) || mended != (second == nil) {
				t.Errorf("errors %v, %v", first, second)
			}
			if n := int(requests.Load()); n != tt.times {
				t.Errorf("%d requests for two questions; want %d", n, tt.times)
			}
		})
	}
}

// TestOddReplies: a field of an unexpected type costs at most itself.
func TestOddReplies(t *testing.T) {
	for _, tt := range []struct {
		name  string
		event string
		want  model.Reply
	}{
		{"content as a list", delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"see"}]},{"type":"text","text":"hello"}]}`), model.Reply{Text: "hello", Reasoning: "see"}},
		{"parts of other names", delta(`{"content":[{"type":"reasoning","summary":"see"},{"type":"output_text","text":"hel"},"lo"]}`), model.Reply{Text: "hello", Reasoning: "see"}},
		{"content as one part", delta(`{"content":{"type":"text","text":"hello"}}`), model.Reply{Text: "hello"}},
		{"a refusal in a part", delta(`{"content":[{"type":"refusal","refusal":"no"}]}`), model.Reply{Text: "no"}},
		{"nulls", delta(`{"role":null,"content":"hello","refusal":null,"tool_calls":null,"function_call":null,"reasoning_content":null,"audio":null}`), model.Reply{Text: "hello"}},
		{"other types", `data: {"id":7,"created":"now","model":null,"usage":[],"choices":[{"index":null,"logprobs":7,"delta":{"role":7,"content":"hello","tool_calls":{}}}]}`, model.Reply{Text: "hello"}},
		{"fractions of tokens", `data: {"choices":[{"delta":{"content":"hello"}}],"usage":{"prompt_tokens":120.0,"completion_tokens":"20","prompt_tokens_details":{"cached_tokens":99.6},"completion_tokens_details":null}}`,
			model.Reply{Text: "hello", Usage: op.Usage{Prompt: 120, Completion: 20, Cached: 100}}},
		{"arguments as an object", delta(`{"tool_calls":[{"id":"a","function":{"name":"Bash","arguments":{"command": "ls"}}}]}`), model.Reply{Calls: []op.Call{{ID: "a", Name: "Bash", Args: `{"command":"ls"}`}}}},
		{"a number as the id, a text as the index", delta(`{"tool_calls":[{"index":"0","id":7,"function":{"name":"Bash","arguments":null}}]}`), model.Reply{Calls: []op.Call{{ID: "7", Name: "Bash", Args: `{}`}}}},
		{"one call that is no list", delta(`{"tool_calls":{"id":"a","function":{"name":"Bash","arguments":"{}"}}}`), model.Reply{Calls: []op.Call{{ID: "a", Name: "Bash", Args: `{}`}}}},
		{"details only", delta(`{"content":"hello","reasoning_details":[{"type":"reasoning.summary","summary":"see"},{"type":"reasoning.encrypted","data":"AAA"}]}`), model.Reply{Text: "hello", Reasoning: "see"}},
		{"a message in a stream", `data: {"choices":[{"message":{"content":"hello"}}]}`, model.Reply{Text: "hello"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reply, err := ask(t, serve(t, sse(tt.event, finish("stop"), doneEvent)).client(t, nil), model.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if tt.want.Usage == (op.Usage{}) {
				reply.Usage = op.Usage{}
			}
			if reply.Text != tt.want.Text || reply.Reasoning != tt.want.Reasoning || reply.Usage != tt.want.Usage ||
				!reflect.DeepEqual(reply.Calls, tt.want.Calls) {
				t.Errorf("reply %+v; want %+v", reply, tt.want)
			}
		})
	}
}

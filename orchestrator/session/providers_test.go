package session_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
)

// endpoint is a server with an oddity. It imitates what the makers' documents or public reports of the named
// servers describe; none of them was asked.
type endpoint struct {
	mu      sync.Mutex
	whole   bool // it answers with one JSON instead of a stream
	replies []any
	refuse  func(request map[string]any) string // the message of a refusal with 400; empty: none
	asked   int
	served  int
}

// sends are the bodies or messages of an endpoint, in order; the last one repeats.
type (
	raw     string   // a body as it is
	failure struct { // an error response
		status int
		body   string
	}
	message map[string]any // the message of a reply; its key finish, if any, is the reason
)

const doneText = "The file is there."

// write is a call that writes a.txt.
func write(args any) message {
	return message{
		"content":    nil,
		"tool_calls": []any{map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": "WriteFile", "arguments": args}}},
	}
}

const fileArgs = `{"path":"a.txt","content":"hello"}`

// wrote is the call in the usual form.
func wrote() message { return write(fileArgs) }

func text(s string) message { return message{"content": s} }

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	data, err := io.ReadAll(r.Body)
	var request map[string]any
	if err != nil || json.Unmarshal(data, &request) != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	e.asked++
	if e.asked > 20 {
		http.Error(w, `{"error":{"message":"asked too often"}}`, http.StatusUnauthorized)
		return
	}
	if e.refuse != nil {
		if says := e.refuse(request); says != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			answer(w, map[string]any{"error": map[string]any{"message": says, "type": "invalid_request_error"}})
			return
		}
	}
	reply := e.replies[min(e.served, len(e.replies)-1)]
	e.served++
	switch reply := reply.(type) {
	case raw:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, string(reply))
	case failure:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(reply.status)
		fmt.Fprint(w, reply.body)
	case message:
		if stream, _ := request["stream"].(bool); e.whole || !stream {
			sendWhole(w, reply)
		} else {
			sendPieces(w, reply)
		}
	}
}

func answer(w io.Writer, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err) // maps of this file always encode
	}
}

// split returns a message without its finish reason.
func split(m message) (fields map[string]any, finish any) {
	fields = map[string]any{"role": "assistant"}
	finish = "stop"
	if m["tool_calls"] != nil {
		finish = "tool_calls"
	}
	for k, v := range m {
		if k == "finish" {
			finish = v
		} else {
			fields[k] = v
		}
	}
	return fields, finish
}

func sendWhole(w http.ResponseWriter, m message) {
	fields, finish := split(m)
	w.Header().Set("Content-Type", "application/json")
	answer(w, map[string]any{
		"id": "x", "object": "chat.completion", "model": "served",
		"choices": []any{map[string]any{"index": 0, "message": fields, "finish_reason": finish}},
	})
}

// sendPieces streams a message: its text and the arguments of calls in pieces of five bytes.
func sendPieces(w http.ResponseWriter, m message) {
	fields, finish := split(m)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta map[string]any, finish any) {
		fmt.Fprint(w, "data: ")
		answer(w, map[string]any{
			"id": "x", "object": "chat.completion.chunk", "model": "served",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
		fmt.Fprint(w, "\n")
	}
	for _, key := range slices.Sorted(mapsKeys(fields)) {
		switch v := fields[key].(type) {
		case string:
			for rest := []rune(v); len(rest) > 0; rest = rest[min(5, len(rest)):] {
				send(map[string]any{key: string(rest[:min(5, len(rest))])}, nil)
			}
		case []any:
			if key != "tool_calls" {
				send(map[string]any{key: v}, nil)
				continue
			}
			for i, c := range v {
				call, ok := c.(map[string]any)
				if !ok {
					continue
				}
				piece := map[string]any{"index": i}
				maps.Copy(piece, call)
				send(map[string]any{"tool_calls": []any{piece}}, nil)
			}
		default:
			send(map[string]any{key: v}, nil)
		}
	}
	if finish != nil {
		send(map[string]any{}, finish)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func mapsKeys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// messagesOf returns the messages of a request.
func messagesOf(request map[string]any) (out []map[string]any) {
	list, _ := request["messages"].([]any)
	for _, m := range list {
		if o, ok := m.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// callsIn returns the calls of an assistant message.
func callsIn(m map[string]any) (out []map[string]any) {
	list, _ := m["tool_calls"].([]any)
	for _, c := range list {
		if o, ok := c.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// lacks refuses a request in whose replies with calls a field is missing.
func lacks(field, says string) func(map[string]any) string {
	return func(request map[string]any) string {
		for _, m := range messagesOf(request) {
			if m["role"] == "assistant" && m["tool_calls"] != nil && m[field] == nil {
				return says
			}
		}
		return ""
	}
}

// has refuses a request in whose messages of a role a field is present.
func has(role, field, says string) func(map[string]any) string {
	return func(request map[string]any) string {
		for _, m := range messagesOf(request) {
			if _, ok := m[field]; ok && m["role"] == role {
				return says
			}
		}
		return ""
	}
}

// field refuses a request with a field.
func field(name, says string) func(map[string]any) string {
	return func(request map[string]any) string {
		if _, ok := request[name]; ok {
			return says
		}
		return ""
	}
}

// with adds fields to a message.
func with(m message, key string, v any) message {
	m[key] = v
	return m
}

func calls(list ...any) message { return message{"content": "", "tool_calls": list} }

func call(id any, args string) map[string]any {
	return map[string]any{"id": id, "type": "function",
		"function": map[string]any{"name": "WriteFile", "arguments": args}}
}

// odd is an endpoint with an oddity.
type odd struct {
	name    string
	replies []any
	refuse  func(map[string]any) string
	repair  string // recorded; empty: none
	asked   int    // requests; 0: two, below 0: as many as it takes
}

// oddities are the endpoints. A task asks each to write a file.
func oddities() []odd {
	done := text(doneText)
	asText := func(name, body string) odd {
		return odd{name: "call as text, " + name, replies: []any{text(body), done}, repair: op.RepairCallAsText}
	}
	hermes := `{"name": "WriteFile", "arguments": ` + fileArgs + `}`
	list := []odd{
		asText("Hermes", "<tool_call>\n"+hermes+"\n</tool_call>"),
		asText("Hermes without the closing tag", "<tool_call>"+hermes),
		asText("after words", "I write the file.\n\n<tool_call>\n"+hermes+"\n</tool_call>"),
		asText("two", "<tool_call>\n"+hermes+"\n</tool_call>\n<tool_call>\n"+strings.Replace(hermes, "a.txt", "b.txt",
			1)+"\n</tool_call>"),
		asText("arguments as a string",
			`<tool_call>{"name":"WriteFile","arguments":"{\"path\":\"a.txt\",\"content\":\"hello\"}"}</tool_call>`),
		asText("Qwen3-Coder",
			"<tool_call>\n<function=WriteFile>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\nhello\n</parameter>\n</function>\n</tool_call>"),
		asText("Qwen3-Coder without a wrapper",
			"<function=WriteFile>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\nhello\n</parameter>\n</function>"),
		asText("Llama's function tag", "<function=WriteFile>"+fileArgs+"</function>"),
		asText("Llama's python tag", `<|python_tag|>{"name": "WriteFile", "parameters": `+fileArgs+`}`),
		asText("GLM",
			"<tool_call>WriteFile\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n<arg_key>content</arg_key>\n<arg_value>hello</arg_value>\n</tool_call>"),
		asText("MiniMax",
			"<minimax:tool_call>\n<invoke name=\"WriteFile\">\n<parameter name=\"path\">a.txt</parameter>\n<parameter name=\"content\">hello</parameter>\n</invoke>\n</minimax:tool_call>"),
		asText("function_calls",
			"<function_calls>\n<invoke name=\"WriteFile\">\n<parameter name=\"path\">a.txt</parameter>\n<parameter name=\"content\">hello</parameter>\n</invoke>\n</function_calls>"),
		asText("gpt-oss",
			"<|channel|>commentary to=functions.WriteFile <|constrain|>json<|message|>"+fileArgs+"<|call|>"),
		asText("Kimi",
			"<|tool_calls_section_begin|><|tool_call_begin|>functions.WriteFile:0<|tool_call_argument_begin|>"+fileArgs+"<|tool_call_end|><|tool_calls_section_end|>"),
		asText("DeepSeek V3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>WriteFile\n```json\n"+
			fileArgs+"\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
		asText("DeepSeek V3.1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>WriteFile<｜tool▁sep｜>"+fileArgs+
			"<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
		asText("Mistral", "[TOOL_CALLS] ["+hermes+"]"),
		asText("Mistral with a name", "[TOOL_CALLS]WriteFile[ARGS]"+fileArgs),
		asText("the bare JSON", hermes),
		asText("JSON in a code block", "```json\n"+hermes+"\n```"),
		{name: "unreadable call as text", replies: []any{text("<tool_call>\n{\"name\": \"WriteFile\", \"argum\n</tool_call>"), wrote(), done}, repair: op.RepairUnreadCall, asked: 3},
		{name: "call of an unknown tool as text", replies: []any{text("<tool_call>{\"name\": \"Write\", \"arguments\": {}}</tool_call>"), wrote(), done}, repair: op.RepairUnreadCall, asked: 3},
		{name: "a call with words after it", replies: []any{text("<tool_call>\n" + hermes + "\n</tool_call>\nThe file is written."), wrote(), done}, repair: op.RepairUnreadCall, asked: 3},

		{name: "think in the content", replies: []any{wrote(), text("<think>\nThe file <b>is</b> there.\n</think>\n\n" + doneText)}, repair: op.RepairThinkInContent},
		{name: "thinking in the content", replies: []any{wrote(), text("<thinking>Good.</thinking>" + doneText)}, repair: op.RepairThinkInContent},
		{name: "think without the opening tag", replies: []any{wrote(), text("The file is written.\n</think>\n\n" + doneText)}, repair: op.RepairThinkInContent},
		{name: "think before a call as text", replies: []any{text("<think>I write.</think>\n<tool_call>\n" + hermes + "\n</tool_call>"), done}, repair: op.RepairThinkInContent},
		{name: "channels of gpt-oss", replies: []any{wrote(), text("<|channel|>analysis<|message|>It is there.<|end|><|start|>assistant<|channel|>final<|message|>" + doneText)}, repair: op.RepairThinkInContent},
		{name: "nothing but thinking in the content", replies: []any{wrote(), text("<think>It is there.</think>"), done}, repair: op.RepairThinkInContent, asked: 3},
		{name: "nothing but reasoning", replies: []any{wrote(), message{"content": "", "reasoning_content": "It is there."}, done}, asked: 3},
		{name: "an empty reply", replies: []any{wrote(), text(""), done}, asked: 3},
		{name: "a reply of white space", replies: []any{wrote(), text("\n \n"), done}, asked: 3},

		{name: "reasoning_content is demanded", replies: []any{with(wrote(), "reasoning_content", "I write."), done}, refuse: lacks("reasoning_content", "Missing `reasoning_content` field in the assistant message at message index 2.")},
		{name: "reasoning_content is demanded and was not given", replies: []any{wrote(), done}, refuse: lacks("reasoning_content", "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"), repair: op.RepairHistory + ":reasoning_content", asked: 3},
		{name: "reasoning_details come back", replies: []any{with(wrote(), "reasoning_details", []any{map[string]any{"type": "reasoning.encrypted", "data": "c2VjcmV0", "index": 0}}), done}, refuse: lacks("reasoning_details", "reasoning_details are required")},
		{name: "reasoning is not taken back", replies: []any{with(wrote(), "reasoning", "I write."), done}, refuse: has("assistant", "reasoning", "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning' is unsupported)]"), repair: op.RepairHistory + ":reasoning", asked: 3},
		{name: "a thought signature comes back", replies: []any{calls(map[string]any{"id": "function-call-1", "type": "function", "extra_content": map[string]any{"google": map[string]any{"thought_signature": "c2ln"}}, "function": map[string]any{"name": "WriteFile", "arguments": fileArgs}}), done}, refuse: unsigned},
		{name: "a thought signature that was not given", replies: []any{wrote(), done}, refuse: unsigned, repair: op.RepairHistory + ":thought_signature", asked: 3},

		{name: "content as a list of parts", replies: []any{wrote(), message{"content": []any{map[string]any{"type": "text", "text": doneText}}}}, repair: op.RepairContentParts},
		{name: "thinking as a part", replies: []any{wrote(), message{"content": []any{map[string]any{"type": "thinking", "thinking": []any{map[string]any{"type": "text", "text": "Good."}}}, map[string]any{"type": "text", "text": doneText}}}}, repair: op.RepairContentParts},

		{name: "arguments as an object", replies: []any{write(map[string]any{"path": "a.txt", "content": "hello"}), done}, repair: op.RepairArgsObject},
		{name: "arguments as a string in a string", replies: []any{write(`"{\"path\":\"a.txt\",\"content\":\"hello\"}"`), done}, repair: op.RepairArgsString},
		{name: "arguments in a code block", replies: []any{write("```json\n" + fileArgs + "\n```"), done}, repair: op.RepairArgsString},
		{name: "arguments twice", replies: []any{write(fileArgs + fileArgs), done}, repair: op.RepairArgsTwice},
		{name: "line breaks in arguments", replies: []any{write("{\"path\":\"a.txt\",\"content\":\"hello\n\tworld\"}"), done}, repair: op.RepairArgsControls},
		{name: "broken arguments", replies: []any{write(`{"path":"a.txt","cont`), wrote(), done}, repair: op.RepairCallID, asked: 3},
		{name: "no id", replies: []any{calls(call("", fileArgs)), done}, repair: op.RepairCallID},
		{name: "a null id", replies: []any{calls(call(nil, fileArgs)), done}, repair: op.RepairCallID},
		{name: "a number as id", replies: []any{calls(call(7, fileArgs)), done}},
		{name: "one id for two calls", replies: []any{calls(call("c", fileArgs), call("c", strings.Replace(fileArgs, "a.txt", "b.txt", 1))), done}, repair: op.RepairCallID},
		{name: "the same id in each reply", replies: []any{wrote(), write(strings.Replace(fileArgs, "a.txt", "b.txt", 1)), done}, repair: op.RepairCallID, asked: 3},
		{name: "function_call of old", replies: []any{message{"content": nil, "function_call": map[string]any{"name": "WriteFile", "arguments": fileArgs}, "finish": "function_call"}, done}, repair: op.RepairCallID},

		{name: "the finish stop with a call", replies: []any{with(wrote(), "finish", "stop"), done}},
		{name: "a call without a finish reason", replies: []any{with(wrote(), "finish", nil), done}, repair: op.RepairNoFinish},
		{name: "a text without a finish reason", replies: []any{wrote(), with(text(doneText), "finish", nil)}, repair: op.RepairNoFinish, asked: 3},
		{name: "a text cut at the token limit", replies: []any{wrote(), with(text("The file "), "finish", "length"), text("is there.")}, asked: 3},
		{name: "a stream that breaks off", replies: []any{raw("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"I wr\"}}]}\n\n"), wrote(), done}, asked: 3},
		{name: "comments and empty events", replies: []any{wrote(), raw(": ping\n\nevent: message\ndata: {\"choices\":[]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + doneText + "\"},\"finish_reason\":\"stop\"}]}\n\n")}},

		{name: "stream_options is refused", replies: []any{wrote(), done}, refuse: field("stream_options", "Unrecognized request argument supplied: stream_options"), repair: op.RepairWithout + ":stream_options", asked: 3},
		{name: "streaming with tools is refused", replies: []any{wrote(), done}, refuse: func(r map[string]any) string {
			if r["stream"] == true {
				return "streaming is not supported when tools are used"
			}
			return ""
		}, repair: op.RepairWithout + ":stream", asked: 3},
		{name: "a tool is refused by its name", replies: []any{wrote(), done}, refuse: offers("Grep", "Invalid schema for function 'Grep': schema must have type 'object' and not have 'oneOf' at the top level."), repair: op.RepairToolLeftOut + ":Grep", asked: 3},
		{name: "a tool is refused by its place", replies: []any{wrote(), done}, refuse: offers("", "tools[2].function.parameters: missing field items"), asked: 3},
		{name: "roles have to alternate", replies: []any{wrote(), done}, refuse: alternate, asked: 0},
		{name: "one system message at the start", replies: []any{wrote(), text(""), done}, refuse: func(r map[string]any) string {
			for i, m := range messagesOf(r) {
				if i > 0 && m["role"] == "system" {
					return "System message must be at the beginning."
				}
			}
			return ""
		}, asked: -1},
		{name: "ids of nine characters", replies: []any{wrote(), done}, refuse: func(r map[string]any) string {
			for _, m := range messagesOf(r) {
				for _, c := range callsIn(m) {
					if id, _ := c["id"].(string); len(id) != 9 {
						return "Tool call id was " + id + " but must be a-z, A-Z, 0-9, with a length of 9."
					}
				}
			}
			return ""
		}, repair: op.RepairHistory + ":call ids of nine characters", asked: 3},
		{name: "no content of null", replies: []any{wrote(), done}, refuse: func(r map[string]any) string {
			for _, m := range messagesOf(r) {
				if m["content"] == nil {
					return "Invalid value for 'content': expected a string, got null."
				}
			}
			return ""
		}, repair: op.RepairHistory + ":no message without words", asked: 3},
		{name: "no name in results", replies: []any{wrote(), done}, refuse: has("tool", "name", "property 'name' is unsupported in tool messages"), repair: op.RepairHistory + ":name", asked: 3},

		{name: "503", replies: []any{failure{503, "upstream connect error"}, wrote(), done}, asked: 3},
		{name: "529, overloaded", replies: []any{failure{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, wrote(), done}, asked: 3},
		{name: "a limit of requests", replies: []any{failure{429, `{"error":{"message":"Rate limit reached. Please try again in 20ms.","type":"requests","code":"rate_limit_exceeded"}}`}, wrote(), done}, asked: 3},
		{name: "an error with status 200", replies: []any{raw(`{"error":{"message":"The engine is currently overloaded","type":"engine_overloaded_error"}}`), wrote(), done}, asked: 3},
		{name: "an error in the stream", replies: []any{raw("data: {\"error\":{\"code\":502,\"message\":\"Provider returned error\"},\"choices\":[]}\n\n"), wrote(), done}, asked: 3},
		{name: "an empty body", replies: []any{raw(""), wrote(), done}, asked: 3},
		{name: "a gateway's page", replies: []any{wrote(), failure{502, "<html><body>Bad Gateway</body></html>"}, done}, asked: 3},
	}
	return list
}

// unsigned refuses a history that has a call without a thought signature, as Gemini does.
func unsigned(request map[string]any) string {
	for _, m := range messagesOf(request) {
		for _, c := range callsIn(m) {
			extra, _ := c["extra_content"].(map[string]any)
			google, _ := extra["google"].(map[string]any)
			if google["thought_signature"] == nil {
				return "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly."
			}
		}
	}
	return ""
}

// offers refuses a request that has a tool of a name, or the tool that came third in the first one.
func offers(name, says string) func(map[string]any) string {
	first := ""
	return func(request map[string]any) string {
		tools, _ := request["tools"].([]any)
		for i, t := range tools {
			o, _ := t.(map[string]any)
			f, _ := o["function"].(map[string]any)
			n, _ := f["name"].(string)
			if name == "" && i == 2 && (first == "" || n == first) {
				first = n
				return says
			}
			if n == name && name != "" {
				return says
			}
		}
		return ""
	}
}

// alternate refuses two messages of the user after each other.
func alternate(request map[string]any) string {
	last := ""
	for _, m := range messagesOf(request) {
		role, _ := m["role"].(string)
		if role == "user" && last == "user" {
			return "Conversation roles must alternate user/assistant/user/assistant/..."
		}
		last = role
	}
	return ""
}

// TestProviders: whatever oddity an endpoint has, streaming or not, the task does what it was asked for,
// asks no more often than needed, and records what was repaired.
func TestProviders(t *testing.T) {
	for _, odd := range oddities() {
		for _, whole := range []bool{false, true} {
			name := odd.name
			if whole {
				name += ", not streamed"
				if slices.ContainsFunc(odd.replies, func(r any) bool { _, is := r.(raw); return is }) {
					continue // the oddity is the stream's
				}
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := &endpoint{whole: whole, replies: odd.replies, refuse: odd.refuse}
				if odd.name == "a tool is refused by its place" {
					e.refuse = offers("", "tools[2].function.parameters: missing field items")
				}
				out, repairs, world := runAgainst(t, e)
				if out.Reason != "done" || strings.TrimSpace(out.Answer) != doneText {
					t.Errorf("the task ended %q (%s) with %q", out.Reason, out.Detail, out.Answer)
				}
				if got, err := os.ReadFile(filepath.Join(world, "a.txt")); err != nil ||
					!strings.HasPrefix(string(got), "hello") {
					t.Errorf("a.txt is %q, %v", got, err)
				}
				if odd.repair != "" && !slices.Contains(repairs, odd.repair) {
					t.Errorf("recorded repairs %q; want %q", repairs, odd.repair)
				}
				if want := max(odd.asked, 2); odd.asked >= 0 && e.asked != want {
					t.Errorf("%d requests; want %d", e.asked, want)
				}
			})
		}
	}
}

// runAgainst runs a task against an endpoint. It returns the names of the recorded repairs and the
// directory.
func runAgainst(t *testing.T, e *endpoint) (runtime.Outcome, []string, string) {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	world := filepath.Join(dir, "world")
	if err := os.Mkdir(world, 0o700); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"ANAMNESIS_HOME": filepath.Join(dir, "home"), "OPENAI_API_KEY": "sk-test-0123456789",
		"OPENAI_BASE_URL": server.URL + "/v1",
	}
	service, err := session.New(session.Options{Getenv: func(name string) string { return env[name] }, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	request := session.Request{
		Dir: world, ID: "odd", Text: "Make the file a.txt.",
		Settings: session.Settings{Model: "some-model", Approval: "auto"},
	}
	task, err := service.Start(t.Context(), request, session.Client{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := task.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	task.Close()
	var repairs []string
	err = service.Ops("odd", 0, func(o op.Op) error {
		if b, ok := o.Body.(*op.ModelReplied); ok {
			repairs = append(repairs, b.Repairs...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, repairs, world
}

// TestEveryOddityIsTried: each oddity that the table names has an endpoint above.
func TestEveryOddityIsTried(t *testing.T) {
	for _, known := range op.Oddities() {
		if known.Name == op.RepairToolSchema { // of an MCP server: see TestAcceptedSchema of package openai
			continue
		}
		if !slices.ContainsFunc(oddities(), func(o odd) bool { return o.repair == known.Name || strings.HasPrefix(o.repair, known.Name+":") }) {
			t.Errorf("no endpoint for %s", known.Name)
		}
	}
}

//go:build unix

package install

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// model is a server that plays a script in the place of a language model, over the
// protocols that the agents speak: Anthropic's messages, OpenAI's chat and responses,
// and Gemini's. A request without tools, such as one for a title, is not part of the
// script.
type model struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	script   []reply
	turn     int
	ids      int
	requests []string // the bodies of those that the script answered
}

// reply is a reply of the model. before runs when its request has arrived.
type reply struct {
	text   string
	calls  []call
	before func()
}

type call struct {
	name, namespace string // namespace: as Codex groups the tools of MCP servers
	args            map[string]any
}

type object = map[string]any

func newModel(t *testing.T, script []reply) *model {
	m := &model{t: t, script: script}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// next returns the reply to a request, and notes the request.
func (m *model) next(body []byte) reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, string(body))
	if m.turn++; m.turn > len(m.script) {
		return reply{text: "Nothing is left to do."}
	}
	r := m.script[m.turn-1]
	if r.before != nil {
		r.before()
	}
	return r
}

func (m *model) id(prefix string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids++
	return fmt.Sprintf("%s%020d", prefix, m.ids)
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	switch r.Header.Get("Content-Encoding") {
	case "gzip":
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	case "zstd":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	var q struct {
		Stream           bool
		Tools            []json.RawMessage
		GenerationConfig struct{ ResponseJSONSchema json.RawMessage }
	}
	if len(body) > 0 && (err != nil || json.Unmarshal(body, &q) != nil) {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	answer := func(of func(reply) []object) []object {
		if len(q.Tools) == 0 {
			return of(reply{text: "Make the check pass"})
		}
		return of(m.next(body))
	}
	path := r.URL.Path
	switch {
	case strings.Contains(path, "count_tokens"):
		m.json(w, object{"input_tokens": 1000})
	case strings.Contains(path, "countTokens"):
		m.json(w, object{"totalTokens": 1000})
	case strings.HasSuffix(path, "/v1/messages"):
		events := answer(m.anthropic)
		if q.Stream {
			m.events(w, events, true, "")
		} else {
			m.json(w, events[len(events)-1])
		}
	case strings.HasSuffix(path, "/responses"):
		m.events(w, answer(m.responses), true, "")
	case strings.HasSuffix(path, "/chat/completions"):
		m.events(w, answer(m.chat), false, "data: [DONE]\n\n")
	case strings.Contains(path, "enerateContent"):
		chunks := answer(m.gemini)
		if q.GenerationConfig.ResponseJSONSchema != nil {
			chunks = m.gemini(reply{
				text: `{"reasoning":"x","next_speaker":"user","model_choice":"flash","complexity_reasoning":"x","complexity_score":10}`,
			})
		}
		if strings.Contains(path, "stream") {
			m.events(w, chunks, false, "")
		} else {
			m.json(w, chunks[0])
		}
	case strings.HasSuffix(path, "/models"):
		m.json(w, object{"object": "list", "data": []object{{"id": "m1", "object": "model"}}, "models": []object{}})
	default:
		http.NotFound(w, r)
	}
}

func (m *model) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		m.t.Error(err)
	}
}

// events writes a stream. An event whose type is empty is the whole reply, for clients
// that did not ask for a stream.
func (m *model) events(w http.ResponseWriter, events []object, named bool, end string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		name, _ := e["type"].(string)
		if named && (name == "" || name == "message") {
			continue
		}
		if named {
			fmt.Fprintf(w, "event: %s\n", name)
		}
		data, err := json.Marshal(e)
		if err != nil {
			m.t.Error(err)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	fmt.Fprint(w, end)
}

func arguments(c call) string {
	data, err := json.Marshal(c.args)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func (m *model) anthropic(r reply) []object {
	usage := object{"input_tokens": 1200, "output_tokens": 40, "cache_creation_input_tokens": 0,
		"cache_read_input_tokens": 0}
	message := object{
		"id": m.id("msg_"), "type": "message", "role": "assistant", "model": "m1", "content": []object{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}
	events := []object{{"type": "message_start", "message": message}}
	content := []object{}
	block := func(start, whole, delta object) {
		n := len(content)
		content = append(content, whole)
		events = append(events, object{"type": "content_block_start", "index": n, "content_block": start},
			object{"type": "content_block_delta", "index": n, "delta": delta},
			object{"type": "content_block_stop", "index": n})
	}
	if r.text != "" {
		block(object{"type": "text", "text": ""}, object{"type": "text", "text": r.text},
			object{"type": "text_delta", "text": r.text})
	}
	stop := "end_turn"
	for _, c := range r.calls {
		stop = "tool_use"
		id := m.id("toolu_")
		block(object{"type": "tool_use", "id": id, "name": c.name, "input": object{}},
			object{"type": "tool_use", "id": id, "name": c.name, "input": c.args},
			object{"type": "input_json_delta", "partial_json": arguments(c)})
	}
	whole := object{
		"id": message["id"], "type": "message", "role": "assistant", "model": "m1", "content": content,
		"stop_reason": stop, "stop_sequence": nil, "usage": usage,
	}
	return append(events, object{
		"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil},
		"usage": object{"output_tokens": 40},
	},
		object{"type": "message_stop"}, whole)
}

func (m *model) responses(r reply) []object {
	id := m.id("resp_")
	var output []object
	if r.text != "" {
		output = append(output,
			object{"type": "message", "id": m.id("msg_"), "role": "assistant", "status": "completed",
				"content": []object{{"type": "output_text", "text": r.text, "annotations": []object{}}}})
	}
	for _, c := range r.calls {
		o := object{
			"type": "function_call", "id": m.id("fc_"), "call_id": m.id("call_"), "name": c.name,
			"arguments": arguments(c), "status": "completed",
		}
		if c.namespace != "" {
			o["namespace"] = c.namespace
		}
		output = append(output, o)
	}
	events := []object{{
		"type":     "response.created",
		"response": object{"id": id, "object": "response", "status": "in_progress", "output": []object{}},
	}}
	for i, o := range output {
		events = append(events, object{"type": "response.output_item.added", "output_index": i, "item": o},
			object{"type": "response.output_item.done", "output_index": i, "item": o})
	}
	usage := object{
		"input_tokens": 1200, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 40,
		"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 1240,
	}
	return append(events, object{
		"type":     "response.completed",
		"response": object{"id": id, "object": "response", "status": "completed", "output": output, "usage": usage},
	})
}

func (m *model) chat(r reply) []object {
	id, finish := m.id("chatcmpl-"), "stop"
	chunk := func(delta object, finish any) object {
		return object{
			"id": id, "object": "chat.completion.chunk", "created": 1, "model": "m1",
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		}
	}
	chunks := []object{chunk(object{"role": "assistant", "content": r.text}, nil)}
	for i, c := range r.calls {
		finish = "tool_calls"
		chunks = append(chunks,
			chunk(object{
				"tool_calls": []object{{"index": i, "id": m.id("call_"), "type": "function", "function": object{"name": c.name, "arguments": arguments(c)}}},
			}, nil))
	}
	return append(chunks, chunk(object{}, finish),
		object{"id": id, "object": "chat.completion.chunk", "created": 1, "model": "m1", "choices": []object{},
			"usage": object{"prompt_tokens": 1200, "completion_tokens": 40, "total_tokens": 1240}})
}

func (m *model) gemini(r reply) []object {
	var parts []object
	if r.text != "" {
		parts = append(parts, object{"text": r.text})
	}
	for _, c := range r.calls {
		parts = append(parts, object{"functionCall": object{"name": c.name, "args": c.args}})
	}
	return []object{{"candidates": []object{
		{"content": object{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0},
	},
		"usageMetadata": object{"promptTokenCount": 1200, "candidatesTokenCount": 40, "totalTokenCount": 1240}, "modelVersion": "m1", "responseId": m.id("r")}}
}

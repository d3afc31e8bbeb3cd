package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"anamnesis/opstream/op"
)

// object is a JSON object whose fields are read one by one, so that a field of an unexpected type
// costs only itself: providers differ in the types of most of them.
type object map[string]json.RawMessage

// objectOf returns an object, nil for any other JSON.
func objectOf(raw json.RawMessage) object {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// listOf returns the elements of a list, or a value that is no list as its only element.
func listOf(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil || !present(raw) {
		return list
	}
	return []json.RawMessage{raw}
}

// stringOf returns a string's content, empty for any other JSON.
func stringOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// wordOf returns a string's content, or the JSON of a number or an object.
func wordOf(raw json.RawMessage) string {
	if s := stringOf(raw); s != "" || !present(raw) {
		return s
	}
	return string(raw)
}

// numberOf returns a number, which may be a fraction or stand in a string. ok is false for any other
// JSON.
func numberOf(raw json.RawMessage) (n int, ok bool) {
	f, err := strconv.ParseFloat(wordOf(raw), 64)
	if err != nil || math.Abs(f) > math.MaxInt32 {
		return 0, false
	}
	return int(math.Round(f)), true
}

// chunk is a piece of a reply, or a whole one.
type chunk struct {
	model   string
	usage   *op.Usage
	choices []choice
}

type choice struct {
	index  int
	delta  object // nil if there is none
	finish string
}

// readChunk never fails: what it cannot read is missing.
func readChunk(event []byte) chunk {
	top := objectOf(event)
	c := chunk{model: stringOf(top["model"]), usage: usageOf(objectOf(top["usage"]))}
	for _, raw := range listOf(top["choices"]) {
		o := objectOf(raw)
		if o == nil {
			continue
		}
		n, _ := numberOf(o["index"])
		delta := objectOf(o["delta"])
		if delta == nil {
			delta = objectOf(o["message"])
		}
		c.choices = append(c.choices, choice{index: n, delta: delta, finish: wordOf(o["finish_reason"])})
	}
	return c
}

func usageOf(u object) *op.Usage {
	if u == nil {
		return nil
	}
	count := func(o object, key string) int {
		n, _ := numberOf(o[key])
		return max(n, 0)
	}
	return &op.Usage{
		Prompt: count(u, "prompt_tokens"), Completion: count(u, "completion_tokens"),
		Cached: max(count(objectOf(u["prompt_tokens_details"]), "cached_tokens"),
			count(u, "prompt_cache_hit_tokens"),  // DeepSeek
			count(u, "cached_tokens"),            // Moonshot
			count(u, "cache_read_input_tokens")), // gateways to Anthropic
		Reasoning: count(objectOf(u["completion_tokens_details"]), "reasoning_tokens"),
	}
}

// contentOf returns the text and the thinking of a content, which is a string, a part, or a list of
// parts. A part's type says what it is; its text may itself be a list of parts. plain reports that
// nothing but text is in it.
func contentOf(raw json.RawMessage) (text, thinking string, plain bool) {
	plain = true
	for _, part := range listOf(raw) {
		if s := stringOf(part); s != "" {
			text += s
			continue
		}
		o := objectOf(part)
		inner, deep := "", ""
		for _, key := range [...]string{"text", "thinking", "reasoning", "summary", "refusal", "content"} {
			if inner, deep, _ = contentOf(o[key]); inner+deep != "" {
				break
			}
		}
		kind := stringOf(o["type"])
		switch {
		case strings.Contains(kind, "think") || strings.Contains(kind, "reason"):
			thinking += deep + inner
			plain = false
		default:
			text, thinking = text+inner, thinking+deep
			plain = plain && deep == "" && (kind == "" || kind == "text" || kind == "output_text" || kind == "refusal")
		}
	}
	return text, thinking, plain
}

// thoughtOf returns the thinking that a message shows beside its content. Some send the same under
// several names.
func thoughtOf(d object) string {
	for _, key := range [...]string{"reasoning_content", "reasoning", "thinking", "reasoning_details",
		"thinking_blocks"} {
		if text, thinking, _ := contentOf(d[key]); text+thinking != "" {
			return text + thinking
		}
	}
	return ""
}

// argsOf returns the arguments of a call, which should be a string of JSON and may be the JSON itself.
func argsOf(raw json.RawMessage) string {
	var compact bytes.Buffer
	if s := stringOf(raw); s != "" || !present(raw) || json.Compact(&compact, raw) != nil {
		return s
	}
	return compact.String()
}

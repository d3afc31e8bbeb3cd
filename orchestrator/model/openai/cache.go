package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"anamnesis/orchestrator/model"
)

// cacheControl marks the end of a prefix that the provider is to keep. Anthropic's models keep none without
// it, also behind gateways that pass the mark on,
// https://openrouter.ai/docs/features/prompt-caching
const cacheControl = "cache_control"

// markCache marks the prefixes to keep: of Claude's requests the system prompt and the two newest messages
// (Anthropic takes up to four marks), of OpenAI's the conversation, by a key that all its requests share,
// https://platform.openai.com/docs/guides/prompt-caching
func (c *Client) markCache(top map[string]json.RawMessage, messages []map[string]any, w *written) {
	if u, err := url.Parse(c.o.BaseURL); err == nil && u.Hostname() == "api.openai.com" && len(messages) > 1 &&
		!c.mends.without["prompt_cache_key"] {
		first, err := json.Marshal(messages[:2])
		sum := sha256.Sum256(first)
		if err == nil {
			w.fields = append(w.fields, "prompt_cache_key")
			top["prompt_cache_key"] = json.RawMessage(`"` + hex.EncodeToString(sum[:8]) + `"`)
		}
	}
	if !strings.Contains(strings.ToLower(c.o.Model), "claude") || c.mends.without[cacheControl] {
		return
	}
	w.fields = append(w.fields, cacheControl)
	left := 2
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if first := i == 0 && m["role"] == string(model.RoleSystem); left == 0 && !first {
			continue
		}
		text, ok := m["content"].(string)
		if !ok || text == "" {
			continue // an image, or only calls
		}
		m["content"] = []map[string]any{
			{"type": "text", "text": text, cacheControl: map[string]string{"type": "ephemeral"}},
		}
		left--
	}
}

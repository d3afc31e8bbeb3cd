package openai

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"anamnesis/orchestrator/model"
)

// mends are what an endpoint's refusals have shown of how it wants a history written. Endpoints differ,
// also for one model: Groq and Cerebras refuse reasoning that they sent, DeepSeek, Kimi and Gemini refuse
// a history without it, even for replies that another model gave.
type mends struct {
	omit map[string]bool // fields that it sends and does not take back
	fill map[string]bool // fields that every reply in the history must have
	sign bool            // every call must have a thought signature
}

const (
	// filler stands for the reasoning of a reply that has none. Some endpoints count an empty one as
	// missing.
	filler = " "
	// unsigned is Gemini's own word for a call that another model made,
	// https://ai.google.dev/gemini-api/docs/thought-signatures
	unsigned  = "skip_thought_signature_validator"
	signature = "thought_signature"
)

// missing matches a refusal because of what a request lacks, unwanted one because of what it has.
var (
	missing  = regexp.MustCompile(`(?i)\bmissing|must be (passed|provided|included|present)|\brequire[ds]?\b|must (have|include|contain|provide)`)
	unwanted = regexp.MustCompile(`(?i)\bun(supported|recogni[sz]ed|known|expected)\b|not (supported|permitted|allowed)|forbidden|additional propert`)
)

// learn reports whether a refusal of a request says how to write it instead, and this was not known.
func (c *Client) learn(err error, r model.Request) bool {
	var f *model.Fault
	if !errors.As(err, &f) || f.Kind != model.FaultHTTP || f.Status != http.StatusBadRequest && f.Status != http.StatusUnprocessableEntity {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	says := f.Err.Error() // which may quote the field itself
	lacks := missing.MatchString(says) && !unwanted.MatchString(says)
	if lacks && strings.Contains(says, signature) {
		known := c.mends.sign
		c.mends.sign = true
		return !known
	}
	fields := map[string]bool{"reasoning_content": lacks, "reasoning": lacks} // whether the history may lack it
	for _, m := range r.Messages {
		if m.Origin != c.origin() {
			continue
		}
		for key := range m.Extra {
			fields[key] = true
		}
		for _, call := range m.Calls {
			for key := range call.Extra {
				fields[key] = !lacks
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		set := &c.mends.omit
		if lacks {
			set = &c.mends.fill
		}
		if !fields[key] || (*set)[key] || lacks && key == "content" || !regexp.MustCompile(`\b`+regexp.QuoteMeta(key)+`\b`).MatchString(says) {
			continue
		}
		if *set == nil {
			*set = make(map[string]bool)
		}
		(*set)[key] = true
		return true
	}
	return false
}

// mend writes the replies of a request as the endpoint wants them.
func (c *Client) mend(messages []map[string]any) {
	for _, m := range messages {
		if m["role"] != string(model.RoleAssistant) {
			continue
		}
		for key := range c.mends.fill {
			if raw, ok := m[key].(json.RawMessage); !ok || !present(raw) {
				m[key] = filler
			}
		}
		for _, call := range callsOf(m) {
			raw, _ := call["extra_content"].(json.RawMessage)
			outer := objectOf(raw)
			google := objectOf(outer["google"])
			if !c.mends.sign || stringOf(google[signature]) != "" {
				continue
			}
			call["extra_content"] = map[string]any{"google": map[string]any{signature: unsigned}}
		}
	}
}

package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/model"
)

// problem is a provider's report of a failure, in any of its forms.
type problem struct {
	found   bool
	bare    bool // not inside an "error"
	status  int  // HTTP status, or the one an error in a stream names
	kind    string
	code    string
	message string
	body    []byte // of the report
}

// problemJSON is the union of the forms: OpenAI and most others
// {"error":{…}}, Ollama {"error":"…"}, vLLM {"object":"error","message":…},
// FastAPI {"detail":…}, Gemini the first in a list.
type problemJSON struct {
	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Type    json.RawMessage `json:"type"`
	Code    json.RawMessage `json:"code"`
	Status  json.RawMessage `json:"status"`
}

// parseProblem never fails: what it cannot parse becomes the message.
func parseProblem(body []byte) problem {
	p := readProblem(bytes.TrimSpace(body))
	p.body = body
	return p
}

func readProblem(body []byte) problem {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer problemJSON
	if err := json.Unmarshal(body, &outer); err != nil {
		return problem{message: plainText(body)}
	}
	p := outer.read()
	p.bare = p.found
	if present(outer.Error) {
		inner := problemJSON{}
		if json.Unmarshal(outer.Error, &inner) == nil {
			p = inner.read()
			p.found = true
		} else {
			p = problem{found: true, message: text(outer.Error)}
		}
		p.bare = false
		p.message = cmp.Or(p.message, excerpt(outer.Error))
	}
	p.message = cmp.Or(p.message, excerpt(body))
	return p
}

func (j problemJSON) read() problem {
	// A status is such as Gemini's RESOURCE_EXHAUSTED.
	p := problem{kind: cmp.Or(text(j.Type), text(j.Status)), code: text(j.Code)}
	p.message = cmp.Or(text(j.Message), text(j.Detail))
	if n, err := strconv.Atoi(p.code); err == nil && n >= 400 && n <= 599 {
		p.status = n
	}
	p.found = p.message != ""
	return p
}

// text returns a JSON string's content, or other JSON unchanged, shortened.
func text(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return excerpt([]byte(s))
	}
	return excerpt(raw)
}

// excerptLength bounds what an error quotes of a response, in bytes.
const excerptLength = 500

// excerpt makes arbitrary bytes fit into one line of an error.
func excerpt(b []byte) string {
	text := quote.CutBytes(string(b), excerptLength)
	cut := len(text) < len(b)
	s := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	s = strings.Join(strings.Fields(s), " ")
	if cut {
		s += " …"
	}
	return s
}

func plainText(body []byte) string {
	switch {
	case len(body) == 0:
		return "(no explanation)"
	case body[0] == '<':
		return "(a web page)"
	}
	return excerpt(body)
}

// fault returns the consequence of a problem for the request. h is the header of the response, nil
// inside a stream.
func (p problem) fault(h http.Header) *model.Fault {
	f := &model.Fault{Kind: model.FaultHTTP, Status: p.status, Err: errors.New(p.message)}
	refuse := func(hint string) {
		f.Kind = model.FaultRefused
		if hint != "" {
			f.Err = fmt.Errorf("%s; %s", p.message, hint)
		}
	}
	limited := p.status == http.StatusTooManyRequests ||
		p.oneOf("rate_limit_error", "rate_limit_exceeded", "usage_limit_reached", "RESOURCE_EXHAUSTED")
	busy := limited || p.oneOf("overloaded_error", "engine_overloaded_error", "server_is_overloaded", "UNAVAILABLE") ||
		p.status == http.StatusRequestTimeout || p.status == http.StatusConflict || p.status == http.StatusTooEarly ||
		p.status >= 500 && p.status != http.StatusNotImplemented
	if busy || p.status == 0 || p.unpaid() {
		f.RetryAfter = resetOf(h, p.body, string(p.body), limited, time.Now())
	}
	switch {
	case p.overflow():
		f.Kind = model.FaultOverflow
	case p.unpaid():
		if f.Retryable = f.RetryAfter > 0; !f.Retryable {
			refuse("")
		}
	case p.oneOf("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"):
		refuse("")
	case toolless().MatchString(p.message):
		f.Kind, f.Err = model.FaultRefused, fmt.Errorf("%s; %w", p.message, model.ErrNoTools)
	case p.status == http.StatusUnauthorized:
		refuse("check the API key")
	case p.status == http.StatusPaymentRequired || p.status == http.StatusForbidden:
		refuse("")
	case p.status == http.StatusNotFound:
		refuse("check the model's name and the base URL")
	case busy:
		f.Retryable = true
	case p.status == 0:
		// Inside a stream: the request itself was accepted.
		f.Retryable = !p.oneOf("invalid_request_error", "BadRequestError", "authentication_error", "permission_error")
	}
	if !f.Retryable {
		f.RetryAfter = 0
	}
	return f
}

// toolless matches the words of Ollama, OpenRouter, vLLM and others for a model that calls no tools.
var toolless = shell.Pattern(`(?i)(does not|doesn't) support (tools|tool (use|calls?|calling)|function calling)|` +
	`no endpoints found that support tool use|tool (use|calling) is not supported`)

// unpaid recognises a quota that no waiting restores, unless the provider names when it does.
func (p problem) unpaid() bool {
	return p.status != http.StatusUnauthorized && p.oneOf("insufficient_quota", "insufficient_balance",
		"billing_hard_limit_reached", "billing_not_active", "exceeded_current_quota_error",
		"insufficient_user_quota", "1113") // 1113: Zhipu
}

func (p problem) oneOf(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.EqualFold(p.kind, name) || strings.EqualFold(p.code, name)
	})
}

// overflow recognises a request that exceeds the model's window. There is no common code for
// it; the phrases are those of the named providers.
func (p problem) overflow() bool {
	switch p.status {
	case http.StatusRequestEntityTooLarge:
		return true
	case 0, http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
	default:
		return false // a 429 over tokens per minute is transient
	}
	if p.oneOf("context_length_exceeded", "exceed_context_size_error", "string_above_max_length",
		"model_context_window_exceeded", "1261") {
		return true
	}
	m := strings.ToLower(p.message)
	phrases := []string{
		"maximum context length",                       // OpenAI, DeepSeek, OpenRouter, vLLM, Mistral
		"context length exceeded",                      // Fireworks, SGLang
		"exceeds the context window",                   // OpenAI's newer models
		"context window exceeds limit",                 // MiniMax
		"exceeds the available context size",           // llama.cpp
		"greater than the context length",              // LM Studio
		"longer than the maximum model length",         // vLLM
		"longer than the model's context length",       // SGLang
		"exceeds maximum context",                      // text-generation servers
		"exceed context limit",                         // Anthropic, with max_tokens
		"prompt is too long",                           // Anthropic
		"input is too long",                            // Bedrock
		"exceeds the maximum number of tokens allowed", // Gemini
		"maximum prompt length",                        // xAI
		"exceeded model token limit",                   // Moonshot
		"exceeds max length",                           // Zhipu
		"range of input length",                        // DashScope
		"reduce the length of the messages",            // Groq, OpenAI
		"too large for model with",                     // Mistral
		"`inputs` tokens + `max_new_tokens`",           // Together, text-generation-inference
		"prompt token count of",                        // GitHub Models
		"input length exceeds",                         // Ollama
	}
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(m, phrase) })
}

// shortestKey is the shortest key that is replaced in error texts; a shorter one is a
// placeholder for a server without keys.
const shortestKey = 4

// scrub removes the key from an error's text: some endpoints repeat it.
func (c *Client) scrub(err error) error {
	c.mu.Lock()
	key := c.key
	c.mu.Unlock()
	if err == nil || len(key) < shortestKey || !strings.Contains(err.Error(), key) {
		return err
	}
	// Not wrapped: the cause's text has the key.
	return errors.New(strings.ReplaceAll(err.Error(), key, "[API key]"))
}

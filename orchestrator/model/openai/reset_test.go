package openai

import (
	"net/http"
	"testing"
	"time"
)

// TestReset: the reports are the providers' own. Without a time there is none, and numbers that say
// something else are no time.
func TestReset(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	head := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	message := func(text string) string { return `{"error":{"message":"` + text + `"}}` }
	for _, tt := range []struct {
		name string
		head http.Header
		body string
		want time.Duration
	}{
		{"date", head("Retry-After", now.Add(90*time.Second).Format(http.TimeFormat)), "", 90 * time.Second},
		{"date that is past", head("Retry-After", now.Add(-time.Hour).Format(http.TimeFormat)), "", 0},
		{"not a number", head("Retry-After", "NaN"), "", 0},
		{"no end", head("Retry-After", "Inf"), "", maxReset},
		{"hours", head("Retry-After", "11520"), "", 192 * time.Minute},
		{"OpenAI, tokens used up", head("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s",
			"x-ratelimit-remaining-requests", "59", "x-ratelimit-reset-requests", "8h0m0s"), "", 6 * time.Minute},
		{"OpenAI, milliseconds", head("x-ratelimit-reset-requests", "120ms"), "", 120 * time.Millisecond},
		{"OpenRouter", head("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1795867500000"), "", 5 * time.Minute},
		{"GitHub", head("x-ratelimit-reset", "1795867500"), "", 5 * time.Minute},
		{"Anthropic", head("anthropic-ratelimit-input-tokens-remaining", "0", "anthropic-ratelimit-input-tokens-reset", "2026-11-28T12:00:41Z"), "", 41 * time.Second},
		{"IETF draft", head("ratelimit-remaining", "0", "ratelimit-reset", "50"), "", 50 * time.Second},
		{"the header made for it counts", head("Retry-After", "7", "x-ratelimit-reset-requests", "1h0m0s"), message("try again in 9s"), 7 * time.Second},

		{"Gemini", nil, `[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"54.2s"}]}}]`, 54200 * time.Millisecond},
		{"Codex", nil, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":1795881600,"resets_in_seconds":14400}}`, 4 * time.Hour},
		{"Codex, text of a date", nil, `{"error":{"type":"usage_limit_reached","resets_at":"2026-11-29T12:00:00Z"}}`, 24 * time.Hour},
		{"OpenRouter in the body", nil, `{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795910400000"}}}}`, 12 * time.Hour},
		{"milliseconds in the body", nil, `{"retry_after_ms":1500}`, 1500 * time.Millisecond},

		{"hours and minutes", nil, message("You have hit your usage limit. Try again in 3h 12m."), 192 * time.Minute},
		{"OpenAI's words", nil, message("Rate limit reached for gpt-5 in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000. Please try again in 6.5s. Visit x."), 6500 * time.Millisecond},
		{"OpenAI's minutes", nil, message("Please try again in 7m12s."), 432 * time.Second},
		{"Gemini's words", nil, message("Quota exceeded for metric: x, limit: 20\\nPlease retry in 54.242379s."), 54242379 * time.Microsecond},
		{"Google's code assist", nil, message("You have exhausted your capacity on this model. Your quota will reset after 18h23m10s."), 18*time.Hour + 23*time.Minute + 10*time.Second},
		{"Azure", nil, message("Requests have exceeded the call rate limit. Please retry after 20 seconds."), 20 * time.Second},
		{"wait", nil, message("Too many requests, please wait for 2 minutes and 5 seconds"), 125 * time.Second},
		{"days", nil, message("Weekly limit reached, resets in 6 days, 4 hours"), 148 * time.Hour},
		{"a moment", nil, message("Limit reached; resets at 2026-11-28T18:30:00Z"), 390 * time.Minute},
		{"a moment with a zone", nil, message("limit resets at: 2026-11-28T15:30:00+0200"), 90 * time.Minute},
		{"a moment without a zone", nil, message("Your limit will reset at 2026-11-28 13:00:00"), time.Hour},
		{"a day", nil, message("Your quota resets on 2026-12-01."), 60 * time.Hour},
		{"Claude's hour", nil, message("Your limit will reset at 3pm (America/New_York)."), 8 * time.Hour},
		{"Codex's hour", nil, message("You've hit your usage limit. Upgrade to Pro or try again at 7:42 PM."), 462 * time.Minute},
		{"an hour of tomorrow", nil, message("try again at 11:30 UTC"), 23*time.Hour + 30*time.Minute},
		{"a day of the next year", nil, message("resets Jan 4 at 3pm (UTC)"), maxReset},
		{"Codex's day", nil, message("try again at Nov 30th, 2026 1:23 PM."), 49*time.Hour + 23*time.Minute},
		{"Claude's number", nil, message("Claude AI usage limit reached|1795867500"), 5 * time.Minute},

		{"no time", nil, message("Too many requests. Please try again later."), 0},
		{"a rate", nil, message("Limit of 3 requests per 1 minute reached. Reset your key at any time."), 0},
		{"a size", nil, message("Please retry with at most 10 m tokens"), 0},
		{"an address", nil, message("see https://example.com/retry/30 and wait"), 0},
		{"numbers beside", nil, `{"error":{"code":429,"limit":500,"used":501}}`, 0},
	} {
		if got := resetOf(tt.head, []byte(tt.body), tt.body, true, now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := resetOf(head("x-ratelimit-reset-requests", "6m0s"), nil, "", false, now); got != 0 {
		t.Errorf("an outage waits %v for the reset of a limit that is not reached", got)
	}
}

//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"anamnesis/anamnesis/probe/probetest"
	"anamnesis/anamnesis/tokens"
)

// hangingSpan is of the model that never answers about more than 2,000 tokens.
const hangingSpan = 77_777

// forgetfulServer speaks OpenAI's chat completions, streaming, for models
// whose attention span is known: forgetful-6000 answers the probe's questions
// by reading their text, and forgets with a probability that reaches 15% at
// 6,000 tokens. Texts over 40,000 tokens it refuses as too long. It asks for
// the key "test".
func forgetfulServer(t *testing.T, hangs ...chan<- struct{}) string {
	count, err := tokens.ForEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model    string
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) != 2 {
			http.Error(w, `{"error":{"message":"want a system and a user message"}}`, http.StatusBadRequest)
			return
		}
		span, err := strconv.Atoi(strings.TrimPrefix(req.Model, "forgetful-"))
		switch {
		case r.Header.Get("Authorization") != "Bearer test":
			http.Error(w, `{"error":{"message":"wrong key"}}`, http.StatusUnauthorized)
			return
		case err != nil:
			http.Error(w, `{"error":{"message":"no such model","code":"model_not_found"}}`, http.StatusNotFound)
			return
		case span == hangingSpan && len(req.Messages[1].Content) > 2_000*5:
			for _, c := range hangs {
				select {
				case c <- struct{}{}:
				default:
				}
			}
			<-r.Context().Done()
			return
		case len(req.Messages[1].Content) > 40_000*5:
			http.Error(w, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, http.StatusBadRequest)
			return
		}
		m := probetest.Model{EAS: float64(span), Count: count.Count}
		c, err := m.Complete(r.Context(), req.Messages[0].Content, req.Messages[1].Content)
		if err != nil {
			http.Error(w, `{"error":{"message":"`+err.Error()+`"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		text, err := json.Marshal(c.Text)
		if err != nil {
			t.Error(err)
		}
		for _, chunk := range []string{
			`{"choices":[{"index":0,"delta":{"role":"assistant","content":` + string(text) + `}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
				c.Usage.Prompt, c.Usage.Completion, c.Usage.Prompt+c.Usage.Completion),
			"[DONE]",
		} {
			fmt.Fprintf(w, "data: %s\n\n", chunk)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

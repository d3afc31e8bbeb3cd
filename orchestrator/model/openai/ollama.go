package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// What Detect looks for.
const (
	ollamaAddress = "http://127.0.0.1:11434"
	// DetectTimeout bounds the whole of Detect: without a server, users should not notice the
	// search.
	DetectTimeout = 500 * time.Millisecond
	maxListBytes  = 1 << 20
)

// Detect looks for an Ollama on this machine. It returns the base URL for Options and the
// names of its models, in Ollama's order (last changed first), possibly none. On any failure
// ok is false.
func Detect(ctx context.Context) (baseURL string, models []string, ok bool) {
	return detect(ctx, ollamaAddress)
}

func detect(ctx context.Context, address string) (string, []string, bool) {
	ctx, cancel := context.WithTimeout(ctx, DetectTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/tags", nil)
	if err != nil {
		return "", nil, false
	}
	// No proxy: only this machine is meant.
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", nil, false
	}
	defer resp.Body.Close()
	var list struct {
		Models *[]struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, maxListBytes)).Decode(&list)
	if err != nil || resp.StatusCode != http.StatusOK || list.Models == nil {
		return "", nil, false
	}
	var names []string
	for _, m := range *list.Models {
		if m.Name != "" {
			names = append(names, m.Name)
		}
	}
	return address + "/v1", names, true
}

package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// OllamaEnv is the variable by which Ollama's own programs know its address.
	OllamaEnv  = "OLLAMA_HOST"
	ollamaPort = "11434"
	// DetectTimeout bounds the whole of Detect: without a server, users should not notice the
	// search.
	DetectTimeout = 500 * time.Millisecond
	maxListBytes  = 1 << 20
)

// OllamaAddress returns the address of Ollama: the one of $OLLAMA_HOST, as HOST, HOST:PORT or a URL,
// or else the usual one.
func OllamaAddress(host string) string {
	scheme, rest, ok := strings.Cut(host, "://")
	if !ok {
		scheme, rest = "http", host
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Hostname() == "" {
		return "http://127.0.0.1:" + ollamaPort
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() { // where a server listens
		u.Host = "127.0.0.1:" + cmp.Or(u.Port(), ollamaPort)
	} else if u.Port() == "" {
		u.Host += ":" + ollamaPort
	}
	return u.Scheme + "://" + u.Host
}

// Detect looks for an Ollama. It returns the base URL for Options and the names of its models, in
// Ollama's order (last changed first), possibly none. On any failure ok is false.
func Detect(ctx context.Context, address string) (baseURL string, models []string, ok bool) {
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

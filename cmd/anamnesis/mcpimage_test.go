//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// seeingServer speaks OpenAI's chat completions: it asks for a picture by a tool,
// then answers. It keeps the requests.
func seeingServer(t *testing.T, tool string) (url string, requests func() []string) {
	var mu sync.Mutex
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		got = append(got, string(body))
		n := len(got)
		mu.Unlock()
		delta,
			finish := fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":%q,"arguments":"{}"}}]}`, tool), "tool_calls"
		if n > 1 {
			delta, finish = `{"content":"A logo."}`, "stop"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
		fmt.Fprintf(w,
			"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1", func() []string {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// TestMCPImage: an image of a real server reaches a model that takes images, and
// no other.
func TestMCPImage(t *testing.T) {
	home := mcpHome(t, map[string]any{"every": map[string]any{"command": mcpServer(t, "everything")}})
	for name, want := range map[string]bool{"gpt-4o": true, "blind-model": false} {
		url, requests := seeingServer(t, "mcp__every__get-tiny-image")
		out, err := program(t.Context(),
			[]string{"ANAMNESIS_HOME=" + home, "OPENAI_API_KEY=test", "OPENAI_BASE_URL=" + url},
			"run", "--dir", t.TempDir(), "--model", name, "--approval", "auto", "--tools-wait", "3m", "--task", name, "What is on the picture?")
		if err != nil || !strings.Contains(out, "A logo.") {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		var last struct {
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		sent := requests()
		if err := json.Unmarshal([]byte(sent[len(sent)-1]), &last); err != nil {
			t.Fatal(err)
		}
		m := last.Messages[len(last.Messages)-1]
		got := m.Role == "user" && strings.Contains(string(m.Content), `"url":"data:image/png;base64,iVBORw0KGgo`)
		if got != want {
			t.Errorf("%s was sent the image: %v, want %v; the last message: %s %.300s", name, got, want,
				m.Role, m.Content)
		}
		if !strings.Contains(sent[len(sent)-1], "[image 1: image/png, ") {
			t.Errorf("%s: the image is not named in the text", name)
		}
	}
}

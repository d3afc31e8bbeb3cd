//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// embedServer is an embedding endpoint of Ollama's form whose vectors are the
// counts of a text's letters. It refuses a model called "absent".
func embedServer(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Model == "absent" {
			w.WriteHeader(http.StatusNotFound)
			w.Write(
				[]byte(`{"error":{"message":"model \"absent\" not found, try pulling it first","type":"api_error"}}`))
			return
		}
		data := []map[string]any{}
		for i, text := range q.Input {
			v := make([]float32, 26)
			for _, b := range []byte(text) {
				if b >= 'a' && b <= 'z' {
					v[b-'a']++
				}
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		json.NewEncoder(w).Encode(map[string]any{"data": data})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

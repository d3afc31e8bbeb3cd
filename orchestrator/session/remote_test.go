package session

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/taskdir"
)

// TestLearn: what other homes told is read once. An object that is damaged, sealed with another key, of another name or
// of a newer program is passed over with one line, and the others are read.
func TestLearn(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	for name, tt := range map[string]struct {
		object, data, key string
		said              string
	}{
		"nothing else":        {},
		"damaged":             {object: "reviews/x", data: `{"v":1,`, said: "reviews/x: it is damaged"},
		"no version":          {object: "reviews/x", data: `{"name":"x"}`, said: "reviews/x: it is damaged"},
		"of another name":     {object: "reviews/x", data: `{"v":1,"name":"y"}`, said: "reviews/x: it is damaged, sealed, of another name"},
		"of a newer program":  {object: "reviews/x", data: `{"v":2,"name":{}}`, said: "or a newer program wrote it"},
		"of the repository":   {object: memory.SharedPrefix("/") + "x", data: "x", said: "/x: it is damaged"},
		"not sealed":          {object: "reviews/x", data: `{"v":1,"name":"x"}`, key: key, said: "reviews/x: the object does not belong to the key"},
		"of other repository": {object: "learned/other/x", data: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := &Service{Home: taskdir.Home{State: t.TempDir()}, o: Options{Getenv: func(name string) string {
				return map[string]string{remoteKeyEnv: tt.key}[name]
			}}}
			b, _, err := s.Bucket(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := memory.ShareReview(taskdir.Home{Share: b.Put, Shared: t.TempDir()}, "good"); err != nil {
				t.Fatal(err)
			}
			if tt.object != "" {
				path := filepath.Join(dir, tt.object)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(tt.data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			learned, err := s.Learn(t.Context(), b, "/")
			if (err != nil) != (tt.said != "") || err != nil && !strings.Contains(err.Error(), tt.said) {
				t.Errorf("said %v, want %q", err, tt.said)
			}
			read := filepath.Join(learned.Home.Shared, "reviews")
			if entries, err := os.ReadDir(read); err != nil || len(entries) != 1 || entries[0].Name() != "good" {
				t.Errorf("read %v, %v", entries, err)
			}
			if err := os.WriteFile(filepath.Join(read, "good"), []byte("as it was read"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _ = s.Learn(t.Context(), b, "/")
			if data, err := os.ReadFile(filepath.Join(read, "good")); err != nil || string(data) != "as it was read" {
				t.Errorf("it was read again: %s, %v", data, err)
			}
		})
	}
}

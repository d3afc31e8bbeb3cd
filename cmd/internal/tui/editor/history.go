//go:build unix

package editor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// maxHistory is how many entries a directory's history keeps.
const maxHistory = 500

// History holds the messages sent in a directory. Its file has one JSON string a line.
type History struct {
	path    string
	entries []string
	at      int    // of entries; len(entries): the draft
	draft   string // what was being typed when the user went back
}

// OpenHistory reads the history of a directory. If it cannot be read, it is empty.
func OpenHistory(state, dir string) *History {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	sum := sha256.Sum256([]byte(dir))
	h := &History{path: filepath.Join(state, "history", hex.EncodeToString(sum[:8])+".jsonl")}
	data, _ := os.ReadFile(h.path)
	for line := range strings.Lines(string(data)) {
		var text string
		if json.Unmarshal([]byte(line), &text) == nil && text != "" {
			h.entries = append(h.entries, text)
		}
	}
	h.entries = h.entries[max(0, len(h.entries)-maxHistory):]
	h.at = len(h.entries)
	return h
}

// Add appends an entry. If it cannot be written, it is kept for this session.
func (h *History) Add(text string) {
	if n := len(h.entries); text != "" && (n == 0 || h.entries[n-1] != text) {
		h.entries = append(h.entries, text)
		if data, err := json.Marshal(text); err == nil && os.MkdirAll(filepath.Dir(h.path), 0o700) == nil {
			if f, err := os.OpenFile(h.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
				_, _ = f.Write(append(data, '\n'))
				f.Close()
			}
		}
	}
	h.at, h.draft = len(h.entries), ""
}

// back returns the previous entry; ok is false at the first one.
func (h *History) back(now string) (string, bool) {
	if h.at == 0 {
		return now, false
	}
	if h.at == len(h.entries) {
		h.draft = now
	}
	h.at--
	return h.entries[h.at], true
}

// find returns the entry that contains a text and is before the n-th from the end, without regard to case, and its
// own number; n is unchanged if there is none.
func (h *History) find(text string, n int) (string, int) {
	for i := len(h.entries) - 1 - n; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.entries[i]), strings.ToLower(text)) {
			return h.entries[i], len(h.entries) - i
		}
	}
	return "", n
}

// forth returns the next entry; after the last one, the draft.
func (h *History) forth(now string) (string, bool) {
	if h.at == len(h.entries) {
		return now, false
	}
	if h.at++; h.at == len(h.entries) {
		return h.draft, true
	}
	return h.entries[h.at], true
}

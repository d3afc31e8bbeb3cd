package file

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestCount: lines are counted as an editor numbers them, and a cancelled call reads nothing.
func TestCount(t *testing.T) {
	for _, tt := range []struct {
		text   string
		total  int
		noEnd  bool
		binary bool
	}{
		{"", 0, false, false},
		{"\n", 1, false, false},
		{"a", 1, true, false},
		{"a\nb\n", 2, false, false},
		{"a\n\nb", 3, true, false},
		{"a\x00b\n", 0, false, true},
	} {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ended, end := context.WithCancel(t.Context())
		end()
		var p page
		if err := p.count(ended, f); !errors.Is(err, context.Canceled) {
			t.Errorf("%q: a cancelled count: %v", tt.text, err)
		}
		if at, err := f.Seek(0, io.SeekCurrent); at != 0 || err != nil {
			t.Errorf("%q: a cancelled count read %d bytes, %v", tt.text, at, err)
		}
		p = page{}
		if err := p.count(t.Context(), f); err != nil || p.total != tt.total || p.noEnd != tt.noEnd ||
			(p.binary != "") != tt.binary {
			t.Errorf("%q: %d lines, no end %v, binary %q, %v", tt.text, p.total, p.noEnd, p.binary, err)
		}
	}
}

package opstream

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
)

// findings verifies a stream and returns what was found, one line each.
func findings(t *testing.T, dir string) string {
	t.Helper()
	report, err := Verify(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range report.Findings {
		all = append(all, f.String())
	}
	return strings.Join(all, "\n")
}

// fiveRecords makes a stream of five records and closes it.
func fiveRecords(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	l := mustOpen(t, dir, &Options{SealAfter: -1})
	for range 5 {
		if _, err := l.Append(t.Context(), Entry{Kind: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.WriteSnapshot("1", nil, 4); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	return dir
}

// keepLines leaves the first lines of a stream's one segment, and a text behind
// them.
func keepLines(t *testing.T, dir string, n int, behind string) {
	t.Helper()
	path := segments.Path(dir, 1)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	if err := os.WriteFile(path, append(bytes.Join(lines[:n], nil), behind...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestVerifyLostEnd: an end that is lost at a line's boundary leaves no trace in
// the stream; a snapshot that stands for more lines is one.
func TestVerifyLostEnd(t *testing.T) {
	dir := fiveRecords(t)
	if got := findings(t, dir); got != "" {
		t.Errorf("a whole stream: %s", got)
	}
	keepLines(t, dir, 4, "")
	if got := findings(t, dir); got != "" {
		t.Errorf("all that the snapshot knows of: %s", got)
	}
	keepLines(t, dir, 3, "")
	if got := findings(t, dir); !strings.HasPrefix(got, "corrupt: ") ||
		!strings.Contains(got, "up to seq 4, which were durable, and the stream ends with 3") {
		t.Errorf("without its end: %q", got)
	}
}

// TestVerifyDeadWriter: a lock file names a process that is gone, and its id is
// in use again. The torn end it left is no write under way.
func TestVerifyDeadWriter(t *testing.T) {
	dir := fiveRecords(t)
	keepLines(t, dir, 5, `{"v":1,`)
	own := durable.ProcessStart(os.Getpid())
	if own == 0 {
		t.Log("this system does not tell when a process began")
	}
	for _, tt := range []struct {
		name  string
		start uint64
		want  string
	}{
		{"a writer", own, "notice: "},
		{"one of an older program", 0, "notice: "},
		{"another process with its id", own + 1, "torn: "},
	} {
		if own == 0 && tt.start != 0 {
			continue
		}
		content := fmt.Sprintf(`{"pid":%d,"start":%d,"since":"2026-01-02T03:04:05Z"}`, os.Getpid(), tt.start)
		if err := os.WriteFile(filepath.Join(dir, LockName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := findings(t, dir); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// TestOpenNowhere: a directory that cannot be made, though its parent seems to
// be there, is an error and no endless try.
func TestOpenNowhere(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"log", "a/b/log"} {
		if l, err := Open(filepath.Join(link, dir), nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: log %v, error %v, want ErrNotExist", dir, l, err)
		}
	}
}

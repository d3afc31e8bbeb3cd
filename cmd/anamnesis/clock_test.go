//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream"
)

// TestClockBackCat writes with a clock that goes back a day each time: `ops
// cat` prints the operations in the order in which they were written.
func TestClockBackCat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	log, err := opstream.Open(dir, &opstream.Options{Now: func() time.Time { now = now.AddDate(0, 0, -1); return now }})
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	const n = 20
	for i := range n {
		body := fmt.Sprintf(`{"n":%d}`, i)
		if _, err := log.Append(t.Context(), opstream.Entry{Kind: "k", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "%d %s k step 0 tok 0 %s\n", i+1, now.Format("2006-01-02T15:04:05.000000Z"), body)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := program(t.Context(), nil, "ops", "cat", "--dir", dir, "--kind", "k")
	if err != nil || out != want.String() {
		t.Errorf("ops cat: %v\n%s\nwant\n%s", err, out, want.String())
	}
	t.Logf("%d operations in order, each a day before the last", n)
}

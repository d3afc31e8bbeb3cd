package worldstate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/scan"
)

// TestFileLimit: a file over the limit is left out and listed, and no restore
// writes or removes it, on whichever side of the limit it is at the other end.
func TestFileLimit(t *testing.T) {
	o := &Options{FileLimitBytes: 10}
	b := newBench(t, o)
	small, large := "small", strings.Repeat("large ", 5)
	for name, text := range map[string]string{"grows": small, "shrinks": large, "new": "", "gone": large, "stays": large, "other": "1"} {
		if text != "" {
			b.write(name, text)
		}
	}
	first := b.save()
	if first.Complete || fmt.Sprint(first.Skipped) != fmt.Sprint([]Skip{{Path: "gone", Reason: scan.ReasonTooLarge + "10 bytes"}, {Path: "shrinks", Reason: scan.ReasonTooLarge + "10 bytes"}, {Path: "stays", Reason: scan.ReasonTooLarge + "10 bytes"}}) {
		t.Fatalf("%+v", first)
	}
	b.write("grows", large)
	b.write("shrinks", small)
	b.write("new", large)
	b.must(os.Remove(b.path("gone")))
	b.write("other", "2")
	second := b.save()
	holds := func(when string, want map[string]string) {
		t.Helper()
		for name, text := range want {
			if data, _ := os.ReadFile(b.path(name)); string(data) != text {
				t.Errorf("%s: %s holds %q, want %q", when, name, data, text)
			}
		}
	}
	res := b.jump(first.ID)
	want := map[string]string{"grows": large, "shrinks": small, "new": large, "stays": large, "gone": ""}
	holds("back", want)
	holds("back", map[string]string{"other": "1"})
	if len(res.Kept) < 2 || res.Exact {
		t.Errorf("%+v", res)
	}
	b.jump(second.ID)
	holds("forward", want)
	// Under another limit the same files are held, and the snapshots of before keep theirs.
	b.w.Close()
	b.open(&Options{FileLimitBytes: -1})
	third := b.save()
	if !third.Complete {
		t.Fatalf("%+v", third.Skipped)
	}
	b.jump(first.ID)
	holds("back without a limit", map[string]string{"grows": small, "shrinks": small, "new": "", "stays": large, "other": "1"})
	b.must(b.w.Sync())
	b.w.Close()
	b.open(o)
	if s := b.save(); s.Complete {
		t.Error("the limit is back, and nothing is left out")
	}
	b.jump(third.ID)
	holds("to what holds all", want)
}

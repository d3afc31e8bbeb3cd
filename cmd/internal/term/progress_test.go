//go:build unix

package term

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"anamnesis/worldstate"
)

// TestProgressLine: silent for short scans, seldom for long ones, gone at the
// end, and the next scan begins anew.
func TestProgressLine(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	p := &Progress{out: &out, now: func() time.Time { return now }}
	scan := func(files int, each time.Duration) string {
		out.Reset()
		for i := 1; i <= files; i++ {
			p.Scan(worldstate.Progress{Files: i, Bytes: int64(i) << 20, Known: 50})
			now = now.Add(each)
		}
		p.Scan(worldstate.Progress{Files: files, Done: true})
		return out.String()
	}
	if got := scan(30, 10*time.Millisecond); got != "" {
		t.Errorf("a short scan showed %q", got)
	}
	got := scan(100, 10*time.Millisecond)
	if !strings.HasPrefix(got, "\r\x1b[K[################....] 41 of about 50 files, 43.0 MB\r") ||
		!strings.Contains(got, "\x1b[K51 files, ") || !strings.HasSuffix(got, "files, 95.4 MB\r\x1b[K") {
		t.Errorf("a long scan showed %q", got)
	}
	if got := scan(30, 10*time.Millisecond); got != "" {
		t.Errorf("the next short scan showed %q", got)
	}
}

// TestProgressOfCards: a long import shows a bar, which goes away.
func TestProgressOfCards(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	p := &Progress{out: &out, now: func() time.Time { return now }}
	for i := 1; i <= 1000; i++ {
		p.Cards(i, 1000)
		now = now.Add(time.Millisecond)
	}
	want := "\r\x1b[K[########............] 401 of 1000 cards\r\x1b[K[##########..........] 501 of 1000 cards\r"
	if got := out.String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "cards\r\x1b[K") {
		t.Errorf("shown: %q", got)
	}
}

// TestPlainProgress: without a terminal a long scan says now and then how far it is,
// in lines that stay; a scan of some seconds says nothing.
func TestPlainProgress(t *testing.T) {
	var out strings.Builder
	now := time.Unix(1000, 0)
	p := &Progress{out: &out, now: func() time.Time { return now }, plain: true}
	for seconds, want := range map[int]int{9: 0, 39: 1, 75: 3} {
		out.Reset()
		for i := range seconds {
			p.Scan(worldstate.Progress{Files: i, Bytes: int64(i) << 30, Known: -1})
			now = now.Add(time.Second)
		}
		p.Scan(worldstate.Progress{Done: true})
		now = now.Add(time.Hour)
		if got := strings.Count(out.String(), "\n"); got != want ||
			want > 0 && !strings.HasPrefix(out.String(), "anamnesis: reading: 10 files, 10.7 GB so far\n") {
			t.Errorf("%d seconds: %d lines, want %d:\n%s", seconds, got, want, out.String())
		}
	}
}

// TestProgressFormatsWhatIsShown: a scan calls the line once for each file, and a text
// that is not shown is not formatted.
func TestProgressFormatsWhatIsShown(t *testing.T) {
	now := time.Unix(1000, 0)
	p := &Progress{out: io.Discard, now: func() time.Time { return now }}
	p.Scan(worldstate.Progress{Files: 1, Known: 50})
	if n := testing.AllocsPerRun(100, func() { p.Scan(worldstate.Progress{Files: 2, Bytes: 1 << 20, Known: 50}) }); n != 0 {
		t.Errorf("a call that shows nothing makes %v allocations", n)
	}
}

// TestWorking: what takes long and shows nothing else says each second how long; a scan within it has the line. Without
// a terminal few lines say so. What is quick says nothing.
func TestWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := func(plain, scans bool, d time.Duration) string {
			var out strings.Builder
			p := NewProgress(&out)
			p.plain = plain
			done := p.Working("packing")
			for begun := time.Now(); time.Since(begun) < d; time.Sleep(100 * time.Millisecond) {
				if scans {
					p.Scan(worldstate.Progress{Files: 1})
				}
			}
			done()
			return out.String()
		}
		if got := work(false, false, 3500*time.Millisecond); got != "\r\x1b[Kpacking … 2 s\r\x1b[Kpacking … 3 s\r\x1b[K" {
			t.Errorf("on a terminal: %q", got)
		}
		if got := work(false, true, 5*time.Second); strings.Contains(got, "packing") ||
			!strings.Contains(got, "1 files") {
			t.Errorf("with a scan: %q", got)
		}
		if got := work(true, false, 50*time.Second); got != "anamnesis: packing: 11 s so far\nanamnesis: packing: 41 s so far\n" {
			t.Errorf("without a terminal: %q", got)
		}
		for _, plain := range []bool{true, false} {
			if got := work(plain, false, 1900*time.Millisecond); got != "" {
				t.Errorf("quick work: %q", got)
			}
		}
	})
}

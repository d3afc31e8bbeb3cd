package shell_test

import (
	"runtime"
	"sync"
	"testing"
)

// 500 MB of output cost less than 64 MiB of memory.
func TestBashOutputMemory(t *testing.T) {
	const most = 64 << 20
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var peak uint64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapInuse)
				runtime.Gosched()
			}
		}
	})
	r := run(t, "head -c 250000000 /dev/zero; yes 'a line of output' | head -c 250000000", 300)
	close(stop)
	wg.Wait()
	if peak > before.HeapInuse+most {
		t.Errorf("heap grew by %d bytes, want at most %d", peak-before.HeapInuse, most)
	}
	if r.Exit == nil || *r.Exit != 0 || r.Cut < 499_000_000 {
		t.Errorf("exit %v, cut %d; the end of the text: %s", r.Exit, r.Cut, r.Text[max(0, len(r.Text)-200):])
	}
	if len(r.Text) > 60_000 || len(r.Stdout) > 60_000 {
		t.Errorf("text %d bytes, stdout %d bytes", len(r.Text), len(r.Stdout))
	}
}

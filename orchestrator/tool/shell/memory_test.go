package shell_test

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// heapBytes is the memory the heap holds, the dead not yet collected included.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// 500 MB of output cost less than 64 MiB of memory.
func TestBashOutputMemory(t *testing.T) {
	const most = 64 << 20
	runtime.GC()
	before, peak := heapBytes(), uint64(0)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		sample := time.NewTicker(5 * time.Millisecond)
		defer sample.Stop()
		for {
			select {
			case <-stop:
				return
			case <-sample.C:
				peak = max(peak, heapBytes())
			}
		}
	})
	r := run(t, "head -c 250000000 /dev/zero; yes 'a line of output' | head -c 250000000", 300)
	close(stop)
	wg.Wait()
	t.Logf("heap: %d bytes before, %d at most", before, peak)
	if peak == 0 || peak > before+most {
		t.Errorf("heap grew from %d to %d bytes, want at most %d more", before, peak, most)
	}
	if r.Exit == nil || *r.Exit != 0 || r.Cut < 499_000_000 {
		t.Errorf("exit %v, cut %d; the end of the text: %s", r.Exit, r.Cut, r.Text[max(0, len(r.Text)-200):])
	}
	if len(r.Text) > 60_000 || len(r.Stdout) > 60_000 {
		t.Errorf("text %d bytes, stdout %d bytes", len(r.Text), len(r.Stdout))
	}
}

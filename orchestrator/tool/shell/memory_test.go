package shell_test

import (
	"encoding/json"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/shell"
)

// heapBytes returns the bytes that were live at the last collection: what is not collected
// yet depends on the load of the machine.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// 500 MB of output cost less than 32 MiB of live memory.
func TestBashOutputMemory(t *testing.T) {
	const most = 32 << 20
	runtime.GC()
	before, peak := heapBytes(), uint64(0)
	stop := make(chan struct{})
	var kept int
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
	r := keeping(t, &kept, "head -c 250000000 /dev/zero; yes 'a line of output' | head -c 250000000")
	close(stop)
	wg.Wait()
	t.Logf("heap: %d bytes before, %d at most", before, peak)
	if peak == 0 || peak > before+most {
		t.Errorf("heap grew from %d to %d bytes, want at most %d more", before, peak, most)
	}
	if r.Exit == nil || *r.Exit != 0 || r.Cut < 499_000_000 {
		t.Errorf("exit %v, cut %d; the end of the text: %s", r.Exit, r.Cut, r.Text[max(0, len(r.Text)-200):])
	}
	if kept != shell.MaxKeptBytes {
		t.Errorf("%d bytes kept, want %d", kept, shell.MaxKeptBytes)
	}
	if len(r.Text) > 60_000 || len(r.Stdout) > 60_000 {
		t.Errorf("text %d bytes, stdout %d bytes", len(r.Text), len(r.Stdout))
	}
}

// keeping runs a command as a task does, which records what is cut.
func keeping(t *testing.T, kept *int, command string) tool.Result {
	t.Helper()
	args, err := json.Marshal(map[string]any{"command": command, "timeout": 300})
	if err != nil {
		t.Fatal(err)
	}
	var parts uint64
	env := &tool.Env{Call: "c1", Dir: t.TempDir(), Keep: func(_ int, _ int64, text string) (uint64, error) {
		*kept += len(text)
		parts++
		return parts, nil
	}}
	r, err := shell.Bash().Call(t.Context(), env, args)
	if err != nil {
		t.Fatalf("Bash %q: %v", command, err)
	}
	return r
}

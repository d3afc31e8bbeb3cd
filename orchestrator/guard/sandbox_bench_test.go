//go:build linux

package guard

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkTrue measures what it costs to run true: as it is, under a
// supervisor, and in the sandbox. The three take turns in one run; the bar is 8
// ms between the first and the last.
func BenchmarkTrue(b *testing.B) {
	dir := b.TempDir()
	box, err := NewSandbox(b.Context(), SandboxOptions{World: dir, Cache: b.TempDir(), Temp: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Log(box)
	run := func(s *Sandbox) {
		_, err := Run(b.Context(), Command{Path: "/bin/true", Args: []string{"true"}, Dir: dir, Env: os.Environ(),
			Timeout: time.Minute, Sandbox: s})
		if err != nil {
			b.Fatal(err)
		}
	}
	took := make([]time.Duration, 3)
	ways := []func(){
		func() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		},
		func() { run(nil) },
		func() { run(box) },
	}
	for b.Loop() {
		for i, way := range ways {
			begin := time.Now()
			way()
			took[i] += time.Since(begin)
		}
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(b.N) }
	b.ReportMetric(ms(took[0]), "plain-ms")
	b.ReportMetric(ms(took[1]), "supervised-ms")
	b.ReportMetric(ms(took[2]), "sandboxed-ms")
	b.ReportMetric(ms(took[2]-took[0]), "over-ms")
}

package search_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/search"
)

// goSource is the Go source tree as a world.
func goSource(b *testing.B) *tool.Env {
	b.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "src")
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { root.Close() })
	return &tool.Env{Root: root, Dir: dir}
}

// timed calls a tool and returns the time it took, and what it said.
func timed(b *testing.B, env *tool.Env, tl tool.Tool, args map[string]any) (time.Duration, string) {
	b.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	r, err := tl.Call(b.Context(), env, data)
	if err != nil || r.IsError {
		b.Fatal(err, r.Text)
	}
	return time.Since(begun), r.Text
}

// BenchmarkGrepBesideRipgrep searches the Go source tree without and with
// ripgrep in turns, and tells how much faster the second is:
//
//	go test ./orchestrator/tool/search -run '^$' -bench Ripgrep -benchtime 5x
func BenchmarkGrepBesideRipgrep(b *testing.B) {
	env, rg := goSource(b), needRipgrep(b)
	for name, args := range map[string]map[string]any{
		"text": {"pattern": "ErrUnexpectedEOF"}, "nowhere": {"pattern": "no such words anywhere"}, "case": {"pattern": "errunexpectedeof", "-i": true},
		"either": {"pattern": "ErrUnexpectedEOF|ErrShortWrite"}, "regexp": {"pattern": `\w+\.ErrUnexpectedEOF`}, "unknown": {"pattern": `^[A-Z]+\d+$`},
	} {
		b.Run(name, func(b *testing.B) { beside(b, env, rg, search.DefaultLimit, args) })
	}
}

// beside measures a search without and with ripgrep, used from a number of
// files on, in turns.
func beside(b *testing.B, env *tool.Env, rg string, from int, args map[string]any) {
	var own, with time.Duration
	for b.Loop() {
		took, want := timed(b, env, search.GrepBeside(nil, "", 1, false), args)
		own += took
		took, got := timed(b, env, search.GrepBeside(nil, rg, from, false), args)
		with += took
		if got != want {
			b.Fatalf("with ripgrep\n%s\nwithout\n%s", got, want)
		}
	}
	b.ReportMetric(float64(own.Milliseconds())/float64(b.N), "own-ms/op")
	b.ReportMetric(float64(with.Milliseconds())/float64(b.N), "rg-ms/op")
	b.ReportMetric(float64(own)/float64(with), "own/rg")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRipgrepFrom searches worlds of more and more files of 8 KB without
// and with ripgrep in turns; ripgrepFrom is where it begins to gain.
func BenchmarkRipgrepFrom(b *testing.B) {
	rg := needRipgrep(b)
	for _, n := range []int{100, 250, 500, 1000, 2000, 4000} {
		var files []string
		for i := range n {
			files = append(files, fmt.Sprintf("d%02d/f%04d.go|%s", i%50, i, strings.Repeat("\treturn fmt.Errorf(\"read: %w\", io.ErrUnexpectedEOF)\n", 150)))
		}
		env := world(b, files...)
		for name, args := range map[string]map[string]any{"text": {"pattern": "no such words"}, "case": {"pattern": "no such words", "-i": true}} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) { beside(b, env, rg, 1, args) })
		}
	}
}

// BenchmarkGlob finds files by name, beside the time that `rg --files` takes to
// name them all, without their times.
func BenchmarkGlob(b *testing.B) {
	env, rg := goSource(b), needRipgrep(b)
	var own, listed time.Duration
	for b.Loop() {
		took, _ := timed(b, env, search.Glob(nil), map[string]any{"pattern": "**/*_test.go"})
		own += took
		begun := time.Now()
		c := exec.Command(rg, "--no-config", "--files", "--hidden", "--null")
		c.Dir = env.Dir
		if _, err := c.Output(); err != nil {
			b.Fatal(err)
		}
		listed += time.Since(begun)
	}
	b.ReportMetric(float64(own.Microseconds())/1000/float64(b.N), "own-ms/op")
	b.ReportMetric(float64(listed.Microseconds())/1000/float64(b.N), "rg-files-ms/op")
	b.ReportMetric(float64(own)/float64(listed), "own/rg")
	b.ReportMetric(0, "ns/op")
}

package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var hookFiles = flag.Int("files", 15_000, "how many files the directory of Hooks has")

// BenchmarkHooks plays the hooks of a Claude Code session in a directory made for it, through the wrapper that
// 'anamnesis install' writes, and reports how long the agent waits for one, in milliseconds, and the memory of the
// recorder. Beside each call it starts the same wrapper around a program that does nothing.
func BenchmarkHooks(b *testing.B) {
	program := build(b)
	b.Run("running", func(b *testing.B) { benchmarkHooks(b, program, *hookFiles/20, false) })
	b.Run("dirs=65536", func(b *testing.B) { benchmarkHooks(b, program, 65_536, false) }) // each hook scans them all
	b.Run("cold", func(b *testing.B) { benchmarkHooks(b, program, *hookFiles/20, true) }) // each starts a recorder
}

// recording is a directory with a session that is recorded.
type recording struct {
	*testing.B
	program, home, world, idle string
}

func (r *recording) start(cmd *exec.Cmd) {
	r.Helper()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(r.home), "ANAMNESIS_HOME=" + r.home}
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("%s: %v: %s", cmd, err, out)
	}
}

func (r *recording) run(args ...string) {
	r.Helper()
	r.start(exec.Command(r.program, args...))
}

// hook runs a hook as the agent does, and returns how long the agent waits.
func (r *recording) hook(wrapper, event string, more map[string]any) time.Duration {
	r.Helper()
	e := map[string]any{"session_id": "bench", "cwd": r.world, "hook_event_name": event}
	for k, v := range more {
		e[k] = v
	}
	data, err := json.Marshal(e)
	if err != nil {
		r.Fatal(err)
	}
	cmd := exec.Command("sh", wrapper, "claude-code")
	cmd.Stdin = bytes.NewReader(data)
	begin := time.Now()
	r.start(cmd)
	return time.Since(begin)
}

func benchmarkHooks(b *testing.B, program string, dirs int, cold bool) {
	top, dirs := b.TempDir(), max(dirs, 1)
	r := &recording{b, program, filepath.Join(top, "home"), filepath.Join(top, "project"),
		filepath.Join(top, "idle.sh")}
	dir := func(i int) string { return filepath.Join(r.world, fmt.Sprintf("d%03d/d%03d", i%dirs/256, i%dirs)) }
	err := os.WriteFile(r.idle, []byte("reply=$(exec 2>/dev/null; exec /bin/true hook \"$1\")\nexit 0\n"), 0o600)
	for i := range dirs {
		err = errors.Join(err, os.MkdirAll(dir(i), 0o700))
	}
	for i := range *hookFiles {
		text := bytes.Repeat(fmt.Appendf(nil, "line of file %d\n", i), 60)
		err = errors.Join(err, os.WriteFile(filepath.Join(dir(i), fmt.Sprint("f", i)), text, 0o600))
	}
	if err != nil {
		b.Fatal(err)
	}
	wrapper := filepath.Join(r.home, "beside", "hook.sh")
	r.run("install", "claude-code", "--yes")
	defer r.run("pause") // ends the recorder
	r.hook(wrapper, "SessionStart", nil)
	// Until the first snapshot is saved every hook waits up to its limit.
	saved := func() {
		for r.hook(wrapper, "Notification", nil) >= time.Second {
		}
	}
	saved()
	r.hook(wrapper, "UserPromptSubmit", map[string]any{"prompt": "Measure."})
	var waits, idle []time.Duration
	for i := 0; b.Loop(); i++ {
		if cold {
			r.run("pause")
			r.run("pause", "--end")
		}
		call := map[string]any{"tool_name": "Bash", "tool_use_id": fmt.Sprint("call", i),
			"tool_input": map[string]string{"command": fmt.Sprint("edit ", i)}}
		waits = append(waits, r.hook(wrapper, "PreToolUse", call))
		if err := os.WriteFile(filepath.Join(dir(i*7), "edited"), fmt.Appendf(nil, "call %d\n", i), 0o600); err != nil {
			b.Fatal(err)
		}
		call["tool_response"] = map[string]any{"stdout": "ok", "stderr": ""}
		if after := r.hook(wrapper, "PostToolUse", call); !cold {
			waits = append(waits, after)
		}
		idle = append(idle, r.hook(r.idle, "PreToolUse", nil))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(waits, 0.5), "p50-ms")
	b.ReportMetric(quantile(waits, 0.99), "p99-ms")
	b.ReportMetric(quantile(idle, 0.5), "idle-p50-ms")
	b.ReportMetric(quantile(waits, 0.5)/quantile(idle, 0.5), "hook/idle")
	b.ReportMetric(r.memory(), "recorder-MiB")
	saved() // a recorder that lags behind does not end in time
}

// memory is the resident size of the recorder in MiB; 0 where none has a task open.
func (r *recording) memory() float64 {
	files, _ := filepath.Glob(filepath.Join(r.home, "live", "*"))
	for _, file := range files {
		var live struct {
			PID    int    `json:"pid"`
			Socket string `json:"socket"`
		}
		data, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(data, &live) != nil || live.Socket == "" {
			continue
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", live.PID))
		_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
		var kib float64
		if _, err := fmt.Sscanf(string(rest), "%f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	return 0
}

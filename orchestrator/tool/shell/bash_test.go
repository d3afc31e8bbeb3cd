package shell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/shell"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain()
	os.Exit(m.Run())
}

// run runs one command in a fresh directory and fails the test on a program
// error.
func run(t *testing.T, command string, timeout int) tool.Result {
	t.Helper()
	r, err := call(t.Context(), t.TempDir(), command, timeout)
	if err != nil {
		t.Fatalf("Bash %q: %v", command, err)
	}
	return r
}

func call(ctx context.Context, dir string, command string, timeout int) (tool.Result, error) {
	args, _ := json.Marshal(map[string]any{"command": command, "timeout": timeout})
	env := &tool.Env{Call: "c1", Dir: dir}
	return shell.Bash().Call(ctx, env, args)
}

func TestBashResult(t *testing.T) {
	tests := []struct {
		name, command string
		exit          int
		stdout        string
		stderr        string
		text          string // contained in the text
	}{
		{"output", "echo hi", 0, "hi\n", "", "hi\n[exit 0]"},
		{"no output", "true", 0, "", "", "[no output]\n[exit 0]"},
		{"exit code", "exit 7", 7, "", "", "[exit 7]"},
		{"apart", "echo out; echo err >&2", 0, "out\n", "err\n", "[exit 0]"},
		{"signal", "kill -TERM $$", 143, "", "", "[exit 143]"},
		{"unknown command", "no-such-command-here", 127, "", "", "not found"},
		{"syntax error", "if", 2, "", "", "syntax error"},
		{"stdin is empty", "cat; echo end", 0, "end\n", "", "end"},
		{"no newline", "printf abc", 0, "abc", "", "abc\n[exit 0]"},
		{"not UTF-8", `printf 'a\377b'`, 0, "a\uFFFDb", "", "a\uFFFDb"},
		{"process substitution is not lost", `echo hi > >(cat; echo done)`, 0, "hi\ndone\n", "", "[exit 0]"},
		{"nor is one that computes", `true > >(for ((i = 0; i < 100000; i++)); do :; done; echo done)`, 0, "done\n", "", "[exit 0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, tt.command, 20)
			if r.Exit == nil || *r.Exit != tt.exit {
				t.Fatalf("exit = %v, want %d; text:\n%s", r.Exit, tt.exit, r.Text)
			}
			if r.IsError != (tt.exit != 0) {
				t.Errorf("IsError = %v with exit %d", r.IsError, tt.exit)
			}
			if r.Stdout != tt.stdout {
				t.Errorf("stdout = %q, want %q", r.Stdout, tt.stdout)
			}
			if tt.stderr != "" && r.Stderr != tt.stderr {
				t.Errorf("stderr = %q, want %q", r.Stderr, tt.stderr)
			}
			if !strings.Contains(r.Text, tt.text) {
				t.Errorf("text = %q, want it to contain %q", r.Text, tt.text)
			}
		})
	}
}

func TestBashTimeout(t *testing.T) {
	for _, command := range []string{
		"cat /dev/zero >/dev/null",
		"trap '' TERM INT HUP; while :; do :; done",
		"mkfifo f; cat f",
		"kill -STOP $PPID; read < <(cat /dev/zero)",
	} {
		t.Run(command, func(t *testing.T) {
			r := run(t, command, 1) // none of these commands ends by itself
			if !strings.Contains(r.Text, "timed out after 1s") || !r.IsError || r.Exit == nil || *r.Exit < 128 {
				t.Errorf("result = %+v", r)
			}
		})
	}
}

// TestBashTimeoutSaysWhat: the result names what was at work, such as a compiler of a first build.
func TestBashTimeoutSaysWhat(t *testing.T) {
	for command, want := range map[string]string{
		"(exec -a 'compile -p net/http' tail -f /dev/null) & wait":    "[running at that time: compile -p net/http -f /dev/null (for ",
		"for i in 1 2 3 4 5 6 7; do tail -f /dev/null & done; wait":   "; and 2 more]",
		"exec -a first bash -c 'exec -a second tail -f /dev/null; :'": "[running at that time: second -f /dev/null (for ",
	} {
		if r := run(t, command, 1); !strings.Contains(r.Text, want) {
			t.Errorf("%s: %s", command, r.Text)
		}
	}
}

func TestBashInterrupted(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mkfifo", dir+"/begun").CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v %s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		os.ReadFile(dir + "/begun") // returns when the command has opened and closed it
		cancel()
	}()
	r, err := call(ctx, dir, "echo before; echo > begun; cat /dev/zero > /dev/null", 60)
	if err == nil || ctx.Err() == nil {
		t.Fatalf("err = %v, want the context's", err)
	}
	if r.Stdout != "before\n" || !strings.Contains(r.Text, "interrupted") {
		t.Errorf("result = %+v, want the output so far", r)
	}
}

func TestBashSaysWhatItEnded(t *testing.T) {
	r := run(t, "sleep 987 & echo started", 20)
	if !strings.Contains(r.Text, "1 process still ran in the background when the command ended and was ended") ||
		!strings.Contains(r.Text, "sleep 987") {
		t.Errorf("text = %q", r.Text)
	}
}

func TestBashKilledSupervisor(t *testing.T) {
	r := run(t, "sleep 986 & kill -9 $PPID; sleep 985", 20)
	if !r.IsError || !strings.Contains(r.Text, "supervisor was killed") {
		t.Errorf("text = %q", r.Text)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatalf("no processes found: %v", err)
	}
	for _, path := range lines {
		if line, _ := os.ReadFile(path); string(line) == "sleep\x00985\x00" || string(line) == "sleep\x00986\x00" {
			t.Errorf("%s survived: %q", path, line)
		}
	}
}

func TestBashEnvironment(t *testing.T) {
	for name, value := range map[string]string{"OPENAI_API_KEY": "sk-1", "GITHUB_TOKEN": "x", "KEEP": "yes", "PAGER": "less"} {
		t.Setenv(name, value)
	}
	r, err := call(t.Context(), t.TempDir(), "env", 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"KEEP=yes\n", "PAGER=cat\n", "ANAMNESIS_RUN="} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("environment lacks %q:\n%s", want, r.Stdout)
		}
	}
	for _, gone := range []string{"sk-1", "GITHUB_TOKEN", "less", "ANAMNESIS_SUPERVISOR"} {
		if strings.Contains(r.Stdout, gone) {
			t.Errorf("environment has %q:\n%s", gone, r.Stdout)
		}
	}
}

// The command must not begin before Started has returned, and not at all when
// it fails.
func TestBashStarted(t *testing.T) {
	dir := t.TempDir()
	args := json.RawMessage(`{"command":"touch began"}`)
	refuse := fmt.Errorf("disk full")
	for _, want := range []error{refuse, nil} {
		var got op.ToolStarted
		env := &tool.Env{Call: "c9", Dir: dir, Started: func(s op.ToolStarted) error {
			got = s
			if _, err := os.Stat(dir + "/began"); err == nil {
				t.Error("the command began before Started returned")
			}
			return want
		}}
		_, err := shell.Bash().Call(t.Context(), env, args)
		if (err != nil) != (want != nil) {
			t.Errorf("Call with Started = %v: %v", want, err)
		}
		if got.Call != "c9" || got.PID == 0 || got.StartTime == 0 || got.BootID == "" {
			t.Errorf("ToolStarted = %+v", got)
		}
		if _, err := os.Stat(dir + "/began"); (err == nil) != (want == nil) {
			t.Errorf("after Started = %v the file's state is %v", want, err)
		}
	}
}

func TestBashRefusals(t *testing.T) {
	for command, want := range map[string]string{
		strings.Repeat("x", 200_000): "at most",
		"echo \x00":                  "NUL",
	} {
		r := run(t, command, 5)
		if !r.IsError || !strings.Contains(r.Text, want) || r.Exit != nil {
			t.Errorf("result = %.200q, want an error with %q", r.Text, want)
		}
	}
}

// A world that is gone is something the model must be told, not the end of the
// task.
func TestBashWithoutDirectory(t *testing.T) {
	r, err := call(t.Context(), "/no/such/world", "true", 5)
	if err != nil || !r.IsError || !strings.Contains(r.Text, "/no/such/world") || r.Exit != nil {
		t.Errorf("result = %+v, %v", r, err)
	}
}

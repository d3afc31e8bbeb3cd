//go:build unix

package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
)

var nightly = flag.Bool("nightly", false, "run what .ci/nightly runs")

// agentsPrograms returns the folder with the agents' real programs, which .ci/run
// installs at the versions that the readers and hooks were made for.
func agentsPrograms(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ANAMNESIS_AGENTS")
	switch {
	case testing.Short():
		t.Skip("NOT RUN: real agents; .ci/run runs them by themselves")
	case dir == "" && os.Getenv("ANAMNESIS_CI") != "":
		t.Fatal("ANAMNESIS_AGENTS is not set: CI must install the agents from npm")
	case dir == "":
		t.Skip("SKIPPED: ANAMNESIS_AGENTS is not set; .ci/run installs the agents from npm and runs this")
	}
	return dir
}

// player is one agent: how it is configured and started, and how its model calls tools.
type player struct {
	agent   sessions.Agent
	program string
	config  func(url string) map[string]string // files below its home
	env     func(url string) []string
	args    []string // the prompt comes last
	acp     []string // its program for editors
	bash    func(command string) call
	read    func(path string) call
	edit    func(path, old, new string) call
	jump    func(args object) call
	steps   []string // the tools of its steps, as they are recorded
}

func named(name string, keys ...string) func(values ...string) call {
	return func(values ...string) call {
		args := object{}
		for i, k := range keys {
			args[k] = values[i]
		}
		return call{name: name, args: args}
	}
}

var (
	usualSteps = []string{"Bash", "ReadFile", "StrReplaceFile", "Bash", "ReadFile", "StrReplaceFile", "Bash", "answer"}
	shellSteps = []string{"Bash", "Bash", "StrReplaceFile", "Bash", "Bash", "StrReplaceFile", "Bash", "answer"}
)

func players() []player {
	one := func(f func(...string) call) func(string) call { return func(a string) call { return f(a) } }
	three := func(f func(...string) call) func(a, b, c string) call {
		return func(a, b, c string) call { return f(a, b, c) }
	}
	tool := func(name string) func(object) call {
		return func(args object) call { return call{name: name, args: args} }
	}
	shell := one(named("exec_command", "cmd"))
	return []player{{
		agent: sessions.Claude, program: "claude", acp: []string{"claude-agent-acp"},
		config: func(string) map[string]string {
			return map[string]string{
				".claude/settings.json": "{\"permissions\": {\"allow\": [\"Bash\", \"Edit\", \"Read\"], \"defaultMode\": \"default\"}}\n",
			}
		},
		env: func(url string) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=sk-ant-mock", "ENABLE_TOOL_SEARCH=true",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1",
			}
		},
		args: []string{"--allowedTools", "Bash Edit Write Read mcp__anamnesis", "--model", "claude-sonnet-4-5", "-p"},
		bash: func(command string) call {
			return call{name: "Bash", args: object{"command": command, "description": "run"}}
		},
		read: one(named("Read", "file_path")), edit: three(named("Edit", "file_path", "old_string", "new_string")),
		jump: tool("mcp__anamnesis__jump_to_step"), steps: usualSteps,
	}, {
		agent: sessions.Codex, program: "codex", acp: []string{"codex-acp"},
		config: func(url string) map[string]string {
			return map[string]string{".codex/config.toml": "model = \"m1\"\nmodel_provider = \"mock\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n" +
				"[model_providers.mock]\nname = \"mock\"\nbase_url = \"" + url + "/v1\"\nwire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\n"}
		},
		env:  func(string) []string { return []string{"MOCK_KEY=k"} },
		args: []string{"exec", "--json", "--dangerously-bypass-hook-trust", "--skip-git-repo-check"},
		bash: shell, read: func(path string) call { return shell("cat " + path) },
		edit: func(path, old, new string) call {
			return shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: " + path + "\n@@\n-" + old + "\n+" +
				new + "\n*** End Patch\nEOF")
		},
		jump: func(args object) call { return call{"jump_to_step", "mcp__anamnesis", args} }, steps: shellSteps,
	}, {
		agent: sessions.OpenCode, program: "opencode", acp: []string{"opencode", "acp"},
		config: func(url string) map[string]string {
			return map[string]string{".config/opencode/opencode.json": `{"$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled", "permission": {"*": "allow"}, "model": "mock/m1", "small_model": "mock/m1",
  "enabled_providers": ["mock"],
  "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": {"baseURL": "` + url + `/v1", "apiKey": "k"},
    "models": {"m1": {"name": "m1", "tool_call": true, "limit": {"context": 100000, "output": 8000}}}}}}`}
		},
		env: func(string) []string {
			return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
				"OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
		},
		args: []string{"run", "-m", "mock/m1", "--format", "json"},
		bash: func(command string) call {
			return call{name: "bash", args: object{"command": command, "description": "run"}}
		},
		read: one(named("read", "filePath")), edit: three(named("edit", "filePath", "oldString", "newString")),
		jump: tool("anamnesis_jump_to_step"), steps: usualSteps,
	}, {
		agent: sessions.Gemini, program: "gemini", acp: []string{"gemini", "--acp", "--skip-trust"},
		config: func(string) map[string]string {
			return map[string]string{
				".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": false}, "privacy": {"usageStatisticsEnabled": false}}`,
			}
		},
		env:  func(url string) []string { return []string{"GEMINI_API_KEY=mock", "GOOGLE_GEMINI_BASE_URL=" + url} },
		args: []string{"--skip-trust", "--approval-mode", "yolo", "-o", "stream-json", "-m", "gemini-2.5-pro", "-p"},
		bash: func(command string) call {
			return call{name: "run_shell_command", args: object{"command": command, "description": "run"}}
		},
		read: one(named("read_file", "file_path")),
		edit: func(path, old, new string) call {
			return call{
				name: "replace",
				args: object{"file_path": path, "instruction": "change it", "old_string": old, "new_string": new},
			}
		},
		jump: tool("mcp_anamnesis_jump_to_step"), steps: usualSteps,
	}, {
		agent: sessions.Kimi, program: "kimi", acp: []string{"kimi", "acp"},
		config: func(url string) map[string]string {
			return map[string]string{".kimi-code/config.toml": "default_model = \"m1\"\ntelemetry = false\n[providers.mock]\ntype = \"openai\"\nbase_url = \"" + url + "/v1\"\napi_key = \"k\"\n" +
				"[models.m1]\nprovider = \"mock\"\nmodel = \"m1\"\nmax_context_size = 100000\n"}
		},
		env:  func(string) []string { return []string{"KIMI_DISABLE_TELEMETRY=1", "KIMI_CODE_NO_AUTO_UPDATE=1"} },
		args: []string{"--output-format", "stream-json", "-p"},
		bash: one(named("Bash", "command")), read: one(named("Read", "path")),
		edit: three(named("Edit", "path", "old_string", "new_string")),
		jump: tool("mcp__anamnesis__jump_to_step"), steps: usualSteps,
	}}
}

// stage is one user's home with an agent in it, and this program.
type stage struct {
	*testing.T
	p                        player
	programs, bin            string
	root, home, state, world string
	out                      string // what the agent printed last
}

// newStage makes a home with the agent's configuration.
func newStage(t *testing.T, p player, programs, bin, state, url string) *stage {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		T: t, p: p, programs: programs, bin: bin, root: root, home: filepath.Join(root, "home"), state: state,
		world: filepath.Join(root, "project"),
	}
	for name, text := range p.config(url) {
		put(t, filepath.Join(s.home, filepath.FromSlash(name)), text)
	}
	// opencode installs a package beside its configuration, and plugins wait for that: it is to fail at once.
	put(t, filepath.Join(s.home, ".npmrc"), "registry=http://127.0.0.1:1/\nfetch-retries=0\n")
	return s
}

// install installs this program for the agent, and takes it out again in the end.
func (s *stage) install(flags ...string) {
	t, p := s.T, s.p
	before := s.files()
	s.anamnesis(append([]string{"install", "--all", "--yes"}, flags...)...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s printed: %s", p.agent, s.out)
			return
		}
		s.anamnesis("uninstall", string(p.agent), "--yes")
		after := s.files()
		for name, text := range before {
			// Codex notes trusted directories in its configuration
			if p.agent != sessions.Codex && after[name] != text {
				t.Errorf("%s after uninstall: %q, was %q", name, after[name], text)
			}
		}
	})
}

// files reads the agent's configuration as it was written by the test.
func (s *stage) files() map[string]string {
	files := map[string]string{}
	for name := range s.p.config("") {
		files[name] = get(s.T, filepath.Join(s.home, filepath.FromSlash(name)))
	}
	return files
}

// project makes the directory in which the agent works: a check that fails.
func (s *stage) project() {
	s.Helper()
	if err := os.RemoveAll(s.world); err != nil {
		s.Fatal(err)
	}
	put(s.T, filepath.Join(s.world, "check.sh"),
		"grep -qx right answer.txt && cat lib/data.txt && exit\necho \"check.sh:1: AssertionError: want right\"\nexit 1\n")
	put(s.T, filepath.Join(s.world, "answer.txt"), "start\n")
	put(s.T, filepath.Join(s.world, "lib", "data.txt"), "data\n")
	put(s.T, filepath.Join(s.world, "notes.txt"), "notes\n")
	s.run(s.world, nil, "git", "init", "-q")
}

// run runs a program to its end, with nothing of the caller's environment but the path.
func (s *stage) run(dir string, env []string, name string, args ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), 3*time.Minute) // also while cleaning up
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	// Codex uses no helper programs where its home lies below the folder for temporary files.
	temp := filepath.Join(s.root, "tmp")
	if err := os.MkdirAll(temp, 0o700); err != nil {
		s.Fatal(err)
	}
	cmd.Dir, cmd.Env = dir, append([]string{
		"HOME=" + s.home, "PATH=" + s.programs + ":" + os.Getenv("PATH"), "TERM=dumb", "TMPDIR=" + temp,
		"ANAMNESIS_HOME=" + s.state,
	}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		s.Fatalf("%s %q: %v\n%s", name, args, err, out.String())
	}
	return out.String()
}

func (s *stage) anamnesis(args ...string) string {
	s.Helper()
	return s.run(s.root, nil, s.bin, args...)
}

func (s *stage) json(v any, args ...string) {
	s.Helper()
	if err := json.Unmarshal([]byte(s.anamnesis(append(args, "--json")...)), v); err != nil {
		s.Fatalf("anamnesis %q: %v", args, err)
	}
}

// play has the agent answer a prompt, with its model playing a script.
func (s *stage) play(url, prompt string) {
	s.Helper()
	s.out = s.run(s.world, s.p.env(url), filepath.Join(s.programs, s.p.program),
		append(slices.Clone(s.p.args), prompt)...)
}

// task returns the one task that was recorded of the agent.
func (s *stage) task() string {
	s.Helper()
	var tasks []struct{ ID, Agent string }
	s.json(&tasks, "tasks", "--all")
	tasks = slices.DeleteFunc(tasks, func(t struct{ ID, Agent string }) bool { return t.Agent != string(s.p.agent) })
	if len(tasks) != 1 {
		s.Fatalf("%d tasks of %s were recorded; %s", len(tasks), s.p.agent,
			get(s.T, filepath.Join(s.state, "beside", "errors.log")))
	}
	return tasks[0].ID
}

// steps returns the tools of a task's steps.
func (s *stage) steps(task string) []string {
	s.Helper()
	var line struct {
		Rows []struct {
			Kind, Text string
			Step       int
		}
	}
	s.json(&line, "timeline", task)
	var tools []string
	for _, r := range line.Rows {
		if r.Kind == "step" && r.Step > 0 {
			name, _, _ := strings.Cut(r.Text, "(")
			tools = append(tools, strings.Fields(name)[0])
		}
	}
	return tools
}

// script is the story that every agent plays: a failing check, a wrong edit, a
// directory deleted by the shell, an edit of the user's, a jump, and the right edit.
func (s *stage) script() []reply {
	answer := filepath.Join(s.world, "answer.txt")
	script := []reply{
		{text: "I look at the check.", calls: []call{s.p.bash("sh check.sh")}},
		{text: "Read the answer.", calls: []call{s.p.read(answer)}},
		{text: "Change it.", calls: []call{s.p.edit(answer, "start", "wrong")}},
		{text: "Clean up.", calls: []call{s.p.bash("rm -r lib; sh check.sh")}},
		{text: "That was wrong.", calls: []call{s.p.jump(object{"step": 2, "reason": "the cleaning deleted what the check needs"})}, before: func() {
			s.recorded(4)
			put(s.T, filepath.Join(s.world, "notes.txt"), "the user's\n")
		}},
		{text: "Read it again.", calls: []call{s.p.read(answer)}},
		{text: "Now the right one.", calls: []call{s.p.edit(answer, "start", "right")}},
		{text: "Check.", calls: []call{s.p.bash("sh check.sh")}},
		{text: "The check passes."},
	}
	// Kimi Code does not wait for its hooks after a call, an agent not for an editor: a model takes its time.
	for i := range script {
		if n := i - i/5; script[i].before == nil && n > 0 && (s.p.agent == sessions.Kimi || s.p.agent == beside.ACP) {
			script[i].before = func() { s.recorded(n) } // the jump is no step
		}
	}
	return script
}

// recorded waits until a number of steps were recorded.
func (s *stage) recorded(n int) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if steps := s.steps(s.task()); len(steps) >= n {
			return
		}
	}
	s.Errorf("%d steps were not recorded in time", n)
}

// built builds this program, unless ANAMNESIS_BIN names it.
func built(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("ANAMNESIS_BIN"); path != "" {
		return path
	}
	bin := filepath.Join(t.TempDir(), "anamnesis")
	if out, err := exec.Command("go", "build", "-o", bin, "anamnesis/cmd/anamnesis").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// TestEditor has acpx, an editor without a screen, work with each agent through the
// proxy, with nothing installed: the steps are recorded, the agent jumps by the MCP server
// that its session was given, and a jump of the user's returns what the steps changed.
func TestEditor(t *testing.T) {
	programs := agentsPrograms(t)
	if !*nightly {
		t.Skip("NOT RUN: .ci/nightly runs it, or -nightly")
	}
	bin := built(t)
	t.Run("anamnesis", func(t *testing.T) { ownInEditor(t, programs, bin) })
	for _, p := range players() {
		t.Run(string(p.agent), func(t *testing.T) {
			m := newModel(t, nil)
			s := newStage(t, p, programs, bin, filepath.Join(t.TempDir(), "state"), m.URL)
			s.project()
			s.p.agent = beside.ACP
			m.script = s.script()
			want, files := usualSteps,
				map[string]string{"answer.txt": "right\n", "lib/data.txt": "data\n", "notes.txt": "the user's\n"}
			// in an editor it has its model review such a call, which the script does not play
			if p.agent == sessions.Codex {
				m.script, want, files = append(m.script[:4],
					reply{text: "It does not work."}), append(slices.Clone(usualSteps[:4]), "answer"), nil
			}
			command := bin + " acp proxy -- " + filepath.Join(programs, p.acp[0]) + " " + strings.Join(p.acp[1:], " ")
			s.out = s.run(s.world, p.env(m.URL), filepath.Join(programs, "acpx"), "--agent", command, "--cwd", s.world,
				"--approve-all", "--format", "json", "exec", "Make 'sh check.sh' pass.")
			task := s.task()
			if got := s.steps(task); !slices.Equal(got, want) {
				t.Errorf("steps %q, want %q", got, want)
			}
			for name, want := range files {
				if text := get(t, filepath.Join(s.world, name)); text != want {
					t.Errorf("%s holds %q, want %q", name, text, want)
				}
			}
			put(t, filepath.Join(s.world, "notes.txt"), "the user's\n")
			s.anamnesis("jump", task, "2", "--reason", "the cleaning deleted what the check needs")
			for name, want := range map[string]string{"answer.txt": "start\n", "lib/data.txt": "data\n", "notes.txt": "the user's\n"} {
				if text := get(t, filepath.Join(s.world, name)); text != want {
					t.Errorf("%s holds %q, want %q", name, text, want)
				}
			}
			if t.Failed() {
				t.Logf("acpx printed: %.6000s", s.out)
			}
		})
	}
}

// ownInEditor has acpx work with our own agent: it writes a file, the user jumps at
// the terminal, and the session is resumed in another process, which reads of the jump.
func ownInEditor(t *testing.T, programs, bin string) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		T: t, programs: programs, bin: bin, root: root, home: filepath.Join(root, "home"),
		state: filepath.Join(root, "state"), world: filepath.Join(root, "project"),
	}
	put(t, filepath.Join(s.world, "start.txt"), "start\n")
	play := filepath.Join(root, "play.yaml")
	put(t, play, `name: editor
turns:
  - {reply: I write it., calls: [{name: WriteFile, arguments: {path: made.txt, content: made}}]}
  - {reply: It is written.}
  - {expect: [{on: all-joined, contains: it was not asked for}], reply: I see.}
`)
	// acpx keeps the agent for a second after a prompt. A prompt that comes just as that ends is refused and reaches no
	// agent: it is given again.
	const again = `until "$@" >acpx.out 2>&1; do grep -q "Queue owner is shutting down" acpx.out || { cat acpx.out; exit 1; }; done; cat acpx.out`
	acpx := func(words ...string) string {
		common := []string{
			"-c", again, "sh", filepath.Join(programs, "acpx"), "--agent", bin + " acp --model script:" + play,
			"--cwd", s.world, "--approve-all", "--ttl", "1",
		}
		return s.run(root, nil, "sh", append(common, words...)...)
	}
	acpx("sessions", "new")
	if out := acpx("Write it."); !strings.Contains(out, "It is written.") ||
		get(t, filepath.Join(s.world, "made.txt")) != "made" {
		t.Errorf("acpx shows %s", out)
	}
	var tasks []struct{ ID string }
	s.json(&tasks, "tasks", "--all")
	if len(tasks) != 1 {
		t.Fatalf("the tasks are %v", tasks)
	}
	s.anamnesis("jump", tasks[0].ID, "0", "--reason", "it was not asked for")
	if exists(filepath.Join(s.world, "made.txt")) {
		t.Error("the jump left made.txt")
	}
	if out := acpx("And now?"); !strings.Contains(out, "I see.") {
		t.Errorf("after the jump acpx shows %s", out)
	}
}

// TestAgents plays one story with each agent's real program, offline, its model played
// by a script. What a real model makes of what it is told is not claimed.
func TestAgents(t *testing.T) {
	programs := agentsPrograms(t)
	bin := built(t)
	all := players()
	for i, p := range all {
		t.Run(string(p.agent), func(t *testing.T) {
			m := newModel(t, nil)
			s := newStage(t, p, programs, bin, filepath.Join(t.TempDir(), "state"), m.URL)
			s.install()
			s.project()
			table := "version: 1\nrows:\n"
			for _, pattern := range []string{"*", "gemini-2.5-pro"} { // which has a row of its own
				table += fmt.Sprintf("  - {pattern: %q, window: 100000, eas: 40, encoding: o200k_base, confidence: low, source: \"a span so small that a pass compacts the steps that are left\", updated: 2026-11-28, by: test}\n", pattern)
			}
			if err := os.WriteFile(filepath.Join(s.state, "eas.yaml"), []byte(table), 0o600); err != nil {
				t.Fatal(err)
			}
			m.script = s.script()
			s.play(m.URL, "Make 'sh check.sh' pass.")
			if len(m.requests) != len(m.script) {
				t.Fatalf("the model was asked %d times, want %d", len(m.requests), len(m.script))
			}
			task := s.task()
			if got := s.steps(task); !slices.Equal(got, p.steps) {
				t.Errorf("steps %q, want %q", got, p.steps)
			}
			for name, want := range map[string]string{"answer.txt": "right\n", "lib/data.txt": "data\n", "notes.txt": "the user's\n"} {
				if text := get(t, filepath.Join(s.world, name)); text != want {
					t.Errorf("%s holds %q, want %q", name, text, want)
				}
			}
			if strings.Count(m.requests[0], "Return the files of the directory to the end of a step") != 1 {
				t.Error("the first request does not hold the tools of the MCP server") // but a name to search for
			}
			if week := s.anamnesis("doctor"); !strings.Contains(week, string(p.agent)+": ") ||
				!strings.Contains(week, "this week: 1 session recorded, its model last called an Anamnesis tool on ") {
				t.Errorf("doctor says %s", week)
			}
			if told := "lib/data.txt"; strings.Contains(m.requests[4], told) || !strings.Contains(m.requests[5], told) {
				t.Errorf("the request after the jump does not tell what came back: %.2000s", m.requests[5])
			}
			if block := "[ANAMNESIS_BLOCK "; strings.Contains(m.requests[4], block) ||
				!strings.Contains(m.requests[5], block) {
				t.Errorf("the request after the jump does not hold the block of its pass: %.2000s", m.requests[5])
			}
			if cut := strings.Contains(m.requests[5], "Clean up."); cut == (p.agent == sessions.OpenCode) {
				t.Errorf("after the jump a step that was left is in the context: %v", cut)
			}
			s.imports(len(p.steps))
			s.reaches(all[(i+1)%len(all)])
		})
	}
}

// TestAgentsInTurn: the five agents' real programs work in one repository, one after the other. From the third on each
// model is told with its first request what runs the tests there and what is not installed, as the calls of the
// earlier agents showed it, and nothing else.
func TestAgentsInTurn(t *testing.T) {
	programs := agentsPrograms(t)
	bin, state, world := built(t), filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "project")
	put(t, filepath.Join(world, "bin", "test"), "#!/bin/sh\necho Ran 2 tests in 0.1s\n")
	if err := os.Chmod(filepath.Join(world, "bin", "test"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, p := range players() {
		m := newModel(t, nil)
		s := newStage(t, p, programs, bin, state, m.URL)
		s.world = world
		s.install()
		s.run(world, nil, "git", "init", "-q")
		after := func(n int) func() {
			if p.agent == sessions.Kimi { // does not wait for its hooks after a call
				return func() { s.recorded(n) }
			}
			return nil
		}
		m.script = []reply{{text: "I run the tests.", calls: []call{p.bash("busted spec")}},
			{text: "Otherwise.", calls: []call{p.bash("./bin/test core")}, before: after(1)}, {text: "They pass.", before: after(2)}}
		s.play(m.URL, "Run the tests.")
		s.recorded(3)
		const head = "Earlier tasks in this repository (n of the tasks that tried):"
		request := strings.ReplaceAll(m.requests[0], `\n`, "\n")
		_, told, found := strings.Cut(request, head)
		want := fmt.Sprintf(
			"\nTests ran with: `./bin/test LABEL` (%d of %d).\nNot installed: `busted` (%d of %d).", i, i, i, i)
		if i < 2 && strings.Contains(request, "bin/test") ||
			i >= 2 && (!strings.HasPrefix(told, want) || strings.Count(request, head) != 1) {
			t.Errorf("%s, after %d other agents, is told %v: %.300q", p.agent, i, found, told)
		} else if rest := strings.TrimPrefix(told, want); i >= 2 && !strings.ContainsAny(rest[:2], `"<`+"\n") {
			t.Errorf("%s is told more: %.300q", p.agent, rest)
		}
	}
}

// TestAllowed: with the rules of --allow-reads a tool that only reads is called where Claude Code would
// otherwise ask, and nobody is there to answer; a jump is not. Gemini CLI goes on asking, Codex never does.
func TestAllowed(t *testing.T) {
	programs := agentsPrograms(t)
	if !*nightly {
		t.Skip("NOT RUN: .ci/nightly runs it, or -nightly")
	}
	bin := built(t)
	ask := map[sessions.Agent][]string{ // opencode asks for nothing, and Kimi Code not without a terminal
		sessions.Claude: {"--model", "claude-sonnet-4-5", "-p"},
		sessions.Codex:  {"exec", "--json", "--dangerously-bypass-hook-trust", "--skip-git-repo-check"},
		sessions.Gemini: {"--skip-trust", "--approval-mode", "default", "-o", "stream-json", "-m",
			"gemini-2.5-pro", "-p"},
	}
	for _, p := range players() {
		for _, flags := range [][]string{nil, {"--allow-reads"}} {
			if ask[p.agent] == nil {
				continue
			}
			t.Run(fmt.Sprint(p.agent, flags), func(t *testing.T) {
				m := newModel(t, nil)
				s := newStage(t, p, programs, bin, filepath.Join(t.TempDir(), "state"), m.URL)
				s.p.args = ask[p.agent]
				s.install(flags...)
				s.project()
				look := p.jump(object{})
				look.name = strings.Replace(look.name, "jump_to_step", "timeline", 1)
				m.script = []reply{{text: "Where am I?", calls: []call{look}},
					{text: "Back.", calls: []call{p.jump(object{"step": 0, "reason": "x"})}}, {text: "Done."}}
				s.play(m.URL, "Look.")
				all := strings.Join(m.requests, "\n")
				if got, want := strings.Contains(all, "ops · at step 0"), flags != nil && p.agent == sessions.Claude ||
					p.agent == sessions.Codex; got != want {
					t.Errorf("its model sees the timeline: %v, want %v", got, want)
				}
				if got, want := strings.Contains(all, "not jumped: step 0"), p.agent == sessions.Codex; got != want {
					t.Errorf("its model jumps: %v, want %v", got, want)
				}
			})
		}
	}
}

// TestFaults: whatever becomes of this program, or of its state folder, after it was installed, each
// agent's real program continues, and its model reads nothing of it.
func TestFaults(t *testing.T) {
	programs := agentsPrograms(t)
	if !*nightly {
		t.Skip("NOT RUN: .ci/nightly runs it, or -nightly")
	}
	bin := built(t)
	const noState = "without the state folder"
	faults := maps.Clone(faults)
	faults[noState] = "" // nor the program
	for _, p := range players() {
		for name, fault := range faults {
			t.Run(string(p.agent)+"/"+name, func(t *testing.T) {
				m := newModel(t,
					[]reply{{text: "I write it.", calls: []call{p.bash("echo ran >ran.txt")}}, {text: "Done."}})
				s := newStage(t, p, programs, filepath.Join(t.TempDir(), "anamnesis"),
					filepath.Join(t.TempDir(), "state"), m.URL)
				if err := os.Link(bin, s.bin); err != nil {
					t.Fatal(err)
				}
				s.install()
				s.project()
				broken(t, s.bin, fault)
				if name == noState {
					if err := os.RemoveAll(s.state); err != nil {
						t.Fatal(err)
					}
				}
				t.Cleanup(func() { // before it is uninstalled
					if err := errors.Join(os.RemoveAll(s.bin), os.Link(bin, s.bin)); err != nil {
						t.Error(err)
					}
				})
				begun := time.Now()
				s.play(m.URL, "Write ran.txt.")
				t.Logf("took %v", time.Since(begun).Round(time.Second))
				if get(t, filepath.Join(s.world, "ran.txt")) != "ran\n" || len(m.requests) != 2 {
					t.Errorf("the model was asked %d times; %s", len(m.requests), s.out)
				}
				for _, r := range m.requests {
					if strings.Contains(r, "goroutine") || strings.Contains(r, "unknown command") {
						t.Errorf("the model reads %s", r)
					}
				}
			})
		}
	}
}

// TestContinue: the commands that 'jump --continue' prints make a copy of a real session of
// Claude Code without the steps that were left, in which its model reads of the jump.
func TestContinue(t *testing.T) {
	programs := agentsPrograms(t)
	if !*nightly {
		t.Skip("NOT RUN: .ci/nightly runs it, or -nightly")
	}
	m := newModel(t, nil)
	s := newStage(t, players()[0], programs, built(t), filepath.Join(t.TempDir(), "state"), m.URL)
	s.install()
	s.project()
	m.script = append(s.script()[:4], reply{text: "It does not work."}, reply{text: "I will change the answer."},
		reply{text: "I go on."})
	s.play(m.URL, "Make 'sh check.sh' pass.")
	const reason = "the cleaning deleted what the check needs"
	said := s.anamnesis("jump", s.task(), "2", "--reason", reason, "--continue")
	commands := strings.TrimSpace(said[strings.Index(said, "cd '"):])
	s.run(s.root, s.p.env(m.URL), "sh", "-c", commands+" -p 'And now?'") // without a terminal it is to print, too
	if get(t, filepath.Join(s.world, "lib", "data.txt")) != "data\n" || len(m.requests) != 7 {
		t.Fatalf("the model was asked %d times; %s", len(m.requests), commands)
	}
	for i, want := range []string{reason, "I will change the answer."} {
		if r := m.requests[5+i]; !strings.Contains(r, want) || !strings.Contains(r, "Read the answer.") ||
			strings.Contains(r, "Clean up.") {
			t.Errorf("request %d of the copy: %.3000s", i, r)
		}
	}
}

// TestPlan: in the plan mode of opencode its model may only ask what a jump would do. In that of
// Claude Code, and without permission to write in Codex, the agent itself refuses the tool.
func TestPlan(t *testing.T) {
	programs := agentsPrograms(t)
	if !*nightly {
		t.Skip("NOT RUN: .ci/nightly runs it, or -nightly")
	}
	bin := built(t)
	mode := map[sessions.Agent][]string{
		sessions.Claude: {"--permission-mode", "plan"}, sessions.Codex: {"exec", "--sandbox", "read-only"},
		sessions.OpenCode: {"run", "--agent", "plan"},
	}
	refusal := map[sessions.Agent]string{
		sessions.Claude: "Cannot call mcp__anamnesis__jump_to_step while in plan mode",
		sessions.Codex:  "MCP tool call requires approval", sessions.OpenCode: "only dry_run is possible",
	}
	for _, p := range players() {
		if mode[p.agent] == nil {
			continue
		}
		t.Run(string(p.agent), func(t *testing.T) {
			m := newModel(t, nil)
			s := newStage(t, p, programs, bin, filepath.Join(t.TempDir(), "state"), m.URL)
			s.p.args = append(slices.Clone(mode[p.agent]),
				slices.DeleteFunc(slices.Clone(p.args), func(a string) bool { return a == mode[p.agent][0] })...)
			s.install()
			s.project()
			m.script = []reply{
				{text: "Read the answer.", calls: []call{p.read(filepath.Join(s.world, "answer.txt"))}},
				{text: "What would it do?", calls: []call{p.jump(object{"step": 0, "reason": "it is wrong", "dry_run": true})}},
				{text: "Do it.", calls: []call{p.jump(object{"step": 0, "reason": "it is wrong"})}},
				{text: "It is not possible."},
			}
			s.play(m.URL, "Plan.")
			if len(m.requests) != 4 || !strings.Contains(m.requests[3], refusal[p.agent]) {
				t.Fatalf("the model was asked %d times:\n%s", len(m.requests), strings.Join(m.requests, "\n"))
			}
			if dry := strings.Contains(m.requests[2], "would jump now: step 1 to step 0"); dry != (p.agent == sessions.OpenCode) {
				t.Errorf("a dry run was possible: %v; the model reads\n%s", dry, m.requests[2])
			}
		})
	}
}

// imports reads the agent's own session file into a new home: it has the steps that
// were recorded, and the call of the jump.
func (s *stage) imports(steps int) {
	s.Helper()
	recorded := s.task()
	args := []string{"import", string(s.p.agent), "--all", "--yes"}
	if s.p.agent == sessions.OpenCode { // keeps its sessions in a database
		var list []struct{ ID string }
		out := s.run(s.world, s.p.env(""), filepath.Join(s.programs, s.p.program), "session", "list",
			"--format", "json")
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
			s.Fatalf("sessions of opencode: %v, %s", err, out)
		}
		file := filepath.Join(s.root, "export.json")
		put(s.T, file, s.run(s.world, nil, "sh", "-c",
			"exec "+shell.Quote(filepath.Join(s.programs, s.p.program))+" export "+list[0].ID+" 2>/dev/null"))
		args = []string{"import", file, "--yes"}
	}
	other := *s
	other.state = filepath.Join(s.root, "imported")
	var report struct {
		Sessions []struct {
			Task  string
			Steps int
		}
	}
	other.jsonOf(&report, args)
	if len(report.Sessions) != 1 || report.Sessions[0].Steps != steps+1 || report.Sessions[0].Task != recorded {
		s.Errorf("imported %+v; want %d steps of %s", report.Sessions, steps+1, recorded)
	}
}

// jsonOf is json where notes on standard error are left out.
func (s *stage) jsonOf(v any, args []string) {
	s.Helper()
	out := s.run(s.root, nil, "sh",
		append([]string{"-c", `exec "$@" 2>/dev/null`, "sh", s.bin}, append(args, "--json")...)...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		s.Fatalf("anamnesis %q: %v: %s", args, err, out)
	}
}

// reaches approves the pair that the agent's session recorded, a failed command and its success, as a
// card, and has another agent asked about the same error. It is shown the card with its prompt, or with the call
// after that where the prompt's hook was not in time: no call fails.
func (s *stage) reaches(next player) {
	s.Helper()
	var kb struct{ Repairs []struct{ ID string } }
	s.json(&kb, "kb", "repairs")
	cards := kb.Repairs
	if len(cards) == 0 {
		s.Fatal("no pair was recorded")
	}
	for _, c := range cards {
		s.anamnesis("kb", "approve", c.ID)
	}
	m := newModel(s.T, nil)
	other := newStage(s.T, next, s.programs, s.bin, s.state, m.URL)
	other.install()
	other.project()
	m.script = []reply{
		{text: "I look at the answer.", calls: []call{next.read(filepath.Join(other.world, "answer.txt"))}},
		{text: "It is wrong."},
	}
	other.play(m.URL, "Make 'sh check.sh' pass: AssertionError: want right")
	if all := strings.Join(m.requests, "\n"); !slices.ContainsFunc(cards, func(c struct{ ID string }) bool { return strings.Contains(all, c.ID) }) {
		s.Errorf("%s was not shown a card of %s:\n%.3000s", next.agent, s.p.agent, all)
	}
	other.task() // it was recorded
}

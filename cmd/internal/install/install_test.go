//go:build unix

package install

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/cmd/internal/mcpserver"
	"anamnesis/orchestrator/sessions"
)

var update = flag.Bool("update", false, "write the golden file anew")

func places(t *testing.T) *Places {
	home := t.TempDir()
	return &Places{
		Home: home, State: filepath.Join(home, "it's", "state"), Program: "/no/such/anamnesis",
		Getenv: func(string) string { return "" },
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		return "absent"
	}
	return string(data)
}

func (p *Places) do(t *testing.T, agent sessions.Agent) {
	t.Helper()
	files, err := p.Plan(agent)
	if err == nil {
		err = p.Install(agent, files)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *Places) undo(t *testing.T, agent sessions.Agent) {
	t.Helper()
	files, err := p.PlanRemoval(agent)
	if err == nil {
		err = p.Uninstall(agent, files)
	}
	if err != nil {
		t.Fatal(err)
	}
}

const settings = `{
  // mine
  "model": "m",
  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine.sh"}]}]}
}
`

// TestBackAgain: install and uninstall leave every file as it was; where something
// else changed a file meanwhile, exactly our entries go.
func TestBackAgain(t *testing.T) {
	for _, agent := range []sessions.Agent{sessions.Claude, sessions.Codex} {
		for _, before := range []string{"absent", settings} {
			p := places(t)
			path := filepath.Join(p.Home, ".claude", "settings.json")
			other := filepath.Join(p.Home, ".claude.json")
			if agent == sessions.Codex {
				path, other = filepath.Join(p.Home, ".codex", "hooks.json"), filepath.Join(p.Home, ".codex",
					"config.toml")
			}
			if before != "absent" {
				put(t, path, before)
			}
			p.do(t, agent)
			if text := get(t, path); !strings.Contains(text, "hook.sh") || longest(text) > 250 ||
				before != "absent" && (!strings.Contains(text, "// mine") || !strings.Contains(text, "mine.sh")) {
				t.Errorf("%s installed: %s", agent, text)
			}
			if text := get(t, other); !strings.Contains(text, "serve") {
				t.Errorf("%s has no server: %s", agent, text)
			}
			if again, err := p.Plan(agent); err != nil || len(again) != 0 {
				t.Errorf("%s is planned again: %+v, %v", agent, again, err)
			}
			p.undo(t, agent)
			if get(t, path) != before || get(t, other) != "absent" || get(t, p.wrapper()) != "absent" {
				t.Errorf("%s after uninstall: %s / %s", agent, get(t, path), get(t, other))
			}
			p.do(t, agent)
			text := get(t, path)
			put(t, path, strings.Replace(text, "{", "{\n  \"later\": 1,", 1))
			put(t, other, get(t, other)+"\n")
			p.undo(t, agent)
			if text = get(t, path); strings.Contains(text, "hook.sh") || !strings.Contains(text, `"later": 1`) ||
				(before != "absent") != strings.Contains(text, "mine.sh") ||
				strings.Contains(text, "hooks") != (before != "absent") {
				t.Errorf("%s after uninstall with changes: %s", agent, text)
			}
			if text = get(t, other); strings.Contains(text, "serve") || strings.Contains(text, "mcpServers") {
				t.Errorf("%s keeps the server: %s", agent, text)
			}
		}
	}
}

// TestMoved: if this program was moved, another installation names its new path, and
// uninstall still leaves every file as it was. Another program of the entry stays.
func TestMoved(t *testing.T) {
	for _, agent := range sessions.Agents() {
		p := places(t)
		put(t, filepath.Join(p.dir(agent), "mine"), "")
		p.State = filepath.Join(t.TempDir(), "state") // keeps folders
		before := tree(t, p.Home)
		p.do(t, agent)
		p.Program = "/moved/anamnesis"
		p.do(t, agent)
		for _, part := range p.parts(agent) {
			if text := get(t, part.path); strings.Contains(text, "/no/such/anamnesis") {
				t.Errorf("%s: %s", part.path, text)
			}
		}
		if files, err := p.Plan(agent); err != nil || len(files) > 0 {
			t.Errorf("%s: a third time: %v, %v", agent, files, err)
		}
		p.undo(t, agent)
		if after := tree(t, p.Home); after != before {
			t.Errorf("%s: after uninstall:\n%s\nwant\n%s", agent, after, before)
		}
	}
	if programMissing("/bin/sh") || programMissing("anamnesis") {
		t.Error("a program that is there was replaced")
	}
}

// longest is the length of the longest line.
func longest(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, len(line))
	}
	return n
}

// tree lists every path below a directory, with the text of each file.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(path + "\n")
		if !d.IsDir() {
			b.WriteString(get(t, path) + "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestEveryAgent: what is installed for each agent names the hooks, the server and the
// skill. Uninstalling all leaves the home as it was, path by path, in any order, also
// where a file of our own was changed.
func TestEveryAgent(t *testing.T) {
	const kimi = "default_model = \"m\" # mine\n\n[[hooks]]\nevent = \"Stop\"\ncommand = \"mine.sh\"\n"
	for _, configured := range []bool{false, true} {
		p := places(t)
		p.Data = filepath.Join(p.Home, "data")
		if err := os.MkdirAll(filepath.Join(p.State, "beside"), 0o700); err != nil {
			t.Fatal(err)
		}
		if configured {
			put(t, filepath.Join(p.Home, ".claude", "settings.json"), settings)
			put(t, filepath.Join(p.Home, ".claude", "skills", "mine", "SKILL.md"), "mine")
			put(t, filepath.Join(p.Home, ".config", "opencode", "opencode.jsonc"), "{ // mine\n  \"mcp\": {}\n}\n")
			put(t, filepath.Join(p.Home, ".gemini", "settings.json"), "{}")
			put(t, filepath.Join(p.Home, ".kimi-code", "config.toml"), kimi)
		}
		before := tree(t, p.Home)
		for _, agent := range sessions.Agents() {
			if p.Found(agent) != (configured && agent != sessions.Codex) {
				t.Errorf("%s is found: %v", agent, p.Found(agent))
			}
			command := []string{"/opt/node", "/opt/" + programs[agent] + "-acp"}
			if p.Serves(command) {
				t.Errorf("%s has the MCP server before it is installed", agent)
			}
			p.do(t, agent)
			if !p.Serves(command) || p.Serves([]string{"emacs"}) {
				t.Errorf("%s does not have the MCP server", agent)
			}
		}
		opencode := filepath.Join(p.Home, ".config", "opencode", "opencode.json")
		if configured {
			opencode += "c"
		}
		in := func(path string) string { return filepath.Join(p.Home, filepath.FromSlash(path)) }
		for path, wants := range map[string][]string{
			in(".config/opencode/plugins/anamnesis.js"): {jsonText(p.wrapper(), "")},
			opencode: {`"serve"`, `"environment"`},
			in(".gemini/extensions/anamnesis/gemini-extension.json"): {`"serve"`, `"env"`},
			in(".gemini/extensions/anamnesis/hooks/hooks.json"): {p.Command(sessions.Gemini)[:4],
				`"BeforeTool"`, "2000"},
			in(".gemini/extensions/anamnesis/skills/anamnesis/SKILL.md"): {string(skill)},
			in(".kimi-code/config.toml"): {jsonText(p.Command(sessions.Kimi), ""),
				`"UserPromptSubmit"`},
			in(".kimi-code/mcp.json"):               {`"serve"`, p.Data},
			in(".claude/skills/anamnesis/SKILL.md"): {string(skill)},
			in(".codex/skills/anamnesis/SKILL.md"):  {string(skill)},
			in(".codex/config.toml"):                {"env = {ANAMNESIS_HOME ="},
		} {
			for _, want := range wants {
				if !strings.Contains(get(t, path), want) {
					t.Errorf("%s lacks %s: %s", path, want, get(t, path))
				}
			}
		}
		for _, agent := range sessions.Agents() {
			if again, err := p.Plan(agent); err != nil || len(again) != 0 {
				t.Errorf("%s is planned again: %+v, %v", agent, again, err)
			}
		}
		put(t, in(".config/opencode/plugins/anamnesis.js"), "changed")
		plans := map[sessions.Agent][]File{} // all are made before the first is carried out, as --all does
		for _, agent := range sessions.Agents() {
			var err error
			if plans[agent], err = p.PlanRemoval(agent); err != nil {
				t.Fatal(err)
			}
		}
		for _, agent := range sessions.Agents() {
			if err := p.Uninstall(agent, plans[agent]); err != nil {
				t.Fatal(err)
			}
		}
		if after := tree(t, p.Home); after != before {
			t.Errorf("after uninstall:\n%s\nwas\n%s", after, before)
		}
	}
}

// TestAllow: the read-only tools are allowed where that was agreed to, stay so in a later installation, and
// go with an uninstallation. A rule of the user's stays.
func TestAllow(t *testing.T) {
	for agent, file := range map[sessions.Agent]string{sessions.Claude: ".claude/settings.json", sessions.Kimi: "", sessions.Gemini: "",
		sessions.Codex: "", sessions.OpenCode: ""} {
		p := places(t)
		p.State = filepath.Join(t.TempDir(), "state")
		put(t, filepath.Join(p.dir(agent), "mine"), "")
		own := `{"permissions": {"allow": ["mcp__anamnesis__recall"]}}`
		if agent == sessions.Claude {
			put(t, filepath.Join(p.Home, file), own)
		}
		before := tree(t, p.Home)
		p.do(t, agent)
		if all := tree(t, p.Home); strings.Contains(all, "__diff") {
			t.Errorf("%s: allowed unasked: %s", agent, all)
		}
		p.Allow = true
		p.do(t, agent)
		p.Allow = false
		p.Program = "/moved/anamnesis"
		p.do(t, agent)
		if file != "" {
			text := get(t, filepath.Join(p.Home, file))
			for _, tool := range readOnlyTools {
				if strings.Count(text, tool+`"`) != 1 {
					t.Errorf("%s: %s is not allowed once: %s", agent, tool, text)
				}
			}
			if strings.Contains(text, "jump_to_step") || p.Offers(agent) {
				t.Errorf("%s: %s", agent, text)
			}
		}
		p.undo(t, agent)
		if after := tree(t, p.Home); after != before {
			t.Errorf("%s: after uninstall:\n%s\nwant\n%s", agent, after, before)
		}
	}
}

// TestReadOnlyTools: those that may be allowed are those that the MCP server says change nothing.
func TestReadOnlyTools(t *testing.T) {
	server, client := mcp.NewInMemoryTransports()
	if _, err := mcpserver.New(nil, "", os.Getenv).Offer("1").Connect(t.Context(), server, nil); err != nil {
		t.Fatal(err)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "c"}, nil).Connect(t.Context(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tool := range all.Tools {
		if tool.Annotations.ReadOnlyHint {
			got = append(got, tool.Name)
		}
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(readOnlyTools))) {
		t.Errorf("%q, want %q", readOnlyTools, got)
	}
}

// TestKimiInline: hooks in a form that tables cannot be added to are refused.
func TestKimiInline(t *testing.T) {
	p := places(t)
	put(t, filepath.Join(p.Home, ".kimi-code", "config.toml"), "hooks = []\n")
	if _, err := p.Plan(sessions.Kimi); !errors.Is(err, ErrConfig) {
		t.Errorf("%v", err)
	}
}

// TestSkill: the skill is what an agent reads of when to go back. Its first lines are
// what every agent has in its context all the time.
func TestSkill(t *testing.T) {
	head, body, ok := strings.Cut(strings.TrimPrefix(string(skill), "---\n"), "\n---\n")
	name, about, _ := strings.Cut(head, "\n")
	if !ok || name != "name: anamnesis" || !strings.HasPrefix(about, "description: ") ||
		strings.Contains(about, "\n") || len(about) > 300 {
		t.Errorf("head: %s", head)
	}
	if lines := strings.Count(body, "\n"); lines > 50 {
		t.Errorf("%d lines", lines)
	}
	for _, tool := range []string{"timeline", "jump_to_step", "checkpoint", "recall", "remember"} {
		if !strings.Contains(body, "`"+tool) {
			t.Errorf("%s is not named", tool)
		}
	}
}

// TestInstalled compares what is installed for each agent with testdata/installed.txtar:
// what agents read of this program changes only on purpose. -update writes it anew.
func TestInstalled(t *testing.T) {
	p := places(t)
	p.State = filepath.Join(p.Home, "state")
	const golden = "testdata/installed.txtar"
	var b strings.Builder
	seen := map[string]string{}
	for _, agent := range sessions.Agents() {
		files, err := p.Plan(agent)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text := strings.ReplaceAll(f.After, p.Home, "$HOME")
			name := string(agent) + strings.TrimPrefix(f.Path, p.Home)
			if as := seen[text]; as != "" {
				text = "as " + as + "\n"
			} else {
				seen[text] = name
			}
			fmt.Fprintf(&b, "-- %s --\n%s", name, text)
		}
	}
	if *update {
		put(t, golden, b.String())
	}
	if got, want := b.String(), get(t, golden); got != want {
		t.Errorf("what is installed differs from %s; if that is meant, write it anew with -update:\n%s", golden, got)
	}
}

// TestBadConfig: a file that cannot be read is left as it is, and so are the others.
func TestBadConfig(t *testing.T) {
	p := places(t)
	path := filepath.Join(p.Home, ".claude", "settings.json")
	put(t, path, `{"hooks": [`)
	if _, err := p.Plan(sessions.Claude); err == nil || !strings.Contains(err.Error(), "settings.json") {
		t.Errorf("%v", err)
	}
	if get(t, path) != `{"hooks": [` || get(t, p.wrapper()) != "absent" {
		t.Error("something was written")
	}
}

// faults are what becomes of the program, as scripts in its place; one that is empty is
// deleted.
var faults = map[string]string{
	"deleted":            "",
	"another program":    "#!/bin/sh\necho 'usage: anamnesis [A]: {\"a\"}'\n",
	"panics":             "#!/bin/sh\necho panic; echo 'goroutine 1 [running]:' >&2; exit 2\n",
	"is killed":          "#!/bin/sh\nkill -9 $$\n",
	"knows no verb":      "#!/bin/sh\necho unknown command >&2; exit 1\n",
	"cannot be executed": "\x00\x01",
	"hangs":              "#!/bin/sh\nexec sleep 600\n",
}

// broken puts a fault in the program's place.
func broken(t *testing.T, program, fault string) {
	t.Helper()
	if err := os.RemoveAll(program); err != nil {
		t.Fatal(err)
	}
	if fault == "" {
		return
	}
	if err := os.WriteFile(program, []byte(fault), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestWrapper: whatever becomes of the program, the wrapper ends with 0, says nothing
// on standard error, and on standard output what the program answered, if that has the
// form of a reply to this agent. An agent ends a hook that hangs.
func TestWrapper(t *testing.T) {
	for _, agent := range sessions.Agents() {
		p := places(t)
		p.Program = filepath.Join(t.TempDir(), "program")
		p.do(t, agent)
		reply, none := `{"hookSpecificOutput":{"additionalContext":"it's \\n\\\\ %s"}}`, `{"hook`
		if agent == sessions.Kimi {
			reply, none = "<anamnesis>\nit's\n\\n %s <b>\n</anamnesis>", `<anamnesis>`
		}
		scripts := map[string]struct{ script, want string }{
			"a reply":      {"#!/bin/sh\ncat\n", reply},
			"works on":     {"#!/bin/sh\ncat; exec >&-; sleep 600 &\n", reply},
			"half a reply": {"#!/bin/sh\necho -n '" + none + "'\n", ""},
		}
		for name, fault := range faults {
			scripts[name] = struct{ script, want string }{fault, ""}
		}
		delete(scripts, "hangs") // its agent ends it, see TestFaults
		for name, tt := range scripts {
			broken(t, p.Program, tt.script)
			cmd := exec.Command("sh", "-c", p.Command(agent))
			cmd.Stdin = strings.NewReader(reply)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || string(out) != tt.want || stderr.String() != "" {
				t.Errorf("%s, %s: %q, %v, %q", agent, name, out, err, stderr.String())
			}
		}
		cmd := exec.Command("sh", "-c", p.Command(agent)+" <&- >&-")
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s, nothing open: %q, %v", agent, out, err)
		}
		limits := 0
		for _, part := range p.parts(agent) {
			limits += len(hookLimit.FindAllString(get(t, part.path), -1))
		}
		if want := max(len(events[agent]), 1); limits != want {
			t.Errorf("%s: %d hooks have a limit of 2 s, want %d", agent, limits, want)
		}
	}
}

// TestUnwritable: an installation that cannot write a file names it and the way back,
// which leaves the file alone.
func TestUnwritable(t *testing.T) {
	p := places(t)
	settings := filepath.Join(p.Home, ".claude", "settings.json")
	// Root may write anywhere but in a folder whose path leaves no room for a temporary file's name.
	const longestPath = 4095
	deep := t.TempDir()
	for len(deep) < longestPath-20 {
		deep = filepath.Join(deep, strings.Repeat("d", min(200, longestPath-3-len(deep))))
	}
	put(t, filepath.Join(deep, "f"), "{}\n")
	if err := errors.Join(os.MkdirAll(filepath.Dir(settings), 0o700), os.Symlink(filepath.Join(deep, "f"), settings)); err != nil {
		t.Fatal(err)
	}
	files, err := p.Plan(sessions.Claude)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Install(sessions.Claude, files)
	const want = ": file name too long; make it writable"
	if err == nil || !strings.Contains(err.Error(), "cannot write "+settings+want) {
		t.Errorf("%v", err)
	}
	if err := p.Uninstall(sessions.Claude, []File{{Path: settings, Existed: true, Before: "{}\n"}}); err == nil ||
		!strings.Contains(err.Error(), settings+want+" and uninstall again") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(settings); err != nil {
		t.Fatal(err)
	}
	put(t, settings, "{}\n")
	if files, err = p.PlanRemoval(sessions.Claude); err != nil {
		t.Fatal(err)
	}
	if err := p.Uninstall(sessions.Claude, files); err != nil {
		t.Error(err)
	}
	if text := get(t, settings); text != "{}\n" || exists(p.wrapper()) {
		t.Errorf("%s holds %q", settings, text)
	}
}

// hookLimit matches what each agent is told to end a hook after.
var hookLimit = regexp.MustCompile(`"timeout": 2(000)?\b|(?m)^timeout = 2$|SECONDS = 2\b`)

// TestExamine: doctor's line about an agent names what keeps it from being recorded.
func TestExamine(t *testing.T) {
	p := places(t)
	bin := t.TempDir()
	p.Root = t.TempDir()
	p.Getenv = func(name string) string { return map[string]string{"PATH": bin}[name] }
	if lines := p.Findings(t.Context()); len(lines) > 0 {
		t.Errorf("where nothing was installed: %s", lines)
	}
	want := func(agent sessions.Agent, words ...string) {
		t.Helper()
		line := p.Examine(t.Context(), agent)
		for _, w := range words {
			if not, ok := strings.CutPrefix(w, "!"); strings.Contains(line, not) == ok {
				t.Errorf("%q: want %s", line, w)
			}
		}
		if strings.Contains(line, "\n") {
			t.Errorf("not one line: %q", line)
		}
	}
	p.do(t, sessions.Claude)
	p.do(t, sessions.Codex)
	want(sessions.Claude, "claude is not on PATH", "'anamnesis uninstall claude-code'", "!anamnesis install")
	put(t, filepath.Join(bin, "claude"), "#!/bin/sh\necho 2.1.330\n")
	if err := os.Chmod(filepath.Join(bin, "claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	want(sessions.Claude, "claude-code: "+filepath.Join(bin, "claude")+" (2.1.330)", "!made for")
	upgraded := t.TempDir()
	put(t, filepath.Join(upgraded, "claude"), "#!/bin/sh\necho 3.0.0 of Claude Code\n")
	if err := os.Chmod(filepath.Join(upgraded, "claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.Getenv = func(name string) string { return map[string]string{"PATH": upgraded + ":" + bin}[name] }
	want(sessions.Claude, "2 programs called claude", "the hooks were made for version 2")
	older, again := t.TempDir(), t.TempDir()
	put(t, filepath.Join(older, "claude"), "#!/bin/sh\necho 1.0.9\n")
	if err := errors.Join(os.Chmod(filepath.Join(older, "claude"), 0o700), os.Symlink(filepath.Join(bin, "claude"), filepath.Join(again, "claude"))); err != nil {
		t.Fatal(err)
	}
	p.Getenv = func(name string) string { return map[string]string{"PATH": bin + ":" + again + ":" + older}[name] }
	want(sessions.Claude, "2 programs called claude are on PATH, and the first is used: "+filepath.Join(bin, "claude")+
		" (2.1.330), "+filepath.Join(older, "claude")+" (1.0.9)")
	put(t, filepath.Join(p.Root, "etc/claude-code/managed-settings.json"), `{"allowManagedHooksOnly": true}`)
	put(t, p.wrapper(), "other")
	want(sessions.Claude, "(2.1.330)", "managed hooks only", "run 'anamnesis install claude-code'")
	hooks, config := filepath.Join(p.Home, ".codex", "hooks.json"), filepath.Join(p.Home, ".codex", "config.toml")
	want(sessions.Codex, "trusts 0 of 6 hooks", "!managed")
	trust := get(t, config)
	for _, e := range []string{"session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "stop", "session_end"} {
		trust += fmt.Sprintf("[hooks.state.%q]\ntrusted_hash = \"sha256:0\"\n", hooks+":"+e+":0:0")
	}
	put(t, config, trust)
	put(t, filepath.Join(p.Root, "etc/codex/requirements.toml"), "allow_managed_hooks_only = true\n")
	want(sessions.Codex, "Codex trusts the hooks", "requirements.toml allows managed hooks only")
	put(t, filepath.Join(bin, "codex"), "#!/bin/sh\necho no >&2\nexit 3\n")
	if err := os.Chmod(filepath.Join(bin, "codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	want(sessions.Codex, filepath.Join(bin, "codex")+" (--version fails with exit status 3: run it to see why)")
	want(sessions.Codex, "!another program")
	put(t, config, strings.Replace(trust, "'mcp', 'serve'", "'-y', 'other'", 1))
	want(sessions.Codex, config+` names another program as the MCP server "anamnesis"`)
	servers := filepath.Join(p.Home, ".claude.json")
	want(sessions.Claude, "!another program")
	put(t, servers, `{"mcpServers": {"anamnesis": {"command": "npx", "args": ["other"]}}}`)
	want(sessions.Claude, servers+` names another program as the MCP server "anamnesis"`)
	if lines := p.Findings(t.Context()); len(lines) != 2 || !strings.HasPrefix(lines[0], "claude-code: ") ||
		!strings.HasPrefix(lines[1], "codex: ") {
		t.Errorf("findings: %q", lines)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if line := p.Examine(ctx, sessions.Claude); !strings.Contains(line, "(no answer to --version within 10s: run it to see why)") {
		t.Errorf("of a program that hangs: %s", line)
	}
}

//go:build unix

package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"pgregory.net/rapid"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/sessions"
)

// jsonShapes are settings as users and agents write them. HOOKS and SERVERS are the names of
// what is added to.
var jsonShapes = []string{
	"{}", "{ }", "{\n}", "{}\n", "", "\n", "{\r\n}\r\n", "\xEF\xBB\xBF{\"a\": 1}\r\n",
	`{"a": 1}`, `{"a":1,"b":[1,2]}`, "{\n\t\"a\": 1,\n}", "{\n    \"a\": 1\n}", "{\r\n    \"a\": 1,\r\n}",
	"// top\n{ // open\n  /* in */ \"a\": 1 // end\n  // last\n} // after\n",
	`{"permissions": {}}`, "{\"permissions\": {\"allow\": [ ]}, \"z\": 0}",
	"{\"permissions\": {\"deny\": [\"X\"],\n    \"allow\": [\"Bash(ls)\", // mine\n    \"mcp__anamnesis__recall\",],}}",
	"{ /* only */ }", "{ // only\n}", "{\"a\": 1 /* tail */ }", "{\"a\": 1, // tail\n}", "{\"a\": 1, /* tail */ }",
	`{"HOOKS": {}}`, "{\"HOOKS\": { }, \"z\": 0}", "{\"HOOKS\": {\n  },\n}", "{\"HOOKS\": { // mine\n  }\n}",
	`{"SERVERS": {}}`, "{\n  \"SERVERS\": {\n  },\n}", `{"SERVERS": {"x": {"command": "x", "args": ["mcp", "serve"]}}}`,
	"{\"SERVERS\": {\n  \"x\": {\"command\": \"x\"}, // mine\n}}",
	`{"HOOKS": {"Stop": []}}`, "{\"HOOKS\": {\"Stop\": [\n]}}", "{\"HOOKS\": {\"Stop\": [ /* none */ ], }, }",
	`{"HOOKS": {"Stop": [{"matcher": "x", "hooks": [{"type": "command", "command": "mine.sh"}]}]}}`,
	"{\"HOOKS\": {\"PreToolUse\": [\n    {\"hooks\": [{\"command\": \"mine.sh\"},]}, // mine\n    {\"hooks\": []},\n  ],\n  \"Other/~\": [{\"hooks\": [{\"command\": \"x\"}]}]}}",
	`{"HOOKS": {"Stop": [{"hooks": [{"type": "command", "command": "log beside/hook.sh.bak"}]}]}}`,
	`{"n": 12345678901234567890.10, "s": "é\u00e9 </> & \/ {\"HOOKS\": [", "e": null}`,
}

var tomlShapes = []string{
	"", "\n", "a = 1\n", "a = 1", "# only\n", "# [mcp_servers.anamnesis]\n# command = \"x\"\n", "#[mcp_servers.anamnesis]",
	"a = 1\r\n[t]\r\nb = 2\r\n", "a = 1\r\n[t]\r\nb = 2", "\xEF\xBB\xBFa = 1\n",
	"[mcp_servers]\n", "[mcp_servers]\nx = { command = \"x\" }\n", "[ mcp_servers . x ]\ncommand = 'x'\n",
	"mcp_servers.x.command = \"x\"\n[t]\n", "[mcp_servers.x]\ncommand = \"x\"\n[mcp_servers.x.env]\nA = \"b\"\n",
	"s = \"\"\"\n[mcp_servers.anamnesis]\n# anamnesis:begin\n\"\"\"\n", "s = '''\n[[hooks]]\ncommand = \"sh '/x/beside/hook.sh' kimi\"\n'''\n",
	"[[permission.rules]]\ndecision = \"allow\"\npattern = \"Read\"\n", "[permission]\n[[permission.rules]] # mine\npattern = \"mcp__anamnesis__diff\"\ndecision = \"allow\"\n[t]\na = 1",
	"[[hooks]]\nevent = \"Stop\"\ncommand = \"mine.sh\"\n\n[[hooks]] # second\ncommand = 'x'\n", "[[a]]\n[[a.b]]\nd = 1979-05-27T07:32:00Z\nf = [\n  1, # one\n  2,\n]\n",
}

// target returns the configuration to which hooks or the MCP server are added.
func (p *Places) target(agent sessions.Agent, servers bool) string {
	for _, part := range p.parts(agent) {
		if part.text == nil && (part.servers != "") == servers {
			return part.path
		}
	}
	return ""
}

// values reads a configuration as an agent does.
func values(t interface{ Errorf(string, ...any) }, path, text string) (v map[string]any) {
	data := []byte(strings.TrimPrefix(text, "\xEF\xBB\xBF"))
	if strings.HasSuffix(path, ".toml") {
		if err := toml.Unmarshal(data, &v); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
		return v
	}
	data, err := hujson.Standardize(data)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
	return v
}

// older rewrites the hooks in a file to the form of earlier versions.
func older(t *testing.T, p *Places, agent sessions.Agent) {
	for _, part := range p.parts(agent) {
		if part.text == nil {
			old := strings.ReplaceAll(get(t, part.path),
				`exec /bin/sh -c 'trap \"exit 0\" 0; exec 2>/dev/null; . \"$0\"' `, "sh ")
			put(t, part.path, old)
		}
	}
}

// TestShapes: whatever form a configuration has, an installation adds one set of entries and nothing
// else, and an uninstallation gives back each byte: at once, and after a second installation from another
// state folder. After another edit of the user's, and from hooks of an older version, it leaves what is not ours.
func TestShapes(t *testing.T) {
	for _, agent := range sessions.Agents() {
		for _, servers := range []bool{false, true} {
			path := places(t).target(agent, servers)
			shapes := jsonShapes
			if strings.HasSuffix(path, ".toml") {
				shapes = tomlShapes
			} else if agent != sessions.Claude {
				shapes = []string{"", "{ }", "{\"SERVERS\": {\n  },\n}"} // the same code
			}
			for i, shape := range shapes {
				if path == "" || agent == sessions.Kimi && strings.Contains(shape, "hooks = ") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%d", agent, servers, i), func(t *testing.T) {
					t.Parallel()
					tryShape(t, agent, servers, shape, false)
					if agent == sessions.Claude { // only its entries say which tools need no question
						tryShape(t, agent, servers, shape, true)
					}
				})
			}
		}
	}
}

func tryShape(t *testing.T, agent sessions.Agent, servers bool, shape string, allow bool) {
	p := places(t)
	p.Allow = allow
	path, list := p.target(agent, servers), p.serversOf(agent)
	part := part{path: path}
	if servers {
		part.servers = list
	}
	shape = strings.NewReplacer("HOOKS", "hooks", "SERVERS", list).Replace(shape)
	blank := strings.TrimSpace(shape) == ""
	check := func(how, want string) {
		t.Helper()
		if text := get(t, path); text != want {
			t.Errorf("%q, %s: it is %q", shape, how, text)
		}
	}
	complete := func(p *Places, how string) {
		t.Helper()
		root := values(t, path, get(t, path))
		if !p.complete(agent, part, root) ||
			!blank && !reflect.DeepEqual(part.others(values(t, path, shape)), part.others(root)) {
			t.Errorf("%q, %s: %s", shape, how, get(t, path))
		}
	}
	put(t, path, shape)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	p.do(t, agent)
	complete(p, "installed")
	p.undo(t, agent)
	check("at once", shape)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}

	p.do(t, agent)
	second := *p
	second.State, second.Data = filepath.Join(p.Home, "second"), filepath.Join(p.Home, "second")
	second.do(t, agent)
	complete(&second, "a second time")
	second.undo(t, agent)
	check("from two state folders", shape)
	p.undo(t, agent)
	check("from two state folders", shape)

	p.do(t, agent)
	older(t, p, agent)
	p.do(t, agent)
	complete(p, "upgraded")
	older(t, p, agent)
	if err := os.RemoveAll(p.State); err != nil {
		t.Fatal(err)
	}
	p.undo(t, agent)
	if root := values(t, path, get(t, path)); part.has(root) ||
		!blank && !reflect.DeepEqual(part.others(values(t, path, shape)), part.others(root)) {
		t.Errorf("%q, without the state folder: %s", shape, get(t, path))
	}

	for _, edit := range edits(path, shape) {
		put(t, path, shape)
		p.do(t, agent)
		put(t, path, strings.Replace(get(t, path), edit[0], edit[1], 1))
		p.undo(t, agent)
		now, want := get(t, path), strings.Replace(shape, edit[0], edit[1], 1)
		if root := values(t, path, now); part.has(root) || !strings.Contains(now, edit[1]) ||
			!reflect.DeepEqual(part.others(values(t, path, want)), part.others(root)) {
			t.Errorf("%q, after the edit: %s", want, now)
		}
	}
}

func (p *Places) serversOf(agent sessions.Agent) string {
	for _, part := range p.parts(agent) {
		if part.servers != "" && part.text == nil {
			return part.servers
		}
	}
	return ""
}

// edits are what a user changes in a shape while it is installed, and into what.
func edits(path, shape string) (all [][2]string) {
	for _, edit := range [][2]string{{"a = 1", "z = 'edit' # é"}, {`"a": 1`, `"a": [1, /* edit */ 2]`}, {`"mine.sh"`, `"other.sh"`}} {
		if strings.HasSuffix(path, ".toml") == strings.HasPrefix(edit[0], "a") && strings.Contains(shape, edit[0]) {
			all = append(all, edit)
		}
	}
	return all
}

// TestGenerated is TestShapes for settings that are generated.
func TestGenerated(t *testing.T) {
	space := rapid.SampledFrom([]string{"", "", " ", "\n", "\n  ", "\t", "\r\n", " // c\n", "/* c */"})
	rapid.Check(t, func(t *rapid.T) {
		var value func(depth int) string
		list := func(open, close string, n, depth int, item func(i int) string) string {
			text := open
			for i := range n {
				text += space.Draw(t, "space") + item(i) + space.Draw(t, "space")
				if i < n-1 || rapid.Bool().Draw(t, "comma") {
					text += ","
				}
			}
			return text + space.Draw(t, "space") + close
		}
		object := func(names []string, depth int) string {
			return list("{", "}", len(names), depth,
				func(i int) string { return `"` + names[i] + `":` + value(depth+1) })
		}
		hooks := func() string {
			return list("[", "]", rapid.IntRange(0, 2).Draw(t, "n"), 1, func(int) string {
				return `{"matcher": "m", "hooks":` + list("[", "]", rapid.IntRange(0, 2).Draw(t, "n"), 1,
					func(int) string { return `{"type": "command", "command": "mine"}` }) + "}"
			})
		}
		value = func(depth int) string {
			if kind := rapid.IntRange(0, 3).Draw(t, "kind"); kind == 0 && depth < 3 {
				return object([]string{"p", "q"}[:rapid.IntRange(0, 2).Draw(t, "n")], depth)
			} else if kind == 1 && depth < 3 {
				return list("[", "]", rapid.IntRange(0, 2).Draw(t, "n"), depth,
					func(int) string { return value(depth + 1) })
			}
			return rapid.SampledFrom([]string{"1", `"x, ]}"`, "true", "null"}).Draw(t, "leaf")
		}
		members := rapid.Permutation([]string{"hooks", "mcpServers", "x"}).Draw(t,
			"order")[:rapid.IntRange(0, 3).Draw(t, "n")]
		text := space.Draw(t, "space") + list("{", "}", len(members), 0, func(i int) string {
			switch members[i] {
			case "hooks":
				names := []string{"Stop", "PreToolUse", "Mine"}[:rapid.IntRange(0, 3).Draw(t, "n")]
				return `"hooks":` +
					list("{", "}", len(names), 1, func(i int) string { return `"` + names[i] + `":` + hooks() })
			case "mcpServers":
				return `"mcpServers":` + object([]string{"p", "q"}[:rapid.IntRange(0, 2).Draw(t, "n")], 1)
			}
			return `"x":` + value(1)
		}) + space.Draw(t, "space")
		p := &Places{Home: "/h", State: "/it's/state", Program: "/bin/anamnesis",
			Getenv: func(string) string { return "" }}
		for _, part := range []part{{path: "settings.json"}, {path: "servers.json", servers: "mcpServers"}} {
			after, clean, err := p.add(sessions.Claude, part, []byte(text))
			if err != nil || string(clean) != text {
				t.Fatalf("%q: %v", text, err)
			}
			back, err := part.remove(after)
			if err != nil ||
				!reflect.DeepEqual(part.others(values(t, part.path, text)),
					part.others(values(t, part.path, string(back)))) {
				t.Fatalf("%q becomes %q by %q: %v", text, back, after, err)
			}
			for _, comment := range []string{"// c", "/* c */"} {
				if n := strings.Count(text, comment); strings.Count(string(after), comment) != n ||
					strings.Count(string(back), comment) != n {
					t.Fatalf("%q becomes %q by %q: a comment is lost", text, back, after)
				}
			}
		}
	})
}

// TestForms: the MCP server's entry is found in each form that TOML has for it, once, and taken out
// of it with nothing else.
func TestForms(t *testing.T) {
	const body = "command = \"/bin/sh\"\nargs = [\n  \"mcp\", # first\n  \"serve\",\n]\n"
	const inline = `{ command = "/bin/sh", args = ["mcp", "serve"] }`
	for text, want := range map[string]string{
		"[mcp_servers.anamnesis]\n" + body:                                                                 "",
		"[mcp_servers.\"anamnesis\"]\n" + body + "# mine\n[t]\n":                                           "# mine\n[t]\n",
		"a = 1\n\n[ mcp_servers . 'anamnesis' ] # x\n" + body + "[mcp_servers.anamnesis.env]\nA = \"b\"\n": "a = 1\n\n",
		"[mcp_servers]\nx.command = 'x'\nanamnesis = " + inline + "\ny.command = 'y'\n":                    "[mcp_servers]\nx.command = 'x'\ny.command = 'y'\n",
		"[mcp_servers]\nanamnesis.command = '/bin/sh'\nanamnesis.args = ['mcp', 'serve']\n":                "[mcp_servers]\n",
		"mcp_servers.anamnesis = " + inline + "\nb = 1":                                                    "b = 1",
		"mcp_servers.anamnesis.command = '/bin/sh'\nmcp_servers.\"anamnesis\".args = ['mcp', 'serve']\n":   "",
	} {
		p := places(t)
		path := p.target(sessions.Codex, true)
		put(t, path, text)
		p.do(t, sessions.Codex)
		if now := get(t, path); now != text {
			t.Errorf("%q is added to: %s", text, now)
		}
		p.undo(t, sessions.Codex)
		if now := get(t, path); now != want {
			t.Errorf("%q becomes %q, want %q", text, now, want)
		}
	}
}

// TestRefused: what cannot be changed without another change is refused before anything is written.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		agent   sessions.Agent
		servers bool
		text    string
		want    string
	}{
		{sessions.Claude, false, "{\"a\": \"\xff\"}", "UTF-8"},
		{sessions.Claude, false, `{"hooks": [`, "settings.json"},
		{sessions.Claude, false, `{"hooks": []}`, "hooks"},
		{sessions.Claude, false, `{"hooks": {"Stop": {}}}`, "hooks.Stop"},
		{sessions.Claude, false, `{"hooks": {"Stop": null}}`, "hooks.Stop"},
		{sessions.Claude, false, `{"hooks": {}, "hooks": {"Stop": []}}`, "hides"},
		{sessions.Claude, false, `[]`, "settings.json"},
		{sessions.Claude, false, `null`, "null"},
		{sessions.Claude, true, `{"mcpServers": "x"}`, "mcpServers"},
		{sessions.Codex, true, "mcp_servers = 1\n", "[mcp_servers.anamnesis]"},
		{sessions.Codex, true, "[[mcp_servers]]\n", "[mcp_servers.anamnesis]"},
		{sessions.Codex, true, "mcp_servers = { x = { command = \"x\" } }\n", "[mcp_servers.anamnesis]"},
		{sessions.Codex, true, "a = \n", "config.toml"},
		{sessions.Codex, true, "a = 1\na = 2\n", "config.toml"},
		{sessions.Codex, true, "a = \"\xff\"\n", "UTF-8"},
		{sessions.Kimi, false, "hooks = []\n", "[[hooks]]"},
		{sessions.Kimi, false, "[hooks]\n", "[[hooks]]"},
	} {
		p := places(t)
		path := p.target(tt.agent, tt.servers)
		put(t, path, tt.text)
		before := tree(t, p.Home)
		if _, err := p.Plan(tt.agent); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", tt.text, err)
		}
		if tree(t, p.Home) != before {
			t.Errorf("%q: something was written", tt.text)
		}
	}
	for _, link := range []string{".claude", ".claude/settings.json"} {
		p := places(t)
		at := filepath.Join(p.Home, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.Symlink("/no/such/place", at)); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Plan(sessions.Claude); !errors.Is(err, ErrConfig) ||
			!strings.Contains(err.Error(), at+" is a link") {
			t.Errorf("%s: %v", link, err)
		}
	}
}

// TestLink: a link keeps its place, and so does one that was made after the installation.
func TestLink(t *testing.T) {
	p := places(t)
	path, real := p.target(sessions.Claude, false), filepath.Join(p.Home, "dotfiles", "settings.json")
	put(t, real, settings)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(real, path)); err != nil {
		t.Fatal(err)
	}
	p.do(t, sessions.Claude)
	if !strings.Contains(get(t, real), wrapperName) {
		t.Error("the link was not followed")
	}
	p.undo(t, sessions.Claude)
	if to, err := os.Readlink(path); err != nil || to != real || get(t, real) != settings {
		t.Errorf("%s, %v: %s", to, err, get(t, real))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	p.do(t, sessions.Claude)
	if err := errors.Join(os.Rename(path, real), os.Symlink(real, path)); err != nil {
		t.Fatal(err)
	}
	p.undo(t, sessions.Claude)
	if to, err := os.Readlink(path); err != nil || to != real || strings.Contains(get(t, real), "hook") {
		t.Errorf("%s, %v: %s", to, err, get(t, real))
	}
}

// TestLeft: entries of ours that the user has moved or changed go, with nothing of the user's. What
// cannot be separated is named, the wrapper stays, and what can be removed is.
func TestLeft(t *testing.T) {
	p := places(t)
	ours, old := p.Command(sessions.Claude), "sh "+shell.Quote("/gone/beside/hook.sh")+" claude-code"
	hook := func(command string) string { return `{"type": "command", "command": ` + jsonText(command, "") + `}` }
	for _, tt := range []struct{ text, want, problem string }{
		{`{"hooks": {"Stop": [{"matcher": "m", "hooks": [` + hook("mine") + `, ` + hook(ours) + `]}]}}`, `{"hooks": {"Stop": [{"matcher": "m", "hooks": [` + hook("mine") + `]}]}}`, ""},
		{`{"hooks": {"Stop": [{"hooks": [` + hook(old) + `,` + hook("mine") + `,` + hook(ours) + `]}], "Mine": [{"hooks": [` + hook(old) + `]}]}}`, `{"hooks": {"Stop": [{"hooks": [` + hook("mine") + `]}]}}`, ""},
		{`{"hooks": {"Stop": [{"hooks": [` + hook(ours) + `, // c` + "\n" + hook("mine") + `]}]}}`, `{"hooks": {"Stop": [{"hooks": [ // c` + "\n" + hook("mine") + `]}]}}`, ""},
		{`{"hooks": {"Stop": [{"hooks": [` + hook("log; "+old) + `]}], "Mine": [{"hooks": [` + hook(ours) + `]}]}}`, "", "the Stop hook"},
		{`{"hooks": {"Stop": [{"hooks": [` + hook(ours) + `]`, "", "settings.json"},
		{`{"theme": `, `{"theme": `, ""}, // damaged, and nothing of ours is in it
	} {
		p := places(t)
		path, servers := p.target(sessions.Claude, false), p.target(sessions.Claude, true)
		p.do(t, sessions.Claude)
		put(t, path, tt.text)
		files, problem := p.PlanRemoval(sessions.Claude)
		if err := p.Uninstall(sessions.Claude, files); err != nil {
			t.Error(err)
		}
		if exists(servers) {
			t.Errorf("%q: the MCP server is left", tt.text)
		}
		if tt.problem == "" {
			if now := get(t, path); problem != nil || now != tt.want ||
				exists(p.wrapper()) != strings.Contains(tt.text, `"sh '`) {
				t.Errorf("%q becomes %q, want %q; %v", tt.text, now, tt.want, problem)
			}
			continue
		}
		if !errors.Is(problem, ErrConfig) || !strings.Contains(problem.Error(), tt.problem) ||
			!strings.Contains(problem.Error(), path) || !exists(p.wrapper()) || get(t, path) != tt.text {
			t.Errorf("%q becomes %q: %v", tt.text, get(t, path), problem)
		}
	}
	// A folder in the place of a file may hide a link or a mount that is gone.
	p.do(t, sessions.Claude)
	if err := errors.Join(os.Remove(p.target(sessions.Claude, false)), os.Mkdir(p.target(sessions.Claude, false), 0o700)); err != nil {
		t.Fatal(err)
	}
	files, problem := p.PlanRemoval(sessions.Claude)
	if err := p.Uninstall(sessions.Claude, files); err != nil || problem == nil ||
		!strings.Contains(problem.Error(), "settings.json: not a regular file") || !exists(p.wrapper()) ||
		exists(p.target(sessions.Claude, true)) {
		t.Errorf("%v, %v", err, problem)
	}
	if err := os.Remove(p.target(sessions.Claude, false)); err != nil {
		t.Fatal(err)
	}
	// A running agent writes its configuration between the plan and the change.
	p.do(t, sessions.Claude)
	files, err := p.PlanRemoval(sessions.Claude)
	path := p.target(sessions.Claude, false)
	now := strings.Replace(get(t, path), "{", `{"theme": "x",`, 1)
	put(t, path, now)
	if err = errors.Join(err, p.Uninstall(sessions.Claude, files)); err == nil ||
		!strings.Contains(err.Error(), path+" has changed") || get(t, path) != now ||
		exists(p.target(sessions.Claude, true)) || !exists(p.wrapper()) {
		t.Errorf("%v: %s", err, get(t, path))
	}
}

// TestMissing: a hook ends with 0 and prints nothing whatever is missing, in each shell and for each
// path, since an agent reads an exit code of 2 as a refusal of the prompt.
func TestMissing(t *testing.T) {
	for _, name := range []string{"plain", "with space", "it's", `$HOME "x" \n`, "`date`;&|*", "é"} {
		p := places(t)
		p.State = filepath.Join(p.Home, name)
		for what, make := range map[string]func() error{
			"no state folder": func() error { return os.RemoveAll(p.State) },
			"no wrapper":      func() error { return os.MkdirAll(filepath.Dir(p.wrapper()), 0o700) },
			"a folder":        func() error { return os.MkdirAll(p.wrapper(), 0o700) },
			"half a wrapper": func() error {
				return errors.Join(os.RemoveAll(p.wrapper()),
					os.WriteFile(p.wrapper(), []byte(p.script()[:len(p.script())-30]), 0o600))
			},
			"no bytes":  func() error { return os.WriteFile(p.wrapper(), nil, 0o600) },
			"NUL bytes": func() error { return os.WriteFile(p.wrapper(), []byte("\x00\x00\x00\n\x00"), 0o600) },
			"exits":     func() error { return os.WriteFile(p.wrapper(), []byte("exit 2\n"), 0o600) },
			"fails":     func() error { return os.WriteFile(p.wrapper(), []byte("set -e\nfalse\n"), 0o600) },
		} {
			if err := errors.Join(os.RemoveAll(p.State), os.MkdirAll(filepath.Dir(p.wrapper()), 0o700), make()); err != nil {
				t.Fatal(err)
			}
			for _, shell := range []string{"/bin/sh", "bash", "zsh", "fish"} {
				program, err := exec.LookPath(shell)
				if err != nil {
					continue // CI has all of them
				}
				for _, agent := range sessions.Agents() {
					cmd := exec.Command(program, "-c", p.Command(agent))
					cmd.Env = []string{"PATH="} // no HOME either
					cmd.Stdin = strings.NewReader(`{"hook_event_name": "Stop"}`)
					if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
						t.Errorf("%s, %s, %s, %s: %v, %q", name, what, shell, agent, err, out)
					}
				}
			}
		}
		if w := wrapperOf(p.Command(sessions.Codex)); w != p.wrapper() {
			t.Errorf("%q is not recognised: %q", p.Command(sessions.Codex), w)
		}
		if err := os.RemoveAll(p.State); err != nil {
			t.Fatal(err)
		}
		p.do(t, sessions.Claude)
		p.do(t, sessions.Kimi)
		for _, agent := range []sessions.Agent{sessions.Claude, sessions.Kimi} {
			if files, err := p.Plan(agent); err != nil || len(files) > 0 {
				t.Errorf("%s, %s: %v, %v", name, agent, files, err)
			}
			p.undo(t, agent)
		}
	}
}

// TestDoctorGone: doctor names hooks whose program, wrapper or folder is gone, and those of another
// state folder, also where nothing else says that something was installed.
func TestDoctorGone(t *testing.T) {
	p := places(t)
	p.Program = filepath.Join(t.TempDir(), "anamnesis")
	put(t, p.Program, "")
	for _, agent := range sessions.Agents() {
		p.do(t, agent)
	}
	find := func(p *Places, wants ...string) {
		t.Helper()
		lines := strings.Join(p.Findings(t.Context()), "\n")
		for _, want := range wants {
			if not, ok := strings.CutPrefix(want, "!"); strings.Contains(lines, not) == ok {
				t.Errorf("want %q:\n%s", want, lines)
			}
		}
	}
	settings, wrapper := p.target(sessions.Claude, false), p.wrapper()
	find(p, "claude-code: ", "kimi: ", "!gone", "!another state folder")
	second := *p
	second.State = filepath.Join(p.Home, "second")
	find(&second, "hooks in "+settings+" record into another state folder, by "+wrapper)
	if err := os.Remove(p.Program); err != nil {
		t.Fatal(err)
	}
	second.Program = "/bin/sh"
	find(&second, "hooks in "+settings+" run "+wrapper+", whose program "+p.Program+" is gone",
		p.target(sessions.Codex, true)+" starts the MCP server with "+p.Program+
			", which is gone", "run 'anamnesis install claude-code'")
	if err := os.RemoveAll(p.State); err != nil {
		t.Fatal(err)
	}
	for _, agent := range sessions.Agents() {
		find(&second, string(agent)+": ")
	}
	find(&second, "hooks in "+settings+" run "+wrapper+", which is gone", "anamnesis.js run "+wrapper+", which is gone",
		"config.toml run "+wrapper+", which is gone")
}

// TestElsewhere: what was installed while the agent's configuration was elsewhere goes, too, and an
// entry in the other of opencode's files is the one that counts.
func TestElsewhere(t *testing.T) {
	p := places(t)
	other := filepath.Join(p.Home, "other")
	put(t, filepath.Join(other, "settings.json"), settings)
	before := tree(t, other)
	p.Getenv = func(name string) string { return map[string]string{"CLAUDE_CONFIG_DIR": other}[name] }
	p.do(t, sessions.Claude)
	p.Getenv = func(string) string { return "" }
	p.do(t, sessions.Claude)
	put(t, filepath.Join(other, "settings.json"), "\n"+get(t, filepath.Join(other, "settings.json")))
	p.undo(t, sessions.Claude)
	if err := os.WriteFile(filepath.Join(other, "settings.json"), []byte(strings.TrimPrefix(get(t, filepath.Join(other, "settings.json")), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, other); after != before || exists(p.dir(sessions.Claude)) || exists(p.wrapper()) {
		t.Errorf("%s\nwant\n%s", after, before)
	}

	jsonc := filepath.Join(p.dir(sessions.OpenCode), "opencode.jsonc")
	put(t, jsonc, "{} // mine\n")
	p.do(t, sessions.OpenCode)
	put(t, strings.TrimSuffix(jsonc, "c"), "{}\n")
	if files, err := p.Plan(sessions.OpenCode); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
	p.undo(t, sessions.OpenCode)
	if get(t, jsonc) != "{} // mine\n" || get(t, strings.TrimSuffix(jsonc, "c")) != "{}\n" {
		t.Errorf("%s, %s", get(t, jsonc), get(t, strings.TrimSuffix(jsonc, "c")))
	}
}

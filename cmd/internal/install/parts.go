//go:build unix

package install

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"anamnesis/orchestrator/sessions"
)

// hookSeconds is the time after which an agent ends a hook that hangs.
const hookSeconds = 2

// serverSeconds is the time after which Gemini CLI continues without an MCP server that does not
// answer, also at its start; the default is 10 minutes. A jump in a large directory takes less.
const serverSeconds = 60

// events are the hooks of each agent. The plugin of opencode calls the wrapper itself.
var events = map[sessions.Agent][]string{
	sessions.Claude: {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Stop", "SessionEnd"},
	sessions.Codex:  {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"},
	sessions.Gemini: {"SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"},
	sessions.Kimi:   {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd"},
}

var (
	//go:embed files/SKILL.md
	skill []byte
	//go:embed files/opencode.js
	plugin []byte
)

// Agents lists those that can be installed for.
func Agents() []sessions.Agent { return sessions.Agents() }

// part is what an installation does to one file. put is nil for a file of our own.
type part struct {
	path string
	text []byte // of a file of our own
	put  func(before []byte) ([]byte, error)
}

// dir returns where an agent keeps its configuration.
func (p *Places) dir(agent sessions.Agent) string {
	at := func(variable string, fallback ...string) string {
		if set := p.Getenv(variable); set != "" {
			return set
		}
		return filepath.Join(append([]string{p.Home}, fallback...)...)
	}
	switch agent {
	case sessions.Claude:
		return at("CLAUDE_CONFIG_DIR", ".claude")
	case sessions.Codex:
		return at("CODEX_HOME", ".codex")
	case sessions.Gemini:
		return filepath.Join(at("GEMINI_CLI_HOME"), ".gemini")
	case sessions.Kimi:
		return at("KIMI_CODE_HOME", ".kimi-code")
	default:
		return filepath.Join(at("XDG_CONFIG_HOME", ".config"), "opencode")
	}
}

// Found reports whether an agent has a configuration here.
func (p *Places) Found(agent sessions.Agent) bool {
	info, err := os.Stat(p.dir(agent))
	return err == nil && info.IsDir()
}

// Serves reports whether the configuration of the agent that a command starts names this
// program's MCP server.
func (p *Places) Serves(command []string) bool {
	for agent, name := range programs {
		if !strings.Contains(strings.Join(command, " "), name) {
			continue
		}
		for _, part := range p.parts(agent) {
			data, err := os.ReadFile(part.path)
			if err == nil && (has(data, serverPath(agent)+"/anamnesis") || bytes.Contains(data, []byte("[mcp_servers.anamnesis]"))) {
				return true
			}
		}
	}
	return false
}

// parts lists the files of an installation.
func (p *Places) parts(agent sessions.Agent) []part {
	dir := p.dir(agent)
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	list := []part{{path: p.wrapper(), text: []byte(p.script())}}
	lessons := part{path: in("skills", "anamnesis", "SKILL.md"), text: skill}
	hooks := func(before []byte) ([]byte, error) { return p.addHooks(agent, before) }
	server := func(before []byte) ([]byte, error) { return p.addServer(agent, before) }
	switch agent {
	case sessions.Claude:
		servers := filepath.Join(p.Home, ".claude.json")
		if p.Getenv("CLAUDE_CONFIG_DIR") != "" {
			servers = in(".claude.json")
		}
		return append(list, part{path: in("settings.json"), put: hooks}, part{path: servers, put: server}, lessons)
	case sessions.Codex:
		return append(list, part{path: in("hooks.json"), put: hooks}, part{path: in("config.toml"), put: p.addTable}, lessons)
	case sessions.Kimi:
		return append(list, part{path: in("config.toml"), put: p.addHookTables}, part{path: in("mcp.json"), put: server}, lessons)
	case sessions.OpenCode:
		config := in("opencode.json")
		if path := in("opencode.jsonc"); exists(path) && !exists(config) {
			config = path
		}
		code := bytes.ReplaceAll(plugin, []byte(`"@HOOK@"`), []byte(jsonText(p.wrapper())))
		return append(list, part{path: in("plugins", "anamnesis.js"), text: code}, part{path: config, put: server}, lessons)
	}
	extension := func(names ...string) string { return in(append([]string{"extensions", "anamnesis"}, names...)...) }
	made := func(begin string, add func([]byte) ([]byte, error)) []byte {
		data, err := add([]byte(begin))
		if err == nil {
			data, err = hujson.Format(data)
		}
		if err != nil {
			panic("install: " + err.Error()) // it is ours from the beginning
		}
		return data
	}
	manifest := made(`{"name": "anamnesis", "version": "1.0.0", "description": "Go back to an earlier step; lessons of earlier sessions"}`, server)
	return append(list, part{path: extension("gemini-extension.json"), text: manifest}, part{path: extension("hooks", "hooks.json"), text: made("{}", hooks)},
		part{path: extension("skills", "anamnesis", "SKILL.md"), text: skill})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func jsonText(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic("install: a path is not JSON") // a string always is
	}
	return string(data)
}

// serverPath is where an agent lists its MCP servers.
func serverPath(agent sessions.Agent) string {
	if agent == sessions.OpenCode {
		return "/mcp"
	}
	return "/mcpServers"
}

func (p *Places) addServer(agent sessions.Agent, data []byte) ([]byte, error) {
	list := serverPath(agent)
	if has(data, list+"/anamnesis") {
		at := list + "/anamnesis/command"
		if agent == sessions.OpenCode {
			at += "/0"
		}
		if gone(section(data, at)) {
			return edit(data, patch{"replace", at, p.Program})
		}
		return data, nil
	}
	server := map[string]any{"command": p.Program, "args": []string{"mcp", "serve"}}
	env := "env"
	switch agent {
	case sessions.Claude:
		server["type"] = "stdio"
	case sessions.Gemini:
		server["timeout"] = serverSeconds * 1000
	case sessions.OpenCode:
		server = map[string]any{"type": "local", "command": []string{p.Program, "mcp", "serve"}, "enabled": true}
		env = "environment"
	}
	if p.Data != "" {
		server[env] = map[string]string{"ANAMNESIS_HOME": p.Data}
	}
	var err error
	if !has(data, list) {
		if data, err = edit(data, patch{"add", list, map[string]any{}}); err != nil {
			return nil, err
		}
	}
	return edit(data, patch{"add", list + "/anamnesis", server})
}

const (
	tableBegin = "# anamnesis:begin\n"
	tableEnd   = "# anamnesis:end\n"
)

// gone reports whether an entry's command is a path at which no program is left, as after
// this program was moved.
func gone(command []byte) bool {
	var path string
	return json.Unmarshal(command, &path) == nil && filepath.IsAbs(path) && !exists(path)
}

// tableCommand matches the command of the MCP server in Codex's configuration.
var tableCommand = regexp.MustCompile(`\[mcp_servers\.anamnesis\]\ncommand = ("(?:[^"\\]|\\.)*")`)

// addTable adds the MCP server to Codex's configuration. A string of JSON is one of
// TOML, too.
func (p *Places) addTable(data []byte) ([]byte, error) {
	if bytes.Contains(data, []byte("[mcp_servers.anamnesis]")) {
		if m := tableCommand.FindSubmatchIndex(data); m != nil && gone(data[m[2]:m[3]]) {
			return slices.Concat(data[:m[2]], []byte(jsonText(p.Program)), data[m[3]:]), nil
		}
		return data, nil
	}
	table := fmt.Sprintf("[mcp_servers.anamnesis]\ncommand = %s\nargs = [\"mcp\", \"serve\"]\n", jsonText(p.Program))
	if p.Data != "" {
		table += fmt.Sprintf("env = { ANAMNESIS_HOME = %s }\n", jsonText(p.Data))
	}
	return appendTables(data, table), nil
}

// inlineHooks matches hooks that tables cannot be added to.
var inlineHooks = regexp.MustCompile(`(?m)^\s*hooks\s*=`)

// addHookTables adds the hooks to Kimi Code's configuration.
func (p *Places) addHookTables(data []byte) ([]byte, error) {
	command := jsonText(p.Command(sessions.Kimi))
	if bytes.Contains(data, []byte(command)) {
		return data, nil
	}
	if inlineHooks.Match(data) {
		return nil, errors.New("its hooks are one value: write them as [[hooks]] tables")
	}
	var tables strings.Builder
	for _, e := range events[sessions.Kimi] {
		fmt.Fprintf(&tables, "[[hooks]]\nevent = %s\ncommand = %s\ntimeout = %d\n", jsonText(e), command, hookSeconds)
	}
	return appendTables(data, tables.String()), nil
}

func appendTables(data []byte, tables string) []byte {
	text := string(data)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return []byte(text + tableBegin + tables + tableEnd)
}

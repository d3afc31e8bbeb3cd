//go:build unix

package install

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/orchestrator/sessions"
)

// hookSeconds is the time after which an agent ends a hook that hangs.
const hookSeconds = 2

// serverSeconds is the time after which Gemini CLI continues without an MCP server that does not
// answer, also at its start; the default is 10 minutes. A jump in a large directory takes less.
const serverSeconds = 60

// events are the hooks of each agent. The plugin of opencode calls the wrapper itself.
var events = map[sessions.Agent][]string{
	sessions.Claude: {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
		"PostToolBatch", "Stop", "SessionEnd"},
	sessions.Codex:  {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"},
	sessions.Gemini: {"SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"},
	sessions.Kimi: {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse",
		"PostToolUseFailure", "Stop", "SessionEnd"},
}

var (
	//go:embed files/SKILL.md
	skill []byte
	//go:embed files/opencode.js
	plugin []byte
)

// part is a file of an installation: one of our own, or a configuration of the agent to which
// hooks or the MCP server are added.
type part struct {
	path    string
	text    []byte // of a file of our own
	servers string // the name of the list of MCP servers; empty where hooks are added
	rules   []any  // the read-only tools that are allowed beside the hooks
}

// Offers reports whether the read-only tools of an agent could be allowed, and are not. Those of Claude Code are
// allowed beside its hooks; Codex and opencode ask for no read-only tool, unless their user tells them to.
func (p *Places) Offers(agent sessions.Agent) bool {
	return agent == sessions.Claude &&
		!slices.ContainsFunc(p.parts(agent), func(part part) bool { return len(rulesIn(part.values())) > 0 })
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
			if entry, _ := part.server(part.values()); entry != nil {
				return true
			}
		}
	}
	return false
}

func (p *Places) parts(agent sessions.Agent) []part {
	dir := p.dir(agent)
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	list := []part{{path: p.wrapper(), text: []byte(p.script())}} // first, so that no hook names a missing wrapper
	lessons := part{path: in("skills", "anamnesis", "SKILL.md"), text: skill}
	switch agent {
	case sessions.Claude:
		servers := filepath.Join(p.Home, ".claude.json")
		if p.Getenv("CLAUDE_CONFIG_DIR") != "" {
			servers = in(".claude.json")
		}
		return append(list, part{path: in("settings.json")}, part{path: servers, servers: "mcpServers"}, lessons)
	case sessions.Codex:
		return append(list, part{path: in("hooks.json")},
			part{path: in("config.toml"), servers: "mcp_servers"}, lessons)
	case sessions.Kimi:
		return append(list, part{path: in("config.toml")}, part{path: in("mcp.json"), servers: "mcpServers"}, lessons)
	case sessions.OpenCode:
		config := part{path: in("opencode.json"), servers: "mcp"} // opencode reads both
		other := part{path: in("opencode.jsonc"), servers: "mcp"}
		if exists(other.path) && !exists(config.path) || other.has(other.values()) {
			config = other
		}
		code := bytes.ReplaceAll(plugin, []byte(`"@HOOK@"`), []byte(jsonText(p.wrapper(), "")))
		return append(list, part{path: in("plugins", "anamnesis.js"), text: code}, config, lessons)
	}
	extension := func(names ...string) string { return in(append([]string{"extensions", "anamnesis"}, names...)...) }
	made := func(begin string, servers string) part {
		own := part{servers: servers}
		data, err := p.addJSON(agent, own, []byte(begin), nil)
		if err != nil {
			panic("install: " + err.Error()) // the text is this program's own
		}
		own.text = data
		return own
	}
	manifest := made("{\n  \"name\": \"anamnesis\",\n  \"version\": \"1.0.0\",\n"+
		"  \"description\": \"Go back to an earlier step; lessons of earlier sessions\"\n}\n", "mcpServers")
	hooks := made("{}\n", "")
	manifest.path, hooks.path = extension("gemini-extension.json"), extension("hooks", "hooks.json")
	return append(list, manifest, hooks, part{path: extension("skills", "anamnesis", "SKILL.md"), text: skill})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// jsonText renders a value as JSON. A string is one of TOML, too. margin is before each line but the first.
func jsonText(v any, margin string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(margin, "  ")
	if err := e.Encode(v); err != nil {
		panic("install: " + err.Error()) // it is made of strings, numbers, maps and lists
	}
	return strings.TrimSuffix(b.String(), "\n")
}

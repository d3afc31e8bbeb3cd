//go:build unix

package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"anamnesis/orchestrator/sessions"
)

// bom begins a file that some editors write. It is no part of JSON or TOML.
var bom = []byte("\xEF\xBB\xBF")

// hookForm matches the command of a hook that an installation wrote, of this version or an older
// one, for any state folder: entries are recognised by it, since the state folder may be gone.
var hookForm = regexp.MustCompile(`^(?:exec /bin/sh -c '[^']*' |sh )('(?:[^']|'\\'')*/beside/hook\.sh'|` +
	`[^\s']+/beside/hook\.sh) [a-z-]+$`)

// runsWrapper matches a command that runs a wrapper, also one that a user has changed.
var runsWrapper = regexp.MustCompile(`/beside/hook\.sh(['"\s]|$)`)

const wrapperName = "/beside/hook.sh"

// hook is a hook of an agent's configuration.
type hook struct{ event, command string }

// wrapperOf returns the wrapper that a hook of ours runs; empty for another hook.
func wrapperOf(command string) string {
	m := hookForm.FindStringSubmatch(command)
	if m == nil {
		return ""
	}
	return unquote(m[1])
}

func unquote(word string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(word, "'"), "'"), `'\''`, "'")
}

// parse reads the values of a configuration, independently of the code that edits it.
func parse(path string, data []byte) (map[string]any, error) {
	root := map[string]any{}
	data = bytes.TrimPrefix(data, bom)
	if strings.HasSuffix(path, ".toml") {
		return root, toml.Unmarshal(data, &root)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return root, nil
	}
	data, err := hujson.Standardize(bytes.Clone(data))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // two large numbers must not become equal as floats
	if err := d.Decode(&root); err != nil {
		return nil, err
	}
	if root == nil {
		return nil, errors.New("null where an object should be")
	}
	return root, nil
}

// hooksIn lists the hooks of a configuration, in the form of JSON or of Kimi Code's TOML.
func hooksIn(root map[string]any) (all []hook) {
	add := func(event string, v any) {
		if m, ok := v.(map[string]any); ok {
			if command, ok := m["command"].(string); ok {
				all = append(all, hook{event, command})
			}
		}
	}
	switch hooks := root["hooks"].(type) {
	case map[string]any:
		for event, list := range hooks {
			for _, entry := range items(list) {
				if m, ok := entry.(map[string]any); ok {
					for _, h := range items(m["hooks"]) {
						add(event, h)
					}
				}
			}
		}
	case []any:
		for _, h := range hooks {
			if m, ok := h.(map[string]any); ok {
				event, _ := m["event"].(string)
				add(event, h)
			}
		}
	}
	return all
}

func items(v any) []any {
	list, _ := v.([]any)
	return list
}

// server returns the entry of the MCP server with our name, nil if there is none, and whether it
// runs this program.
func (p *part) server(root map[string]any) (entry map[string]any, ours bool) {
	list, _ := root[p.servers].(map[string]any)
	entry, _ = list["anamnesis"].(map[string]any)
	words := append(items(entry["command"]), items(entry["args"])...)
	i := slices.Index(words, any("mcp"))
	return entry, i >= 0 && i+1 < len(words) && words[i+1] == "serve"
}

// has reports whether a configuration holds an entry of ours.
func (p *part) has(root map[string]any) bool {
	_, ours := p.server(root)
	return ours || slices.ContainsFunc(hooksIn(root), func(h hook) bool { return wrapperOf(h.command) != "" })
}

// others returns a configuration without our entries, and without objects and lists that are empty without them.
func (p *part) others(root map[string]any) map[string]any {
	rest := maps.Clone(root)
	if rest["hooks"] = withoutHooks(root["hooks"]); rest["hooks"] == nil {
		delete(rest, "hooks")
	}
	permissions, isTable := rest["permissions"].(map[string]any)
	if allowed, isList := permissions["allow"].([]any); isTable && (isList || permissions["allow"] == nil) {
		permissions = maps.Clone(permissions)
		others := slices.DeleteFunc(slices.Clone(allowed), isRule)
		if permissions["allow"] = others; len(others) == 0 {
			delete(permissions, "allow")
		}
		if rest["permissions"] = permissions; len(permissions) == 0 {
			delete(rest, "permissions")
		}
	}
	list, _ := rest[p.servers].(map[string]any)
	if _, ours := p.server(root); ours {
		list = maps.Clone(list)
		delete(list, "anamnesis")
		rest[p.servers] = list
	}
	if list != nil && len(list) == 0 {
		delete(rest, p.servers)
	}
	return rest
}

// withoutHooks returns a value without our hooks and without what is then empty; nil if nothing is left.
func withoutHooks(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if command, ok := v["command"].(string); ok && wrapperOf(command) != "" {
			return nil
		}
		rest := map[string]any{}
		for key, x := range v {
			if x = withoutHooks(x); x != nil {
				rest[key] = x
			} else if key == "hooks" {
				return nil // an entry without its hooks goes, with its matcher
			}
		}
		if len(rest) == 0 {
			return nil
		}
		return rest
	case []any:
		var rest []any
		for _, x := range v {
			if x = withoutHooks(x); x != nil {
				rest = append(rest, x)
			}
		}
		if rest == nil {
			return nil
		}
		return rest
	}
	return v
}

// readOnlyTools are the tools of the MCP server that change nothing.
var readOnlyTools = []string{"timeline", "diff", "recall", "show_operation"}

const rulePrefix = "mcp__anamnesis__"

// isRule reports whether an element of what Claude Code may call without a question is one of the read-only tools.
func isRule(v any) bool {
	name, _ := v.(string)
	tool, ours := strings.CutPrefix(name, rulePrefix)
	return ours && slices.Contains(readOnlyTools, tool)
}

// rulesIn lists the elements of a configuration that allow a read-only tool.
func rulesIn(root map[string]any) []any {
	permissions, _ := root["permissions"].(map[string]any)
	return slices.DeleteFunc(slices.Clone(items(permissions["allow"])), func(v any) bool { return !isRule(v) })
}

// sameOthers reports whether two configurations differ in our entries only.
func (p *part) sameOthers(a, b []byte) bool {
	was, err := parse(p.path, a)
	is, err2 := parse(p.path, b)
	return err == nil && err2 == nil && reflect.DeepEqual(p.others(was), p.others(is))
}

// complete reports whether a configuration holds what an installation writes to it, once. The
// entry of another program under our name stays.
func (p *Places) complete(agent sessions.Agent, part part, root map[string]any) bool {
	if part.servers != "" {
		entry, ours := part.server(root)
		path, data := program(entry), dataOf(entry)
		// A user's own entry can rely on the environment: PATH leads to the program, and the program to its state.
		byHand := data == "" && !filepath.IsAbs(path)
		_, loads := entry["alwaysLoad"]
		return entry != nil && !ours || ours && (path == p.Program || !programMissing(path)) &&
			(data == p.Data || byHand) && (loads || agent != sessions.Claude)
	}
	want := map[string]int{}
	for _, h := range hooksIn(root) {
		switch {
		case h.command == p.Command(agent):
			want[h.event]++
		case wrapperOf(h.command) != "":
			return false // for another state folder, or of an older version
		}
	}
	for _, e := range events[agent] {
		if want[e] != 1 {
			return false
		}
	}
	return len(want) == len(events[agent]) &&
		(!p.Allow || agent != sessions.Claude || len(rulesIn(root)) >= len(readOnlyTools))
}

// program returns the program of an MCP server's entry.
func program(entry map[string]any) string {
	command, _ := entry["command"].(string)
	if words := items(entry["command"]); len(words) > 0 {
		command, _ = words[0].(string)
	}
	return command
}

// dataOf returns the ANAMNESIS_HOME that an entry sets.
func dataOf(entry map[string]any) string {
	for _, env := range []string{"env", "environment"} {
		if m, ok := entry[env].(map[string]any); ok {
			data, _ := m["ANAMNESIS_HOME"].(string)
			return data
		}
	}
	return ""
}

// programMissing reports whether a command is a path at which no program is left, as after this program was moved.
func programMissing(path string) bool { return filepath.IsAbs(path) && !exists(path) }

// serverEntry returns the entry of the MCP server: a new one, or an older one with this program and state folder.
func (p *Places) serverEntry(agent sessions.Agent, older map[string]any) map[string]any {
	entry, env := map[string]any{"command": p.Program, "args": []any{"mcp", "serve"}}, "env"
	switch agent {
	case sessions.Claude:
		entry["type"] = "stdio"
	case sessions.Gemini:
		entry["timeout"] = serverSeconds * 1000
	case sessions.OpenCode:
		entry, env = map[string]any{"type": "local", "command": []any{p.Program, "mcp", "serve"},
			"enabled": true}, "environment"
	}
	if older != nil {
		command := entry["command"]
		entry = maps.Clone(older)
		if programMissing(program(older)) {
			entry["command"] = command
		}
	}
	if _, set := entry["alwaysLoad"]; agent == sessions.Claude && !set {
		entry["alwaysLoad"] = true // otherwise its model sees the names of the tools alone, and must search for them
	}
	set, _ := entry[env].(map[string]any)
	set = maps.Clone(set)
	delete(set, "ANAMNESIS_HOME")
	if p.Data != "" {
		if set == nil {
			set = map[string]any{}
		}
		set["ANAMNESIS_HOME"] = p.Data
	}
	if entry[env] = set; len(set) == 0 {
		delete(entry, env)
	}
	return entry
}

// hookEntry is an event's hook in JSON.
func (p *Places) hookEntry(agent sessions.Agent) any {
	timeout := hookSeconds
	if agent == sessions.Gemini {
		timeout *= 1000 // it counts in milliseconds
	}
	return map[string]any{"hooks": []any{map[string]any{"type": "command",
		"command": p.Command(agent), "timeout": timeout}}}
}

//go:build unix

package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
)

// versionTime is how long an agent's program may take to say its version.
const versionTime = 10 * time.Second

var programs = map[sessions.Agent]string{
	sessions.Claude: "claude", sessions.Codex: "codex", sessions.OpenCode: "opencode",
	sessions.Gemini: "gemini", sessions.Kimi: "kimi",
}

// made are the major versions of the agents that hooks, plugins and readers were made for.
var made = map[sessions.Agent]string{sessions.Claude: "2", sessions.Codex: "0", sessions.OpenCode: "1",
	sessions.Gemini: "0", sessions.Kimi: "2"}

var number = regexp.MustCompile(`\b(\d+)\.\d+\.\d+`)

// Findings lists what doctor says of the agents that something was installed for, a line each.
func (p *Places) Findings(ctx context.Context) (lines []string) {
	agents := slices.DeleteFunc(sessions.Agents(), func(agent sessions.Agent) bool {
		return !exists(p.manifest(agent)) && !p.configured(agent)
	})
	if len(agents) == 0 {
		return nil
	}
	lines = make([]string, len(agents))
	var busy sync.WaitGroup
	for i, agent := range agents {
		busy.Go(func() { lines[i] = p.Examine(ctx, agent) })
	}
	busy.Wait()
	return lines
}

// Examine says in one line what keeps an agent's sessions from being recorded, or that
// nothing does.
func (p *Places) Examine(ctx context.Context, agent sessions.Agent) string {
	say := []string{p.version(ctx, agent)}
	files, err := p.Plan(agent)
	gone := p.missing(agent)
	switch {
	case err != nil:
		say = append(say, strings.ReplaceAll(err.Error(), "\n", "; "))
	case len(gone) > 0:
		say = append(append(say, gone...), fmt.Sprintf("run 'anamnesis install %s'", agent))
	case len(files) > 0:
		say = append(say, fmt.Sprintf("%s is not as this program installs it: run 'anamnesis install %s'",
			files[0].Path, agent))
	}
	if agent == sessions.Codex {
		say = append(say, p.codexTrust())
	}
	if path := p.otherServer(agent); path != "" {
		say = append(say, fmt.Sprintf("%s names another program as the MCP server \"anamnesis\", so the agent cannot "+
			"jump: rename that entry, then run 'anamnesis install %s'", path, agent))
	}
	if why := p.forbidden(agent); why != "" {
		say = append(say, why)
	}
	say = append(say, beside.Week(taskdir.Home{State: p.State}, agent, time.Now()))
	return fmt.Sprintf("%s: %s", agent, strings.Join(say, "; "))
}

// configured reports whether an agent's configuration holds an entry of ours, of whichever state folder.
func (p *Places) configured(agent sessions.Agent) bool {
	return slices.ContainsFunc(p.parts(agent), func(part part) bool { return part.has(part.values()) }) || p.uses(agent)
}

var wrapperProgram = regexp.MustCompile(`exec ('(?:[^']|'\\'')*') hook `)

// missing names hooks and servers of an agent whose program or folder is gone, and hooks of another state folder.
func (p *Places) missing(agent sessions.Agent) (say []string) {
	for _, part := range p.allParts(agent, p.installed(agent)) {
		if entry, ours := part.server(part.values()); ours && program(entry) != p.Program &&
			programMissing(program(entry)) {
			say = append(say, fmt.Sprintf("%s starts the MCP server with %s, which is gone", part.path, program(entry)))
		}
		for _, w := range part.wrappers() {
			script, err := os.ReadFile(w)
			m := wrapperProgram.FindSubmatch(script)
			switch {
			case err != nil:
				say = append(say, fmt.Sprintf("hooks in %s run %s, which is gone, and record nothing", part.path, w))
			case m != nil && unquote(string(m[1])) != p.Program && programMissing(unquote(string(m[1]))):
				say = append(say, fmt.Sprintf("hooks in %s run %s, whose program %s is gone, and record nothing",
					part.path, w, unquote(string(m[1]))))
			case w != p.wrapper():
				say = append(say, fmt.Sprintf("hooks in %s record into another state folder, by %s", part.path, w))
			}
		}
	}
	return say
}

// version is what the agent's program says of itself. Further programs of that name on
// PATH are named, too: an editor or another shell may start them.
func (p *Places) version(ctx context.Context, agent sessions.Agent) string {
	name := programs[agent]
	var seen, say []string
	for _, dir := range filepath.SplitList(p.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || slices.Contains(seen, real) {
			continue
		}
		seen, say = append(seen, real), append(say, versionOf(ctx, path))
	}
	if len(say) == 0 {
		return fmt.Sprintf("%s is not on PATH; if you have removed it, 'anamnesis uninstall %s' removes the hooks",
			name, agent)
	}
	line := say[0]
	if len(say) > 1 {
		line = fmt.Sprintf("%d programs called %s are on PATH, and the first is used: %s", len(say),
			name, strings.Join(say, ", "))
	}
	// The path before it may hold other numbers, so the last one is the version.
	if all := number.FindAllStringSubmatch(say[0], -1); len(all) > 0 && all[len(all)-1][1] != made[agent] {
		line += fmt.Sprintf("; the hooks were made for version %s: check that 'anamnesis tasks' lists its next session",
			made[agent])
	}
	return line
}

func versionOf(ctx context.Context, path string) string {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second // it may leave children
	out, err := cmd.Output()
	text, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("%s (no answer to --version within %v: run it to see why)", path, versionTime)
	case err != nil:
		return fmt.Sprintf("%s (--version fails with %v: run it to see why)", path, err)
	case text == "":
		text = "no version"
	}
	return fmt.Sprintf("%s (%s)", path, text)
}

// codexTrust says how many of our hooks Codex's configuration holds a trusted hash of.
func (p *Places) codexTrust() string {
	config, _ := os.ReadFile(filepath.Join(p.dir(sessions.Codex), "config.toml")) // without it nothing is trusted
	hooks, trusted := filepath.Join(p.dir(sessions.Codex), "hooks.json"), 0
	for _, e := range events[sessions.Codex] {
		if _, rest, ok := bytes.Cut(config, []byte(hooks+":"+snake(e)+":")); ok {
			table, _, _ := bytes.Cut(rest, []byte("\n["))
			if bytes.Contains(table, []byte("trusted_hash")) {
				trusted++
			}
		}
	}
	if n := len(events[sessions.Codex]); trusted < n {
		return fmt.Sprintf("Codex trusts %d of %d hooks and skips the others: confirm them under /hooks in codex",
			trusted, n)
	}
	return "Codex trusts the hooks"
}

var humps = regexp.MustCompile(`([a-z])([A-Z])`)

// snake writes a hook's name as Codex's configuration does: pre_tool_use.
func snake(event string) string { return strings.ToLower(humps.ReplaceAllString(event, "${1}_$2")) }

// otherServer returns the file of the agent that names another program as this program's MCP server, or "".
func (p *Places) otherServer(agent sessions.Agent) string {
	for _, part := range p.parts(agent) {
		if entry, ours := part.server(part.values()); entry != nil && !ours {
			return part.path
		}
	}
	return ""
}

var (
	managedOnly = regexp.MustCompile(`(?m)^\s*allow_managed_hooks_only\s*=\s*true|"allowManagedHooksOnly"\s*:\s*true`)
	hooksOff    = regexp.MustCompile(`"disableAllHooks"\s*:\s*true|(?m)^\s*hooks\s*=\s*false`)
)

// forbidden names the file that keeps an agent from running a user's hooks.
func (p *Places) forbidden(agent sessions.Agent) string {
	var policies []string
	own := ""
	switch agent {
	case sessions.Claude:
		policies = []string{"/etc/claude-code/managed-settings.json",
			"/Library/Application Support/ClaudeCode/managed-settings.json"}
		const folder = "/etc/claude-code/managed-settings.d"
		more, _ := os.ReadDir(filepath.Join(p.Root, folder)) // without it there are no more
		for _, e := range more {
			policies = append(policies, filepath.Join(folder, e.Name()))
		}
		own = filepath.Join(p.dir(agent), "settings.json")
	case sessions.Codex:
		policies, own = []string{"/etc/codex/requirements.toml"}, filepath.Join(p.dir(agent), "config.toml")
	default:
		return ""
	}
	for i, path := range append(policies, own) {
		policy := i < len(policies)
		if policy {
			path = filepath.Join(p.Root, path)
		}
		data, err := os.ReadFile(path)
		switch {
		case err != nil: // there is none, or it does not count for this user
		case policy && managedOnly.Match(data):
			return path + " allows managed hooks only: nothing is recorded"
		case hooksOff.Match(data):
			return path + " turns hooks off: nothing is recorded"
		}
	}
	return ""
}

//go:build unix

// Package install adds this program to the configuration of other agents and takes it
// out again. Other entries and comments stay. What each file was before and after is
// kept, so that a file that nothing else changed comes back byte for byte.
package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/statefile"
)

// Places are the directories and programs of one user.
type Places struct {
	Home    string // the user's home directory
	State   string // of this program
	Data    string // ANAMNESIS_HOME, where it is set
	Program string // path of this program
	Root    string // in which an administrator's policies are looked for; empty: "/"
	Getenv  func(string) string
}

// File is a file of an agent's configuration, before and after.
type File struct {
	Path    string   `json:"path"`
	Existed bool     `json:"existed"`
	Before  string   `json:"before"`
	After   string   `json:"after"`
	Own     bool     `json:"own,omitempty"`  // no one else's entries are in it
	Dirs    []string `json:"dirs,omitempty"` // that were made for it
}

// ErrConfig is returned for a configuration that cannot be read.
var ErrConfig = errors.New("configuration that cannot be read; nothing was changed")

func (p *Places) wrapper() string { return filepath.Join(p.State, "beside", "hook.sh") }

func (p *Places) manifest(agent sessions.Agent) string {
	return filepath.Join(p.State, "beside", "install-"+string(agent)+".json")
}

// Command is what an agent runs for each event. It never changes: Codex trusts its
// hash.
func (p *Places) Command(agent sessions.Agent) string {
	return "sh " + Quote(p.wrapper()) + " " + string(agent)
}

// Quote writes a text as one word of a shell.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// script is the wrapper. It ends when the program has answered, and with 0 whatever became of
// the program; where there is more to do, a process that the program starts does it. A shell in
// between would cost as much as the rest of the wrapper. What has not the form of a reply, such
// as the output of another program in its place, is dropped: JSON, and for Kimi Code a text in
// our mark. The agent's own limit ends a program that hangs.
func (p *Places) script() string {
	env := ""
	if p.Data != "" {
		env = "ANAMNESIS_HOME=" + Quote(p.Data) + "; export ANAMNESIS_HOME\n"
	}
	return "#!/bin/sh\n# Written by 'anamnesis install'. It always exits with 0, so that the agent continues.\nexec 2>/dev/null\n" + env +
		"reply=$(trap '' INT QUIT; exec " + Quote(p.Program) + " hook \"$1\" " + Quote(filepath.Join(p.State, "beside")) + ")\n" +
		"case $reply in '{\"'*'}') [ \"$1\" != kimi ] ;; '<anamnesis>'*'</anamnesis>') [ \"$1\" = kimi ] ;; *) false ;; esac && printf '%s' \"$reply\"\nexit 0\n"
}

// Stored says what a recording stores, where, how long, and how large it may get.
func (p *Places) Stored() string {
	limit := "no size limit; ANAMNESIS_STORE_LIMIT=2G, where the agent is started, sets one"
	if set := p.Getenv("ANAMNESIS_STORE_LIMIT"); set != "" && set != "none" {
		limit = "at most " + set + " (ANAMNESIS_STORE_LIMIT), where that is set when the agent is started"
	}
	return "what is stored: each call with its result, and after each step what changed in the directory; no environment; secrets are redacted first\n" +
		"where: " + p.State + ", readable by you alone\n" +
		"what is sent: parts of a discarded path, to the model that your config.yaml names; nothing if it names none\n" +
		"how long: until you delete it, 'anamnesis uninstall AGENT --purge'; 'anamnesis world gc' packs it\n" +
		"how large: the snapshots of one directory have " + limit + "\n" +
		"at the limit steps are recorded without a checkpoint, and the timeline says so"
}

// Plan returns the files that an installation changes; none where it is complete.
func (p *Places) Plan(agent sessions.Agent) ([]File, error) {
	var files []File
	for _, part := range p.parts(agent) {
		before, err := os.ReadFile(part.path)
		existed := err == nil
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		after := part.text
		if part.put != nil {
			after, err = part.put(before)
			if len(bytes.TrimSpace(before)) == 0 && strings.HasSuffix(part.path, ".json") && err == nil {
				after, err = hujson.Format(after)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w: %w", part.path, ErrConfig, err)
			}
		}
		if !bytes.Equal(before, after) || !existed {
			files = append(files, File{Path: part.path, Existed: existed, Before: string(before), After: string(after), Own: part.put == nil})
		}
	}
	return files, nil
}

type patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// edit applies patches to JSON, with comments or not. Where there is none it begins
// with an empty object.
func edit(before []byte, patches ...patch) ([]byte, error) {
	if len(bytes.TrimSpace(before)) == 0 {
		before = []byte("{}")
	}
	v, err := hujson.Parse(before)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(patches)
	if err != nil {
		return nil, err
	}
	if err := v.Patch(data); err != nil {
		return nil, err
	}
	for _, p := range patches {
		if p.Op == "add" {
			ownLine(&v, p.Path)
		}
	}
	return v.Pack(), nil
}

// ownLine puts a member that was added to an object on a line of its own.
func ownLine(v *hujson.Value, path string) {
	obj, ok := v.Find(path[:strings.LastIndex(path, "/")]).Value.(*hujson.Object)
	if !ok {
		return // an array
	}
	indent := "\n" + strings.Repeat("  ", strings.Count(path, "/"))
	if m := &obj.Members[len(obj.Members)-1]; len(m.Name.BeforeExtra) == 0 { // no comment
		m.Name.BeforeExtra = hujson.Extra(indent)
	}
	if len(obj.AfterExtra) == 0 {
		obj.AfterExtra = hujson.Extra(strings.TrimSuffix(indent, "  "))
	}
}

// has reports whether JSON has a value at a path.
func has(data []byte, path string) bool {
	v, err := hujson.Parse(data)
	return err == nil && v.Find(path) != nil
}

func (p *Places) addHooks(agent sessions.Agent, data []byte) ([]byte, error) {
	timeout := hookSeconds
	if agent == sessions.Gemini {
		timeout *= 1000 // it counts in milliseconds
	}
	own := map[string]any{"hooks": []any{map[string]any{"type": "command", "command": p.Command(agent), "timeout": timeout}}}
	var err error
	if !has(data, "/hooks") {
		if data, err = edit(data, patch{"add", "/hooks", map[string]any{}}); err != nil {
			return nil, err
		}
	}
	for _, e := range events[agent] {
		if slices.ContainsFunc(entries(data, e), func(h entry) bool { return h.runs(p.Command(agent)) }) {
			continue
		}
		if !has(data, "/hooks/"+e) {
			data, err = edit(data, patch{"add", "/hooks/" + e, []any{own}})
		} else {
			data, err = edit(data, patch{"add", "/hooks/" + e + "/-", own})
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// entry is one hook of an agent's configuration.
type entry struct {
	Hooks []struct {
		Command string `json:"command"`
	} `json:"hooks"`
}

func (h *entry) runs(command string) bool {
	return len(h.Hooks) == 1 && h.Hooks[0].Command == command
}

// entries lists the hooks of an event.
func entries(data []byte, event string) (list []entry) {
	standard, err := hujson.Standardize(section(data, "/hooks/"+event))
	if err != nil || json.Unmarshal(standard, &list) != nil {
		return nil // none, or in a form that is not ours
	}
	return list
}

// section is the text of a value in JSON; empty if there is none.
func section(data []byte, path string) []byte {
	v, err := hujson.Parse(data)
	if err != nil {
		return nil
	}
	at := v.Find(path)
	if at == nil {
		return nil
	}
	return at.Pack()
}

// Install writes the files of a plan, and what they were.
func (p *Places) Install(agent sessions.Agent, files []File) error {
	earlier, err := p.installed(agent)
	if err != nil {
		return err
	}
	for _, f := range files { // installed anew: the beginning is the older one
		f.Dirs = missing(filepath.Dir(f.Path))
		i := slices.IndexFunc(earlier, func(o File) bool { return o.Path == f.Path })
		if i < 0 {
			earlier = append(earlier, f)
		} else if earlier[i].After == f.Before {
			earlier[i].After = f.After
		} else {
			f.Dirs = append(earlier[i].Dirs, f.Dirs...)
			earlier[i] = f
		}
	}
	data, err := json.Marshal(earlier)
	if err != nil {
		return err
	}
	if err := write(p.manifest(agent), string(data)); err != nil {
		return fmt.Errorf("%w; make it writable and install again", err)
	}
	for _, f := range files {
		if err := write(f.Path, f.After); err != nil {
			return fmt.Errorf("%w; make it writable and install again, or 'anamnesis uninstall %s' takes back what was written", err, agent)
		}
	}
	return nil
}

// missing lists the directories that a path needs and that are not there, the
// outermost first.
func missing(dir string) (dirs []string) {
	for ; !exists(dir) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

func (p *Places) installed(agent sessions.Agent) (files []File, err error) {
	data, err := os.ReadFile(p.manifest(agent))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &files)
	}
	return files, err
}

// PlanRemoval returns the files that an uninstallation changes. A file that nothing
// else changed is as it was before; of another exactly our entries go.
func (p *Places) PlanRemoval(agent sessions.Agent) ([]File, error) {
	files, err := p.installed(agent)
	if err != nil {
		return nil, err
	}
	var out []File
	for _, f := range files {
		now, err := os.ReadFile(f.Path)
		if errors.Is(err, fs.ErrNotExist) || f.Path == p.wrapper() {
			continue
		}
		if err != nil {
			return nil, err
		}
		change := File{Path: f.Path, Existed: f.Existed, Before: string(now), After: f.Before, Dirs: f.Dirs}
		if string(now) != f.After && !f.Own {
			after, err := p.withoutOurs(agent, f, now)
			if err != nil {
				return nil, fmt.Errorf("%s: %w: %w", f.Path, ErrConfig, err)
			}
			change.Existed, change.After = true, string(after)
		}
		if change.Existed && change.Before == change.After {
			continue // an installation that failed did not reach it, or the user took our entries out
		}
		out = append(out, change)
	}
	if now, err := os.ReadFile(p.wrapper()); err == nil && len(files) > 0 && !p.otherUses(agent) {
		out = append(out, File{Path: p.wrapper(), Before: string(now)})
	}
	return out, nil
}

// otherUses reports whether the wrapper serves another agent, too.
func (p *Places) otherUses(agent sessions.Agent) bool {
	return slices.ContainsFunc(Agents(), func(o sessions.Agent) bool {
		_, err := os.Stat(p.manifest(o))
		return o != agent && err == nil
	})
}

// withoutOurs removes our entries from a file of which something else was changed, and
// what they made necessary.
func (p *Places) withoutOurs(agent sessions.Agent, f File, data []byte) ([]byte, error) {
	if strings.HasSuffix(f.Path, ".toml") {
		before, rest, ok := bytes.Cut(data, []byte(tableBegin))
		_, after, end := bytes.Cut(rest, []byte(tableEnd))
		if !ok || !end {
			return data, nil
		}
		return slices.Concat(before, after), nil
	}
	var err error
	for _, e := range events[agent] {
		list, ours := entries(data, e), 0
		for i, h := range slices.Backward(list) {
			if h.runs(p.Command(agent)) {
				ours++
				if data, err = edit(data, patch{Op: "remove", Path: fmt.Sprintf("/hooks/%s/%d", e, i)}); err != nil {
					return nil, err
				}
			}
		}
		if ours > 0 && ours == len(list) {
			if data, err = edit(data, patch{Op: "remove", Path: "/hooks/" + e}); err != nil {
				return nil, err
			}
		}
	}
	if at := serverPath(agent) + "/anamnesis"; bytes.Contains(section(data, at), []byte(`"serve"`)) {
		if data, err = edit(data, patch{Op: "remove", Path: at}); err != nil {
			return nil, err
		}
	}
	for _, made := range []string{"/hooks", serverPath(agent)} {
		if !has([]byte(f.Before), made) && emptyObject(section(data, made)) {
			if data, err = edit(data, patch{Op: "remove", Path: made}); err != nil {
				return nil, err
			}
		}
	}
	return data, nil
}

func emptyObject(data []byte) bool {
	var members map[string]any
	standard, err := hujson.Standardize(data)
	return err == nil && json.Unmarshal(standard, &members) == nil && members != nil && len(members) == 0
}

// Uninstall makes the changes of a plan.
func (p *Places) Uninstall(agent sessions.Agent, files []File) error {
	for _, f := range files {
		var err error
		if f.Existed {
			err = write(f.Path, f.After)
		} else {
			err = os.Remove(f.Path)
		}
		if err != nil {
			return fmt.Errorf("%w; make it writable and uninstall again: what was removed stays removed, and the recordings stay", err)
		}
		for _, dir := range slices.Backward(f.Dirs) {
			if os.Remove(dir) != nil {
				break // it holds something else
			}
		}
	}
	if err := os.Remove(p.manifest(agent)); err != nil || p.otherUses(agent) {
		return err
	}
	if err := os.Remove(p.wrapper()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// write replaces a file.
func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err // that names the folder, which may be the home's
	}
	err := statefile.Rewrite(path, []byte(text), 0o600)
	if err == nil {
		return nil
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return fmt.Errorf("cannot write %s: %w", path, err)
}

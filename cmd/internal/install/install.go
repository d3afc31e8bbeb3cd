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
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/sessions"
)

// Places are the directories and programs of one user.
type Places struct {
	Home    string // the user's home directory
	State   string // of this program
	Data    string // ANAMNESIS_HOME, where it is set
	Program string // path of this program
	Root    string // in which an administrator's policies are looked for; empty: "/"
	Getenv  func(string) string
	Allow   bool // the agent may call the read-only tools without a question
}

// File is a file of an agent's configuration, before and after.
type File struct {
	Path    string   `json:"path"`
	Existed bool     `json:"existed"`
	Before  string   `json:"before"`
	After   string   `json:"after"`
	Own     bool     `json:"own,omitempty"`  // no one else's entries are in it
	Dirs    []string `json:"dirs,omitempty"` // that were made for it

	original *File // what it was before the first installation; nil: as Before and Existed say
}

// maxConfigBytes is how much of a configuration is read. Claude Code keeps histories in one.
const maxConfigBytes = 256 << 20

// ErrConfig is returned for a configuration that cannot be read, or not be changed without a change of other entries.
var ErrConfig = errors.New("configuration that cannot be edited")

func (p *Places) wrapper() string { return filepath.Join(p.State, "beside", "hook.sh") }

func (p *Places) manifest(agent sessions.Agent) string {
	return filepath.Join(p.State, "beside", "install-"+string(agent)+".json")
}

// Command is what an agent runs for each event, in whichever shell. Agents read exit code 2, which
// shells give for a missing script, as "block": the trap makes it 0 if the wrapper, or its folder,
// is gone or damaged. exec replaces the agent's shell, so that an agent that ends a hook ends the
// wrapper. The text must not change between versions, since Codex trusts it by its hash.
func (p *Places) Command(agent sessions.Agent) string {
	return `exec /bin/sh -c 'trap "exit 0" 0; exec 2>/dev/null; . "$0"' ` +
		shell.Quote(p.wrapper()) + " " + string(agent)
}

// script is the wrapper. It ends with 0 when the program has answered or failed; the program leaves
// longer work to another process. It runs the program by exec, since another shell would cost as
// much as the rest of the wrapper. A reply is JSON, or for Kimi Code a text in our mark; other
// output, such as that of another program in its place, is dropped. The agent's own limit ends a
// program that hangs.
func (p *Places) script() string {
	env := ""
	if p.Data != "" {
		env = "ANAMNESIS_HOME=" + shell.Quote(p.Data) + "; export ANAMNESIS_HOME\n"
	}
	return "#!/bin/sh\n# Written by 'anamnesis install'. It always exits with 0, so that the agent continues.\n" +
		"exec 2>/dev/null\n" + env +
		"reply=$(trap '' INT QUIT; exec " + shell.Quote(p.Program) + " hook \"$1\")\n" +
		"case $reply in '{\"'*'}') [ \"$1\" != kimi ] ;; '<anamnesis>'*'</anamnesis>') [ \"$1\" = kimi ] ;; " +
		"*) false ;; esac && printf '%s' \"$reply\"\nexit 0\n"
}

// Stored says what a recording stores, where, how long, and how large it may get.
func (p *Places) Stored() string {
	limit := "no size limit; ANAMNESIS_STORE_LIMIT=2G, where the agent is started, sets one"
	if set := p.Getenv("ANAMNESIS_STORE_LIMIT"); set != "" && set != "none" {
		limit = "at most " + set + " (ANAMNESIS_STORE_LIMIT), where that is set when the agent is started"
	}
	return "what is stored: each call with its result, and after each step what changed in the directory; " +
		"no environment; secrets are redacted first\n" +
		"where: " + p.State + ", readable by you alone\n" +
		"what is sent: parts of a discarded path, to the model that your config.yaml names, if it names one\n" +
		"how long: until you delete it, 'anamnesis uninstall AGENT --purge'; 'anamnesis world gc' packs it\n" +
		"how large: the snapshots of one directory have " + limit + "\n" +
		"at the limit steps are recorded without a checkpoint, and the timeline says so"
}

// Plan returns the files that an installation changes; none where it is complete.
func (p *Places) Plan(agent sessions.Agent) ([]File, error) {
	if at := p.Program + p.State; !utf8.ValidString(at) {
		return nil, fmt.Errorf("%q is not UTF-8, so that no configuration can name it: %w", at, ErrConfig)
	}
	earlier := p.installed(agent)
	var files []File
	for _, part := range p.parts(agent) {
		data, existed, err := read(part.path)
		if err != nil {
			return nil, err
		}
		f := File{Path: part.path, Existed: existed, Before: string(data),
			After: string(part.text), Own: part.text != nil}
		i := slices.IndexFunc(earlier, func(o File) bool { return o.Path == part.path })
		// A recorded original holds only while nothing else has changed the file since. Otherwise the original of a
		// configuration is the present one without our entries.
		switch {
		case i >= 0 && (f.Own || earlier[i].After == f.Before):
			f.original = &earlier[i]
		case f.Own && part.isOurs(data):
			f.original = &File{}
		}
		if !f.Own {
			after, clean, err := p.add(agent, part, data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w: %w", part.path, ErrConfig, err)
			}
			if f.After = string(after); f.original == nil {
				f.original = &File{Existed: existed, Before: string(clean)}
			}
		}
		if f.Before != f.After || !existed {
			files = append(files, f)
		}
	}
	return files, nil
}

// read reads a file that may be absent. A link to nothing is an error: it would be replaced.
func read(path string) (data []byte, existed bool, err error) {
	data, err = durable.ReadFile(path, maxConfigBytes)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err == nil, err
	}
	for at := path; at != filepath.Dir(at) && !exists(at); at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, false, fmt.Errorf("%s is a link to a file that does not exist: %w; create or remove it", at,
				ErrConfig)
		}
	}
	return nil, false, nil
}

// values returns what the part's file holds, as far as it can be read.
func (p *part) values() map[string]any {
	data, _, _ := read(p.path)
	root, _ := parse(p.path, data)
	return root
}

// pluginHook matches the wrapper in opencode's plugin.
var pluginHook = regexp.MustCompile(`(?m)^const HOOK = ("(?:[^"\\]|\\.)*")$`)

// wrappers lists the wrappers that the part's file runs.
func (p *part) wrappers() (all []string) {
	if data, _, _ := read(p.path); strings.HasSuffix(p.path, ".js") {
		var w string
		if m := pluginHook.FindSubmatch(data); m != nil && json.Unmarshal(m[1], &w) == nil {
			all = []string{w}
		}
		return all
	}
	for _, h := range hooksIn(p.values()) {
		if w := wrapperOf(h.command); w != "" && !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// isOurs reports whether a file has the form of a file of our own.
func (p *part) isOurs(data []byte) bool {
	if strings.HasSuffix(p.path, ".json") {
		root, err := parse(p.path, data)
		return err == nil && p.has(root)
	}
	head := bytes.SplitAfterN(p.text, []byte("\n"), 3) // further lines differ between versions
	return bytes.HasPrefix(data, bytes.Join(head[:2], nil))
}

// add returns a configuration with our entries, and without them. Before it is written it is
// checked by another parser that nothing else differs, and that a removal takes all of it back.
func (p *Places) add(agent sessions.Agent, part part, data []byte) (after, clean []byte, err error) {
	if !utf8.Valid(data) {
		return nil, nil, errors.New("it holds a byte that is not UTF-8")
	}
	root, err := parse(part.path, data)
	if err != nil {
		return nil, nil, err
	}
	clean, err = part.remove(data)
	// Rules that an earlier installation added stay if --allow-reads is not given again.
	if part.rules = rulesIn(root); p.Allow && agent == sessions.Claude {
		part.rules = nil
		for _, tool := range readOnlyTools {
			part.rules = append(part.rules, rulePrefix+tool)
		}
	}
	if p.complete(agent, part, root) { // also where it is in a form that nothing is taken out of
		return data, clean, nil
	}
	if err != nil {
		return nil, nil, err
	}
	older, ours := part.server(root)
	if !ours {
		older = nil
	}
	mark, begin := []byte(nil), clean
	if bytes.HasPrefix(begin, bom) {
		mark, begin = bom, begin[len(bom):]
	}
	if strings.HasSuffix(part.path, ".toml") {
		after, err = p.addTOML(agent, part, begin, older)
	} else {
		if len(bytes.TrimSpace(begin)) == 0 {
			begin = []byte("{}\n")
		}
		after, err = p.addJSON(agent, part, begin, older)
	}
	if err != nil {
		return nil, nil, err
	}
	after, begin = slices.Concat(mark, after), slices.Concat(mark, begin)
	root, err = parse(part.path, after) // read again as the agent will read it
	if err == nil && !p.complete(agent, part, root) {
		err = errors.New("another entry hides what is added")
	}
	if err == nil && !part.sameOthers(data, after) {
		err = errors.New("other entries would change")
	}
	if _, failed := part.remove(after); err == nil {
		err = failed
	}
	if err != nil {
		added, _ := bytes.CutPrefix(after, begin)
		return nil, nil, fmt.Errorf("it has a form that cannot be added to (%w); write into it yourself:\n%s", err,
			added)
	}
	return after, clean, nil
}

// remove takes our entries out of a configuration. What remains is checked by another parser.
func (p *part) remove(data []byte) ([]byte, error) {
	root, err := parse(p.path, data)
	if err != nil {
		return nil, err
	}
	if !p.has(root) {
		return data, nil
	}
	mark, text := []byte(nil), data
	if bytes.HasPrefix(text, bom) {
		mark, text = bom, text[len(bom):]
	}
	edit := p.removeJSON
	if strings.HasSuffix(p.path, ".toml") {
		edit = p.removeTOML
	}
	rest, err := edit(text)
	if err != nil {
		return nil, err
	}
	if root, err = parse(p.path, rest); err != nil || p.has(root) || !p.sameOthers(data, rest) {
		return nil, errors.New("our entry cannot be separated from yours")
	}
	return slices.Concat(mark, rest), nil
}

// Install writes the files of a plan, and what they were.
func (p *Places) Install(agent sessions.Agent, files []File) error {
	earlier := p.installed(agent)
	for _, f := range files { // a second installation keeps the original of the first
		record := f
		record.Dirs = missing(filepath.Dir(f.Path))
		if f.original != nil {
			record.Existed, record.Before = f.original.Existed, f.original.Before
		}
		if i := slices.IndexFunc(earlier, func(o File) bool { return o.Path == f.Path }); i < 0 {
			earlier = append(earlier, record)
		} else {
			record.Dirs = append(earlier[i].Dirs, record.Dirs...)
			earlier[i] = record
		}
	}
	data, err := json.Marshal(earlier)
	if err != nil {
		return err
	}
	// The originals are recorded before the first file changes, so that an interrupted installation can be undone.
	if err := write(p.manifest(agent), string(data)); err != nil {
		return fmt.Errorf("%w; make it writable and install again", err)
	}
	for _, f := range files {
		err := f.unchanged()
		if err == nil {
			err = write(f.Path, f.After)
		}
		if err != nil {
			return fmt.Errorf("%w; make it writable and install again, or 'anamnesis uninstall %s' takes back "+
				"what was written", err, agent)
		}
	}
	return nil
}

// unchanged returns an error if a file is not as the plan found it: agents write their configuration at any time.
func (f *File) unchanged() error {
	data, _, err := read(f.Path)
	if err == nil && string(data) != f.Before {
		err = fmt.Errorf("%s has changed since it was read: try again", f.Path)
	}
	return err
}

// missing lists the directories that a path needs and that are not there, the
// outermost first.
func missing(dir string) (dirs []string) {
	for ; !exists(dir) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

// installed returns what an installation wrote: of this state folder, or else of one whose hooks the
// agent has. Where that cannot be read, entries are recognised by their form alone.
func (p *Places) installed(agent sessions.Agent) (files []File) {
	manifests := []string{p.manifest(agent)}
	for _, part := range p.parts(agent) {
		for _, w := range part.wrappers() {
			manifests = append(manifests, filepath.Join(filepath.Dir(w), filepath.Base(manifests[0])))
		}
	}
	for _, path := range manifests {
		data, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(data, &files) == nil {
			return files
		}
		files = nil
	}
	return nil
}

// PlanRemoval returns the files that an uninstallation changes, and in problem those that it cannot
// free of our entries. A file that nothing else changed is as it was before; of another exactly our
// entries go. They are recognised by their form, whichever state folder they name.
func (p *Places) PlanRemoval(agent sessions.Agent) (files []File, problem error) {
	earlier := p.installed(agent)
	for _, part := range p.allParts(agent, earlier) {
		if part.path == p.wrapper() {
			continue
		}
		i := slices.IndexFunc(earlier, func(o File) bool { return o.Path == part.path })
		var f File
		if i >= 0 {
			f = earlier[i]
		}
		now, existed, err := read(part.path)
		change := File{Path: part.path, Existed: f.Existed, Before: string(now), After: f.Before,
			Own: part.text != nil, Dirs: f.Dirs}
		switch {
		case err == nil && !existed, change.Own && i < 0 && !part.isOurs(now):
			continue
		case change.Own && i < 0:
			change.Dirs = p.ownDirs(agent, part.path)
		case !change.Own && (i < 0 || err != nil || f.After != change.Before):
			var rest []byte
			if err == nil {
				rest, err = part.removeAll(now)
			}
			if err != nil {
				problem = errors.Join(problem, fmt.Errorf("%s: %w", part.path, err))
				continue
			}
			// A file that an installation made goes if nothing is left in it.
			change.Existed = i < 0 || f.Existed || len(bytes.Trim(rest, "{}"+blank)) > 0
			if !change.Existed {
				rest = nil
			}
			change.After = string(rest)
		}
		if info, err := os.Lstat(part.path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			change.Existed = true // the link is the user's
		}
		if !change.Existed || change.Before != change.After {
			files = append(files, change)
		}
	}
	if now, existed, err := read(p.wrapper()); err == nil && existed && problem == nil &&
		!needWrapper(files) && !p.otherUses(agent) {
		files = append(files, File{Path: p.wrapper(), Before: string(now)})
	}
	return files, problem
}

// allParts lists the files of an installation, with those that an earlier one wrote elsewhere, as
// where CLAUDE_CONFIG_DIR was set.
func (p *Places) allParts(agent sessions.Agent, earlier []File) []part {
	all := p.parts(agent)
	for _, f := range earlier {
		if filepath.Base(f.Path) == filepath.Base(p.wrapper()) ||
			slices.ContainsFunc(all, func(part part) bool { return part.path == f.Path }) {
			continue
		}
		other := part{path: f.Path}
		for _, part := range p.parts(agent) {
			if strings.TrimSuffix(filepath.Base(part.path), "c") == strings.TrimSuffix(filepath.Base(f.Path), "c") {
				other.servers = part.servers
			}
		}
		if f.Own {
			other.text = []byte(f.After)
		}
		all = append(all, other)
	}
	return all
}

// needWrapper reports whether a removal takes out hooks of an older version. Agents that run have read
// them at their start, and such a hook blocks its agent when its wrapper is gone.
func needWrapper(files []File) bool {
	return slices.ContainsFunc(files, func(f File) bool {
		return strings.Contains(f.Before, "\"sh '") && strings.Contains(f.Before, wrapperName)
	})
}

// removeAll is remove for a file that may be damaged, or run our hook in a form that no installation wrote.
func (p *part) removeAll(now []byte) ([]byte, error) {
	rest, err := p.remove(now)
	switch named := bytes.Contains(now, []byte("anamnesis")) || bytes.Contains(now, []byte(wrapperName)); {
	case err != nil && named:
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	case err != nil:
		return now, nil
	}
	root, err := parse(p.path, rest)
	if err == nil {
		for _, h := range hooksIn(root) {
			if runsWrapper.MatchString(h.command) {
				err = fmt.Errorf("%w: the %s hook %q contains ours in a form that 'install' did not write: "+
					"remove it yourself", ErrConfig, h.event, h.command)
			}
		}
	}
	return rest, err
}

// ownDirs lists the folders with our name above a file of our own.
func (p *Places) ownDirs(agent sessions.Agent, path string) (dirs []string) {
	for dir := filepath.Dir(path); slices.Contains(strings.Split(strings.TrimPrefix(dir, p.dir(agent)), "/"),
		"anamnesis"); dir = filepath.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

// otherUses reports whether the wrapper serves another agent, too.
func (p *Places) otherUses(agent sessions.Agent) bool {
	return slices.ContainsFunc(sessions.Agents(), func(o sessions.Agent) bool { return o != agent && p.uses(o) })
}

// uses reports whether a file of an agent names a wrapper, or may, since it cannot be read.
func (p *Places) uses(agent sessions.Agent) bool {
	return slices.ContainsFunc(p.allParts(agent, p.installed(agent)), func(part part) bool {
		data, _, err := read(part.path)
		return part.path != p.wrapper() && (err != nil || bytes.Contains(data, []byte(wrapperName)))
	})
}

// Uninstall makes the changes of a plan, all that it can. The wrapper goes when no agent names it any more.
func (p *Places) Uninstall(agent sessions.Agent, files []File) error {
	var failed error
	for _, f := range files {
		if f.Path == p.wrapper() {
			continue
		}
		err := f.unchanged()
		switch {
		case err == nil && f.Existed:
			err = write(f.Path, f.After)
		case err == nil:
			err = os.Remove(f.Path)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf(
				"%w; make it writable and uninstall again: what was removed stays removed, and the recordings stay",
				err))
			continue
		}
		removeDirs(f.Dirs)
	}
	// The originals are kept until every file is changed back, since the next try needs them.
	if failed != nil || p.uses(agent) {
		return failed
	}
	if err := os.Remove(p.manifest(agent)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if needWrapper(files) || p.otherUses(agent) {
		return nil
	}
	if err := os.Remove(p.wrapper()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func removeDirs(dirs []string) {
	for _, dir := range slices.Backward(dirs) {
		if os.Remove(dir) != nil {
			break // it holds something else
		}
	}
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err // that names the folder, which may be the home's
	}
	err := durable.Rewrite(path, []byte(text), 0o600)
	if err == nil {
		return nil
	}
	// Both would name a temporary file.
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		err = file.Err
	} else if name, ok := errors.AsType[*os.LinkError](err); ok {
		err = name.Err
	}
	return fmt.Errorf("cannot write %s: %w", path, err)
}

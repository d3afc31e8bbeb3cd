package agent

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/orchestrator/remedy"
)

//go:embed agents
var embedded embed.FS

// ProjectDir is the folder of a project's agents, in the project's root.
const ProjectDir = ".anamnesis/agents"

// suffix ends the names of specs' files.
const suffix = ".yaml"

// ErrUnknown: there is no agent of that name.
var ErrUnknown = errors.New("no such agent")

// Scope is the origin of a file.
type Scope string

// The scopes, from the nearest to the farthest.
const (
	ScopeProject  Scope = "project"  // in the project's directory
	ScopeUser     Scope = "user"     // any other file
	ScopeEmbedded Scope = "embedded" // came with the program
)

// embeddedPrefix begins the names of files that came with the program.
const embeddedPrefix = "embedded:"

// place is a file's location: path is absolute, or relative to agents/.
type place struct {
	scope Scope
	path  string
}

func (p place) String() string {
	if p.scope == ScopeEmbedded {
		return embeddedPrefix + p.path
	}
	return p.path
}

// name returns the agent's name that the file's name implies.
func (p place) name() string { return strings.TrimSuffix(filepath.Base(p.path), suffix) }

func (l *Loader) find(ref string) (place, error) {
	if at, ok := ownFile(ref); ok {
		return at, nil
	}
	if !isPath(ref) {
		return l.named(ref, ScopeProject)
	}
	abs, err := filepath.Abs(ref)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return place{}, fmt.Errorf("%w: %s: %s", ErrUnknown, ref, readFault(err))
	}
	return l.placeOf(abs), nil
}

// ownFile returns the file of embedded:FILE, with .yaml if it has no ending,
// and false for any other reference.
func ownFile(ref string) (place, bool) {
	file, ok := strings.CutPrefix(ref, embeddedPrefix)
	if filepath.Ext(file) == "" {
		file += suffix
	}
	return place{ScopeEmbedded, file}, ok
}

// isPath reports whether a reference names a file rather than an agent.
func isPath(ref string) bool {
	return strings.HasPrefix(ref, embeddedPrefix) || strings.ContainsRune(ref, '/') || strings.HasSuffix(ref, suffix)
}

func (l *Loader) placeOf(abs string) place {
	if l.opts.Project != "" {
		if rel, err := filepath.Rel(l.opts.Project, abs); err == nil && filepath.IsLocal(rel) {
			return place{ScopeProject, abs}
		}
	}
	return place{ScopeUser, abs}
}

// scopes returns the scopes in which a name is searched, beginning with one scope.
func scopes(from Scope) []Scope {
	all := []Scope{ScopeProject, ScopeUser, ScopeEmbedded}
	return all[slices.Index(all, from):]
}

// folder returns the folder of a scope's specs; empty if it has none.
func (l *Loader) folder(s Scope) string {
	switch {
	case s == ScopeProject && l.opts.Project != "":
		return filepath.Join(l.opts.Project, ProjectDir)
	case s == ScopeUser:
		return l.opts.User
	}
	return ""
}

// named finds a spec by its name in a scope or a farther one.
func (l *Loader) named(name string, from Scope) (place, error) {
	if err := checkName(name); err != nil {
		return place{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	for _, s := range scopes(from) {
		if s == ScopeEmbedded {
			if _, err := fs.Stat(embedded, "agents/"+name+suffix); err == nil {
				return place{s, name + suffix}, nil
			}
			continue
		}
		folder := l.folder(s)
		if folder == "" {
			continue
		}
		path := filepath.Join(folder, name+suffix)
		if _, err := os.Lstat(path); err == nil {
			return place{s, path}, nil
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return place{}, fmt.Errorf("look for agent %s: %w", name, err)
		}
	}
	return place{}, remedy.With(fmt.Errorf("%w: %q", ErrUnknown, name), remedy.ListAgents, "")
}

// Entry is an agent that can be named.
type Entry struct {
	Name  string
	Scope Scope
	From  string // its file, or embedded:NAME.yaml
}

// Find resolves a name or a file to a spec without reading it.
func (l *Loader) Find(ref string) (Entry, error) {
	at, err := l.find(ref)
	return Entry{at.name(), at.scope, at.String()}, err
}

// List returns the agents that can be named, sorted. Of several with one name it has the
// nearest.
func (l *Loader) List() ([]Entry, error) {
	var out []Entry
	seen := make(map[string]bool)
	for _, s := range scopes(ScopeProject) {
		names, err := l.namesIn(s)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			at, err := l.named(name, s)
			if err != nil {
				return nil, err
			}
			out = append(out, Entry{name, at.scope, at.String()})
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (l *Loader) namesIn(s Scope) ([]string, error) {
	var entries []fs.DirEntry
	var err error
	if folder := l.folder(s); s == ScopeEmbedded {
		entries, err = embedded.ReadDir("agents")
	} else if folder != "" {
		entries, err = os.ReadDir(folder)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok && checkName(name) == nil {
			names = append(names, name)
		}
	}
	if len(names) > maxItems {
		return nil, fmt.Errorf("list agents: %s has more than %d", l.folder(s), maxItems)
	}
	return names, nil
}

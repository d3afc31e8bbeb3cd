package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/opstream/durable"
)

// Options set where specs are looked for.
type Options struct {
	// Project is the directory an agent works in, absolute and without links; empty: none.
	Project string
	// User is the folder of the user's own specs; it need not exist.
	User string
	// Tools are the names of the known tools; nil: names are not checked.
	Tools []string
}

// Loader finds and resolves specs.
type Loader struct{ opts Options }

// NewLoader returns a loader; with nil options it finds only the embedded agents.
func NewLoader(o *Options) *Loader {
	l := new(Loader)
	if o != nil {
		l.opts = *o
	}
	return l
}

// Loaded is a spec and its origin.
type Loaded struct {
	Spec  Spec
	Scope Scope

	project string
	brought []broughtFile // what of it the project brings, in the order it was read
}

// broughtFile is a file of a spec that the project brought.
type broughtFile struct {
	path string // relative to the project
	data []byte
}

// loading is the state of one call of Load: the files it read.
type loading struct {
	*Loader
	out *Loaded
}

// Load resolves the spec of a name, or of a file if ref has a slash or ends in .yaml.
// embedded:NAME is the program's own, even if another has the same name. Errors are
// ErrUnknown, *Error for a fault in a file, or those of reading.
func (l *Loader) Load(ref string) (*Loaded, error) {
	at, err := l.find(ref)
	if err != nil {
		return nil, err
	}
	in := loading{l, &Loaded{Scope: at.scope, project: l.opts.Project}}
	if in.out.Spec, err = in.resolve(at); err != nil {
		return nil, err
	}
	return in.out, nil
}

// refer resolves what a file refers to. Its own name means the next agent of that name, so
// that a spec can extend the one it replaces.
func (in loading) refer(from place, ref string) (place, error) {
	if isPath(ref) {
		return in.beside(from, ref)
	}
	scope := from.scope
	if ref == from.name() && scope != ScopeEmbedded {
		return in.named(ref, scopes(scope)[1])
	}
	return in.named(ref, scope)
}

// beside returns the place of a path that a file names, relative to it. Every file may name
// the embedded ones.
func (in loading) beside(from place, ref string) (place, error) {
	if at, ok := ownFile(ref); ok {
		return at, nil
	}
	if from.scope == ScopeEmbedded {
		return place{ScopeEmbedded, ref}, nil
	}
	path := ref
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(from.path), ref)
	}
	if to := in.placeOf(path); to.scope == ScopeProject || from.scope == ScopeUser {
		return to, nil
	}
	return place{}, fmt.Errorf("%s is outside the project: a project's agent may name only its own files", ref)
}

// read returns a file's bytes, and records a file that the project brought.
func (in loading) read(at place, most int64) ([]byte, error) {
	switch at.scope {
	case ScopeEmbedded:
		return embedded.ReadFile("agents/" + at.path)
	case ScopeUser:
		return durable.ReadFile(at.path, most)
	}
	rel, err := filepath.Rel(in.opts.Project, at.path)
	if err != nil {
		return nil, err
	}
	data, err := durable.ReadWithin(in.opts.Project, rel, most)
	if err == nil {
		in.out.brought = append(in.out.brought, broughtFile{rel, data})
	}
	return data, err
}

// resolve reads a spec, what it extends, its prompt and its subagents.
func (in loading) resolve(at place) (Spec, error) {
	spec, chain, err := in.alone(at)
	if err == nil {
		err = in.subagents(&spec, chain)
	}
	if err == nil {
		err = hash(&spec)
	}
	return spec, err
}

// alone is resolve without subagents and hash. It also returns what it read.
func (in loading) alone(at place) (Spec, []link, error) {
	chain, err := in.chain(at)
	if err != nil {
		return Spec{}, nil, err
	}
	var spec Spec
	for _, link := range slices.Backward(chain) {
		spec = link.over(spec)
	}
	spec.Name, spec.From = chain[0].Name.text, at.String()
	spec.Name = cmp.Or(spec.Name, at.name())
	return spec, chain, in.prompt(&spec, chain)
}

// link is a layer and its place.
type link struct {
	*layer
	at place
}

// chain reads a spec and those it extends, itself first.
func (in loading) chain(at place) ([]link, error) {
	var chain []link
	for {
		data, err := in.read(at, maxSpecBytes)
		if err != nil {
			if len(chain) > 0 {
				l := chain[len(chain)-1]
				return nil, decoder{file: l.at.String()}.fail(l.Extends.line, "%s: %s: %s", keyExtends, l.Extends.text,
					readFault(err))
			}
			return nil, &Error{File: at.String(), Text: readFault(err)}
		}
		d := decoder{at.String(), in.opts.Tools}
		l, err := d.decode(data)
		if err != nil {
			return nil, err
		}
		chain = append(chain, link{l, at})
		if l.Extends.line == 0 {
			return chain, nil
		}
		next, err := in.refer(at, l.Extends.text)
		if err != nil {
			return nil, d.fail(l.Extends.line, "%s: %v", keyExtends, err)
		}
		if i := slices.IndexFunc(chain, func(l link) bool { return l.at == next }); i >= 0 {
			var names []string
			for _, l := range chain[i:] {
				names = append(names, l.at.name())
			}
			return nil, d.fail(l.Extends.line, "%s: a circle: %s → %s", keyExtends,
				strings.Join(names, " → "), next.name())
		}
		if len(chain) == maxExtends {
			return nil, d.fail(l.Extends.line, "%s: more than %d specs one over the other", keyExtends, maxExtends)
		}
		at = next
	}
}

// readFault returns why a file could not be read, without its path.
func readFault(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file"
	} else if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}

// prompt reads the prompt of the first of a chain that names one.
func (in loading) prompt(s *Spec, chain []link) error {
	for _, l := range chain {
		if l.Prompt.line == 0 {
			continue
		}
		d := decoder{file: l.at.String()}
		at, err := in.beside(l.at, l.Prompt.text)
		if err != nil {
			return d.fail(l.Prompt.line, "%s: %v", keyPrompt, err)
		}
		data, err := in.read(at, maxPromptBytes)
		if err != nil {
			return d.fail(l.Prompt.line, "%s: %s: %s", keyPrompt, l.Prompt.text, readFault(err))
		}
		s.Prompt = strings.ToValidUTF8(string(data), "\uFFFD")
		if strings.TrimSpace(s.Prompt) == "" {
			return d.fail(l.Prompt.line, "%s: %s is empty", keyPrompt, l.Prompt.text)
		}
		return checkPrompt(at.String(), s.Prompt, s.Args)
	}
	return &Error{File: chain[0].at.String(), Text: "no " + keyPrompt + ": name a file, or extend an agent that has " +
		"one, such as " + keyExtends + ": " + Default}
}

// subagents resolves the subagents of the first of a chain that names any.
func (in loading) subagents(s *Spec, chain []link) error {
	for _, l := range chain {
		if len(l.Subagents) == 0 {
			continue
		}
		byName := func(a, b value) int { return strings.Compare(a.text, b.text) }
		for _, key := range slices.SortedFunc(maps.Keys(l.Subagents), byName) {
			name, r := key.text, l.Subagents[key]
			d := decoder{file: l.at.String()}
			at, err := in.refer(l.at, r.path.text)
			if err != nil {
				return d.fail(r.path.line, "%s: %s: %v", keySubagents, name, err)
			}
			sub, _, err := in.alone(at)
			if fault, ok := errors.AsType[*Error](err); ok && fault.Line == 0 {
				return d.fail(r.path.line, "%s: %s: %v", keySubagents, name, err)
			} else if err != nil {
				return err
			}
			sub.Name = name
			if r.description.line > 0 {
				sub.Description = r.description.text
			}
			if sub.Description == "" {
				return d.fail(r.path.line, "%s: %s has no %s: say when to use it", keySubagents, name, keyDescription)
			}
			if err := hash(&sub); err != nil {
				return err
			}
			s.Subagents = append(s.Subagents, sub)
		}
		return nil
	}
	return nil
}

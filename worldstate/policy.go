package worldstate

import (
	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// policy is a snapshot's frozen rules: outer apply everywhere, files by the
// directory that holds them.
type policy struct {
	outer ignore.Chain
	files map[string]ignore.Rules
}

// ignored asks for any path, its parents included.
func (p *policy) ignored(path string, isDir bool) bool {
	c := p.outer
	if r, ok := p.files[""]; ok {
		c = c.With(r)
	}
	hit := false
	fsys.Ancestors(path, func(d string) bool {
		if alwaysIgnored(fsys.Base(d)) || c.Ignored(d, true) {
			hit = true
			return false
		}
		if r, ok := p.files[d]; ok {
			c = c.With(r)
		}
		return true
	})
	return hit || alwaysIgnored(fsys.Base(path)) || c.Ignored(path, isDir)
}

// alwaysIgnored are the names no snapshot ever holds, at any depth.
func alwaysIgnored(name string) bool { return name == ".git" || name == ".anamnesis" }

// policyOf gives a snapshot's frozen ignore rules, from memory when they were
// used lately.
func (w *World) policyOf(c *gitfmt.Commit, l *listing) (*policy, error) {
	for _, r := range w.policies {
		if r.of == c.Id {
			return r.policy, nil
		}
	}
	p, err := w.loadPolicy(c, l, func(e *entry) ([]byte, error) { return w.objects.read(e.hash, gitfmt.BlobObject, e.path) })
	if err != nil {
		return nil, err
	}
	if len(w.policies) == maxRecent {
		w.policies = w.policies[1:]
	}
	w.policies = append(w.policies, recentPolicy{c.Id, p})
	return p, nil
}

func (w *World) loadPolicy(c *gitfmt.Commit, l *listing, read func(*entry) ([]byte, error)) (*policy, error) {
	p := &policy{files: map[string]ignore.Rules{}}
	for _, r := range c.Rules {
		if r.Base == "" { // above the world, info/exclude, or its own root's, in this order
			p.outer = p.outer.With(ignore.Rules{Up: r.Up, Patterns: r.Patterns})
			continue
		}
		p.files[r.Base] = ignore.Rules{Base: r.Base, Patterns: r.Patterns}
	}
	for e := range l.named(".gitignore") {
		d := fsys.Dir(e.path)
		if _, frozen := p.files[d]; frozen || e.kind != kindFile {
			continue // frozen with the rules of a repository inside
		}
		data, err := read(e)
		if err != nil {
			return nil, err
		}
		if len(data) <= maxIgnoreBytes {
			p.files[d] = ignore.Parse(d, "", data)
		}
	}
	return p, nil
}

package tree

import (
	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Policy holds a snapshot's frozen ignore rules: outer apply everywhere, files by directory.
type Policy struct {
	outer ignore.Chain
	files map[string]ignore.Rules
}

// Ignored reports whether a path or one of its parents is ignored.
func (p *Policy) Ignored(path string, isDir bool) bool {
	c := p.outer
	if r, ok := p.files[""]; ok {
		c = c.With(r)
	}
	hit := false
	fsys.Ancestors(path, func(d string) bool {
		if AlwaysIgnored(fsys.Base(d)) || c.Ignored(d, true) {
			hit = true
			return false
		}
		if r, ok := p.files[d]; ok {
			c = c.With(r)
		}
		return true
	})
	return hit || AlwaysIgnored(fsys.Base(path)) || c.Ignored(path, isDir)
}

// AlwaysIgnored reports whether no snapshot holds files of this name.
func AlwaysIgnored(name string) bool { return name == ".git" || name == ".anamnesis" }

func LoadPolicy(c *gitfmt.Commit, l *Listing, read func(*Entry) ([]byte, error)) (*Policy, error) {
	p := &Policy{files: map[string]ignore.Rules{}}
	for _, r := range c.Rules {
		if r.Base == "" { // above the world, info/exclude, or the root's own, in this order
			p.outer = p.outer.With(ignore.Rules{Up: r.Up, Patterns: r.Patterns})
			continue
		}
		p.files[r.Base] = ignore.Rules{Base: r.Base, Patterns: r.Patterns}
	}
	for e := range l.named(".gitignore") {
		d := fsys.Dir(e.Path)
		if _, frozen := p.files[d]; frozen || e.Kind != KindFile {
			continue // frozen with the rules of a nested repository
		}
		data, err := read(e)
		if err != nil {
			return nil, err
		}
		if len(data) <= MaxIgnoreBytes {
			p.files[d] = ignore.Parse(d, "", data)
		}
	}
	return p, nil
}

// MaxIgnoreBytes bounds one ignore file; a longer one is not read, and noted.
const MaxIgnoreBytes = 1 << 20

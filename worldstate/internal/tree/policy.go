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

// LoadPolicy returns a snapshot's rules. read returns the content of a .gitignore of its listing.
func LoadPolicy(c *gitfmt.Commit, l *Listing, read func(path string, s State) ([]byte, error)) (*Policy, error) {
	p := &Policy{files: map[string]ignore.Rules{}}
	for _, r := range c.Rules {
		if r.Base == "" { // above the world, info/exclude, or the root's own, in this order
			p.outer = p.outer.With(ignore.Rules{Up: r.Up, Patterns: r.Patterns})
			continue
		}
		p.files[r.Base] = ignore.Rules{Base: r.Base, Patterns: r.Patterns}
	}
	var err error
	l.Root.Dirs("", func(d string, n *Node) bool {
		it := n.Item(".gitignore")
		if _, frozen := p.files[d]; frozen || it == nil || it.Kind != KindFile {
			return true // frozen with the rules of a nested repository
		}
		var data []byte
		if data, err = read(fsys.Join(d, it.Name), it.State); err == nil && len(data) <= MaxIgnoreBytes {
			p.files[d] = ignore.Parse(d, "", data)
		}
		return err == nil
	})
	return p, err
}

// MaxIgnoreBytes bounds one ignore file; a longer one is not read, and noted.
const MaxIgnoreBytes = 1 << 20

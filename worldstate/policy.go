package worldstate

import "anamnesis/worldstate/ignore"

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
	ancestors(path, func(d string) bool {
		if alwaysIgnored(base(d)) || c.Ignored(d, true) {
			hit = true
			return false
		}
		if r, ok := p.files[d]; ok {
			c = c.With(r)
		}
		return true
	})
	return hit || alwaysIgnored(base(path)) || c.Ignored(path, isDir)
}

// alwaysIgnored are the names no snapshot ever holds, at any depth.
func alwaysIgnored(name string) bool { return name == ".git" || name == ".anamnesis" }

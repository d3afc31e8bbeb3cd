package ignore

import "strings"

// wildmatch matches a slash-separated name against a gitignore pattern: '*' and '?' do not
// match a slash; "**" between slashes (or at an end) does.
func wildmatch(pat, name string) bool {
	m := wild{pat: pat, name: name}
	if strings.Count(pat, "*") > 2 {
		m.failed = make(map[[2]int]struct{})
	}
	return m.at(0, 0)
}

// wild is the state of one match. failed holds positions that do not match, so that many stars
// cost at most len(pat)*len(name).
type wild struct {
	pat, name string
	failed    map[[2]int]struct{}
}

func (m *wild) at(p, n int) bool {
	if _, bad := m.failed[[2]int{p, n}]; bad {
		return false
	}
	ok := m.try(p, n)
	if !ok && m.failed != nil {
		m.failed[[2]int{p, n}] = struct{}{}
	}
	return ok
}

func (m *wild) try(p, n int) bool {
	for p < len(m.pat) {
		c := m.pat[p]
		if c == '*' {
			return m.star(p, n)
		}
		if n == len(m.name) {
			return false
		}
		switch c {
		case '?':
			if m.name[n] == '/' {
				return false
			}
			p++
		case '[':
			next, ok := matchClass(m.pat, p, m.name[n])
			if !ok || m.name[n] == '/' {
				return false
			}
			p = next
		case '\\':
			p++
			if p == len(m.pat) || m.pat[p] != m.name[n] {
				return false
			}
			p++
		default:
			if c != m.name[n] {
				return false
			}
			p++
		}
		n++
	}
	return n == len(m.name)
}

// star matches a run of stars at pat[p] and the rest.
func (m *wild) star(p, n int) bool {
	first := p
	for p < len(m.pat) && m.pat[p] == '*' {
		p++
	}
	rest := m.pat[p:]
	starts := first == 0 || m.pat[first-1] == '/'
	ends := rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)
	deep := p-first > 1 && starts && ends
	if deep && strings.HasPrefix(rest, "/") && m.at(p+1, n) {
		return true // "**/" also matches no directory
	}
	if rest == "" && deep {
		return true
	}
	for ; ; n++ {
		if m.at(p, n) {
			return true
		}
		if n == len(m.name) || m.name[n] == '/' && !deep {
			return false
		}
	}
}

// matchClass matches one byte against the bracket expression at pat[p] and returns the position
// after it. An unterminated or unknown class matches nothing.
func matchClass(pat string, p int, c byte) (next int, ok bool) {
	p++
	negated := p < len(pat) && (pat[p] == '!' || pat[p] == '^')
	if negated {
		p++
	}
	matched := false
	prev := -1 // the last single byte, as a range's possible start
	for first := true; ; first = false {
		if p >= len(pat) {
			return 0, false
		}
		ch := pat[p]
		switch {
		case ch == ']' && !first:
			return p + 1, matched != negated
		case ch == '[' && p+1 < len(pat) && pat[p+1] == ':':
			end := strings.IndexByte(pat[p+2:], ']')
			if end < 0 {
				return 0, false
			}
			name := pat[p+2 : p+2+end]
			if !strings.HasSuffix(name, ":") { // "[[:abc]" is a plain set
				matched = matched || c == '['
				prev = '['
				p++
				continue
			}
			in, known := namedClass(strings.TrimSuffix(name, ":"), c)
			if !known {
				return 0, false
			}
			matched = matched || in
			prev = -1
			p += 2 + end + 1
		case ch == '-' && prev >= 0 && p+1 < len(pat) && pat[p+1] != ']':
			p++
			hi := pat[p]
			if hi == '\\' {
				p++
				if p >= len(pat) {
					return 0, false
				}
				hi = pat[p]
			}
			matched = matched || int(c) >= prev && c <= hi
			prev = -1
			p++
		default:
			if ch == '\\' {
				p++
				if p >= len(pat) {
					return 0, false
				}
				ch = pat[p]
			}
			matched = matched || c == ch
			prev = int(ch)
			p++
		}
	}
}

// namedClass matches a POSIX class in the C locale.
func namedClass(name string, c byte) (in, known bool) {
	lower, upper, digit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
	graph := c > ' ' && c < 0x7f
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || c >= '\t' && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F', true
	}
	return false, false
}

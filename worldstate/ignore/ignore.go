// Package ignore reports which paths git would ignore, given the content of ignore files
// (.gitignore, info/exclude). It is pure: it reads no files and has no state, its values may be
// used concurrently, and matching never fails. A line that has no meaning to git matches
// nothing.
//
// The rules are git's: the last matching pattern of the deepest file that has one decides, and
// nothing beneath an ignored directory can be included again. A [Chain] decides one path at a
// time: its caller walks from the top down, asks for a directory before its content, and does
// not descend into one that is ignored. Written from the gitignore manual page; the tests of
// package worldstate compare it with git.
//
// Paths are slash-separated and relative to one root, which is the same for all rules of a
// chain. The caller handles names that are never looked at (.git) and files that are tracked
// although a pattern matches them.
package ignore

import (
	"bytes"
	"slices"
	"strings"
)

// Pattern is one line of an ignore file, made by [ParsePattern]. Patterns are comparable with
// ==.
type Pattern struct {
	text    string // without '!', a leading and a trailing slash
	glob    string // of text; see globOf
	negated bool
	dirOnly bool
	byName  bool // no slash inside: matches the last component alone
}

// String returns the pattern as a line that ParsePattern parses to the same pattern.
func (p Pattern) String() string {
	s := p.text
	if !p.byName {
		s = "/" + s
	}
	if p.negated {
		s = "!" + s
	}
	if p.dirOnly {
		s += "/"
	}
	if strings.HasSuffix(s, "\r") {
		s += "\r" // ParsePattern strips one
	}
	return s
}

// Rules are the patterns of one ignore file, in its order.
type Rules struct {
	// Base is the directory that the patterns apply beneath, "" for the root.
	Base string
	// Up is, for a file above the root, the path from its directory to the root ("sub/dir");
	// Base is "" then. "" for any other file.
	Up       string
	Patterns []Pattern
}

// ParsePattern parses one line without its newline. ok is false if the line has no pattern (a
// comment, or blank).
func ParsePattern(line string) (p Pattern, ok bool) {
	line = strings.TrimSuffix(line, "\r")
	if line == "" || line[0] == '#' {
		return p, false
	}
	line, p.negated = strings.CutPrefix(trimTrailingSpaces(line), "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	p.byName = !strings.Contains(line, "/") // without a slash, a pattern matches names in any directory beneath
	p.text = strings.TrimPrefix(line, "/")
	p.glob = globOf(p.text)
	return p, line != ""
}

// trimTrailingSpaces drops trailing spaces, but not one after a backslash.
func trimTrailingSpaces(line string) string {
	end := -1
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			if end < 0 {
				end = i
			}
		case '\\':
			i++
			end = -1
		default:
			end = -1
		}
	}
	if end < 0 {
		return line
	}
	return line[:end]
}

// Parse parses an ignore file's content; see [Rules] for base and up. Its cost is linear in the
// content, which the caller bounds.
func Parse(base, up string, content []byte) Rules {
	r := Rules{Base: base, Up: up}
	// git skips a byte order mark, too, which would otherwise be part of the first pattern.
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	for line := range bytes.SplitSeq(content, []byte("\n")) {
		if p, ok := ParsePattern(string(line)); ok {
			r.Patterns = append(r.Patterns, p)
		}
	}
	return r
}

// match returns whether these rules ignore a path, and whether any of them matches it.
func (r *Rules) match(path string, isDir bool) (ignored, decided bool) {
	rel := path
	if r.Base != "" {
		var beneath bool
		if rel, beneath = strings.CutPrefix(path, r.Base); !beneath || !strings.HasPrefix(rel, "/") {
			return false, false
		}
		rel = rel[1:]
	}
	if r.Up != "" {
		rel = r.Up + "/" + rel
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	for i := len(r.Patterns) - 1; i >= 0; i-- { // in a file, the last pattern that matches decides
		p := &r.Patterns[i]
		if p.dirOnly && !isDir {
			continue
		}
		subject := rel
		if p.byName {
			subject = name
		}
		if wildmatch(p.glob, subject) {
			return !p.negated, true
		}
	}
	return false, false
}

// Chain holds the rules that apply in a directory: info/exclude first, the deepest file last.
// The nil chain ignores nothing. Chains share prefixes, so neither a chain nor its rules may be
// changed in place.
type Chain []*Rules

// With returns the chain with the rules of one more file, which take precedence. The receiver
// is not changed.
func (c Chain) With(r Rules) Chain {
	if len(r.Patterns) == 0 {
		return c
	}
	return append(slices.Clip(c), &r)
}

// Ignored reports whether a path is ignored. Its parents must not be. A symbolic link is not a
// directory, whatever its target.
func (c Chain) Ignored(path string, isDir bool) bool {
	for i := len(c) - 1; i >= 0; i-- {
		if ignored, decided := c[i].match(path, isDir); decided {
			return ignored
		}
	}
	return false
}

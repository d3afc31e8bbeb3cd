// Package lazyregexp compiles package-level regular expressions on first use. Compiled
// at start, those of the whole program cost each process more than two milliseconds, and
// an agent starts one for every command that it runs.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that its first use compiles. Safe for concurrent use.
type Regexp struct {
	expr    string
	compile sync.Once
	re      *regexp.Regexp
}

// New returns the regular expression of a literal. Its first use panics if the literal
// does not compile.
func New(expr string) *Regexp { return &Regexp{expr: expr} }

func (r *Regexp) compiled() *regexp.Regexp {
	r.compile.Do(func() { r.re = regexp.MustCompile(r.expr) })
	return r.re
}

// String returns the literal.
func (r *Regexp) String() string { return r.expr }

// The methods are those of regexp.Regexp.

func (r *Regexp) MatchString(s string) bool              { return r.compiled().MatchString(s) }
func (r *Regexp) FindString(s string) string             { return r.compiled().FindString(s) }
func (r *Regexp) FindStringSubmatch(s string) []string   { return r.compiled().FindStringSubmatch(s) }
func (r *Regexp) FindAllString(s string, n int) []string { return r.compiled().FindAllString(s, n) }
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringSubmatchIndex(s, n)
}
func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compiled().ReplaceAllString(s, with)
}
func (r *Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, with)
}

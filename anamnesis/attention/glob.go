package attention

import (
	"errors"
	"fmt"
	"strings"
)

const (
	maxPatternBytes = 200 // of one pattern
	maxAlternatives = 64  // a pattern's braces may expand to
)

// glob is one alternative of a row's pattern, without braces.
type glob struct {
	pattern string // lower case, path.Match syntax with * only
	weight  int    // literal characters: the more, the more specific
}

// compileGlobs checks a pattern and expands its braces.
func compileGlobs(pattern string) ([]glob, error) {
	switch {
	case strings.TrimSpace(pattern) == "":
		return nil, errors.New("the pattern is empty")
	case len(pattern) > maxPatternBytes:
		return nil, fmt.Errorf("the pattern has %d bytes, the limit is %d", len(pattern), maxPatternBytes)
	case strings.ContainsAny(pattern, "[]?\\ \t\r\n"):
		return nil, fmt.Errorf("bad pattern %q: only * and {a,b} are special, and spaces are not allowed", pattern)
	}
	plain, err := expandBraces(strings.ToLower(pattern))
	if err != nil {
		return nil, fmt.Errorf("bad pattern %q: %w", pattern, err)
	}
	globs := make([]glob, len(plain))
	for i, p := range plain {
		globs[i] = glob{pattern: p, weight: len(p) - strings.Count(p, "*")}
	}
	return globs, nil
}

// expandBraces turns "a{b,c}d" into "abd" and "acd". Braces do not nest.
func expandBraces(pattern string) (out []string, err error) {
	head, rest, braces := strings.Cut(pattern, "{")
	inner, tail, closed := strings.Cut(rest, "}")
	switch {
	case strings.Contains(head, "}"):
		return nil, errors.New("} without {")
	case !braces:
		return []string{pattern}, nil
	case !closed || strings.Contains(inner, "{"):
		return nil, errors.New("{ without }, or braces within braces")
	}
	// The limit below holds for the tails as well, so that a pattern of many braces fails before it grows.
	tails, err := expandBraces(tail)
	if err != nil {
		return nil, err
	}
	for alternative := range strings.SplitSeq(inner, ",") {
		for _, end := range tails {
			out = append(out, head+alternative+end)
		}
	}
	if len(out) > maxAlternatives {
		return nil, fmt.Errorf("more than %d alternatives", maxAlternatives)
	}
	return out, nil
}

// Names returns the names that a pattern of a table spells out: its alternatives without a * at
// the end. An alternative with another *, or that ends in a separator, spells out none.
func Names(pattern string) (names []string) {
	plain, err := expandBraces(pattern)
	if err != nil {
		return nil
	}
	for _, p := range plain {
		p = strings.TrimSuffix(p, "*")
		if p != "" && !strings.Contains(p, "*") && !strings.ContainsAny(p[len(p)-1:], "-.:") {
			names = append(names, p)
		}
	}
	return names
}

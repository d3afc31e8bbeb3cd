package attention

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// versioned splits a lower-case model name at its first version: "kimi-k2.6-turbo"
// into "kimi-k" and 2.6, "claude-opus-4-7" into "claude-opus" and 4-7. Parts of more
// than two digits are dates, and digits before a letter are sizes.
var versioned = regexp.MustCompile(`^(.*?[a-z]-?)(\d{1,2}(?:[.-]\d{1,2})*)(?:$|[^0-9a-z.])`)

// modelVersion returns the family and the version of a model name or a pattern; no
// version if it names none.
func modelVersion(name string) (family string, version []int) {
	m := versioned.FindStringSubmatch(strings.TrimSuffix(name, ".*"))
	if m == nil {
		return name, nil
	}
	for _, part := range strings.FieldsFunc(m[2], func(r rune) bool { return r == '.' || r == '-' }) {
		n, _ := strconv.Atoi(part) // two digits at most
		version = append(version, n)
	}
	return strings.TrimSuffix(m[1], "-"), version
}

// measuredBefore reports whether a row of the built-in table measured an older
// version than the name's: "kimi-k2*" says nothing of kimi-k2.6. A default covers
// later versions too, and so does a row that a user wrote.
func (r *Row) measuredBefore(g glob, name string) bool {
	if !r.builtin || r.Confidence == ConfidenceNone || strings.HasSuffix(g.pattern, ".*") {
		return false
	}
	family, measured := modelVersion(g.pattern)
	other, version := modelVersion(name)
	n := len(measured)
	return n > 0 && len(version) > n && family == other && slices.Equal(version[:n], measured) && version[n] > 0
}

// sibling finds the row for a version that no row covers: the newest one of the same
// family and major version, else the default of the vendor's newest models. The
// vendor is the name's first word.
func (t *Table) sibling(names []string) (row *Row, why string) {
	var best []int
	for _, name := range names {
		family, version := modelVersion(name)
		if version == nil {
			continue
		}
		for _, kind := range []struct {
			why string
			is  func(r *Row, of string, v []int) bool
		}{
			{"its newest sibling", func(r *Row, of string, v []int) bool {
				return of == family && v[0] == version[0] && (len(v) >= len(version) || r.Confidence == ConfidenceNone)
			}},
			{"the default of its vendor's newest models", func(r *Row, of string, v []int) bool {
				return r.Confidence == ConfidenceNone && vendorOf(of) == vendorOf(family) && v[0] <= version[0]
			}},
		} {
			for i := range t.rows {
				for _, g := range t.rows[i].globs {
					of, v := modelVersion(g.pattern)
					if v == nil || !t.rows[i].builtin || slices.Compare(v, version) >= 0 && of == family || !kind.is(&t.rows[i], of, v) {
						continue
					}
					if strings.HasSuffix(g.pattern, ".*") {
						v = append(v, 99)
					}
					if row == nil || cmp.Or(slices.Compare(v, best), cmp.Compare(len(row.Pattern), len(t.rows[i].Pattern))) > 0 {
						row, best, why = &t.rows[i], v, kind.why
					}
				}
			}
			if row != nil {
				return row, why
			}
		}
	}
	return nil, ""
}

func vendorOf(family string) string {
	vendor, _, _ := strings.Cut(family, "-")
	return vendor
}

// fromSibling is what the table says about a model by a row of another version.
func (r *Row) fromSibling(model, why string) Span {
	s := r.span(model)
	s.Confidence = ConfidenceNone
	s.Source = fmt.Sprintf("no row for this version; taken from %s, %s: %s", r.Pattern, why, r.Source)
	return s
}

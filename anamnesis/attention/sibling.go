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
	name = strings.TrimLeft(name, "*")
	m := versioned.FindStringSubmatch(strings.TrimSuffix(name, ".*"))
	if m == nil {
		return strings.TrimRight(name, "*-"), nil
	}
	for _, part := range strings.FieldsFunc(m[2], func(r rune) bool { return r == '.' || r == '-' }) {
		n, _ := strconv.Atoi(part) // two digits at most
		version = append(version, n)
	}
	return strings.TrimSuffix(m[1], "-"), version
}

// measuredBefore reports whether a row of the built-in table measured an older
// version than the name's: "kimi-k2*" says nothing of kimi-k2.6, nor "qwen-max*" of
// qwen-max-3. A default covers later versions too, and so does a row that a user wrote.
func (r *Row) measuredBefore(g glob, name string) bool {
	if !r.builtin || r.Confidence == ConfidenceNone {
		return false
	}
	family, measured := modelVersion(g.pattern)
	other, version := modelVersion(name)
	n := len(measured)
	return len(version) > n && family == other && slices.Equal(version[:n], measured) && version[n] > 0
}

// sibling finds the row for a version that no row covers: the newest one of the same
// family and major version. If there is none, it is the default of the vendor's newest
// models, or the newest row of the family if that is of a later major version than the
// default. The rows of a family say nothing of a version older than the newest of them.
// Of several, a row of the model's own tier is taken. The vendor is the name's first word.
func (t *Table) sibling(names []string) (row *Row, why string) {
	for _, name := range names {
		family, version := modelVersion(name)
		if version == nil || strings.Contains(name, "/") {
			continue
		}
		newest := t.newest(family)
		var best []int
		for i := range t.rows {
			r := &t.rows[i]
			for _, g := range r.globs {
				of, v := modelVersion(g.pattern)
				// A user's row covers what its pattern covers; no measurement speaks for an older model.
				if !r.builtin || of == family && slices.Compare(v, version) >= 0 {
					continue
				}
				sameTier := 0
				if slices.Equal(tier(g.pattern), tier(name)) {
					sameTier = 1
				}
				reason := "its newest sibling"
				// The first figure puts rows of the same major version before all others. Of the rest, the later major
				// version wins, and at equal ones the vendor's default before the family's newest row.
				var rank []int
				isDefault := r.Confidence == ConfidenceNone
				switch {
				case of == family && major(v) == version[0] && (isDefault || len(v) >= len(version)):
					rank = []int{2, sameTier}
				case isDefault && v != nil && vendorOf(of) == vendorOf(family) && v[0] <= version[0]:
					rank, reason = []int{1, v[0], 1, sameTier}, "the default of its vendor's newest models"
				case of == family && slices.Compare(newest, version) < 0:
					rank = []int{1, major(newest), 0, sameTier}
				default:
					continue
				}
				rank = append(rank, v...)
				// 99 is above every single minor version, which has two digits at most.
				if strings.HasSuffix(g.pattern, ".*") { // of rows for one version, that for all its minor ones
					rank = append(rank, 99)
				}
				if row == nil || cmp.Or(slices.Compare(rank, best), cmp.Compare(len(row.Pattern), len(r.Pattern))) > 0 {
					row, best, why = r, rank, reason
				}
			}
		}
		if row != nil {
			return row, why
		}
	}
	return nil, ""
}

// newest returns the highest version that a built-in row of a family names.
func (t *Table) newest(family string) (version []int) {
	for _, r := range t.rows {
		for _, g := range r.globs {
			if of, v := modelVersion(g.pattern); r.builtin && of == family && slices.Compare(v, version) > 0 {
				version = v
			}
		}
	}
	return version
}

func major(version []int) int {
	if len(version) == 0 {
		return 0
	}
	return version[0]
}

// tier returns the words of a name that set a model apart from others of its version.
func tier(name string) (words []string) {
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-:*", r) }) {
		if slices.Contains([]string{"flash", "pro", "mini", "lite", "nano", "scout"}, w) {
			words = append(words, w)
		}
	}
	return words
}

func vendorOf(family string) string {
	vendor, _, _ := strings.Cut(family, "-")
	return vendor
}

// fromSibling is what the table says about a model by a row of another version.
func (r *Row) fromSibling(model, why string) EAS {
	s := r.easFor(model)
	s.Confidence = ConfidenceNone
	s.Source = fmt.Sprintf("no row for this version; taken from %s, %s: %s", r.Pattern, why, r.Source)
	return s
}

package card

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// edited returns the front matter, with its --- lines, after the fields that
// differ between was and now have been replaced in place. Lines of other
// keys, blank lines and comments are kept byte for byte.
func (f *frontMatter) edited(was, now *Card) (out []byte, changed bool) {
	var dirty []string
	for _, k := range now.keys() {
		if renderEntry(was, k.key, nil, nil) != renderEntry(now, k.key, nil, nil) {
			dirty = append(dirty, k.key)
		}
	}
	if len(dirty) == 0 {
		return slices.Concat(f.open, f.yaml, f.close), false
	}
	lines := splitLines(f.yaml)
	entries := f.entries(lines)
	var b bytes.Buffer
	b.Write(f.open)
	at := 0
	for i, e := range entries {
		writeLines(&b, lines[at:e.start])
		if slices.Contains(dirty, e.key.Value) {
			b.WriteString(f.withEOL(renderEntry(now, e.key.Value, e.key, e.val)))
		} else {
			writeLines(&b, lines[e.start:e.end])
		}
		at = e.end
		for _, key := range f.missingAfter(entries, i, dirty) {
			b.WriteString(f.withEOL(renderEntry(now, key, nil, nil)))
		}
	}
	writeLines(&b, lines[at:])
	b.Write(f.close)
	return b.Bytes(), true
}

// entry is a top-level key with the lines [start, end) it fills, counted
// from 0 within the YAML.
type entry struct {
	key, val   *yaml.Node
	start, end int
}

func (f *frontMatter) entries(lines []string) []entry {
	var es []entry
	for i := 0; i+1 < len(f.root.Content); i += 2 {
		es = append(es, entry{key: f.root.Content[i], val: f.root.Content[i+1], start: f.root.Content[i].Line - 1})
	}
	for i := range es {
		end := len(lines)
		if i+1 < len(es) {
			end = es[i+1].start
		}
		// Blank lines and comments at the margin before the next key are its.
		for end > es[i].start+1 {
			l := strings.TrimRight(lines[end-1], " \t\r\n")
			if l != "" && !strings.HasPrefix(l, "#") {
				break
			}
			end--
		}
		es[i].end = end
	}
	return es
}

// missingAfter lists the changed keys the file does not have yet whose place
// is after entry i: behind the last present key that precedes them in the
// canonical order.
func (f *frontMatter) missingAfter(entries []entry, i int, dirty []string) []string {
	order := new(Card).keys()
	present := func(key string) int {
		return slices.IndexFunc(entries, func(e entry) bool { return e.key.Value == key })
	}
	var out []string
	for _, key := range dirty {
		if present(key) >= 0 {
			continue
		}
		after := len(entries) - 1
		for j := indexOf(order, key) - 1; j >= 0; j-- {
			if p := present(order[j].key); p >= 0 {
				after = p
				break
			}
		}
		if after == i {
			out = append(out, key)
		}
	}
	return out
}

func (f *frontMatter) withEOL(s string) string {
	if f.eol == "\n" {
		return s
	}
	return strings.ReplaceAll(s, "\n", f.eol)
}

func splitLines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	lines := strings.SplitAfter(string(b), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func writeLines(b *bytes.Buffer, lines []string) {
	for _, l := range lines {
		b.WriteString(l)
	}
}

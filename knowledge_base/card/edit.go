package card

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// edited returns the front matter, with its --- lines, after the values of the fields that differ between was and
// now have been replaced. Other keys and comments stay; the layout is YAML's usual one afterwards.
func (f *frontMatter) edited(was, now *Card) (out []byte, changed bool) {
	at := 0 // behind the key before, where a new one belongs
	for n, k := range now.keys() {
		i := 0
		for i < len(f.root.Content) && f.root.Content[i].Value != k.key {
			i += 2
		}
		end := min(i+2, len(f.root.Content))
		if renderEntry(was, k.key) != renderEntry(now, k.key) {
			var oldKey, oldVal *yaml.Node
			if i < end {
				oldKey, oldVal = f.root.Content[i], f.root.Content[i+1]
			} else {
				i, end = at, at
			}
			entry := now.entry(n, oldKey, oldVal)
			f.root.Content, changed = slices.Replace(f.root.Content, i, end, entry...), true
			if i < at && len(entry) == 0 {
				at -= 2
			}
			end = i + len(entry)
		}
		if i < end {
			at = end
		}
	}
	if !changed {
		return slices.Concat(f.open, f.yaml, f.close), false
	}
	return slices.Concat(f.open, []byte(strings.ReplaceAll(dump(f.doc), "\n", f.eol)), f.close), true
}

func splitLines(b []byte) []string { return strings.SplitAfter(string(b), "\n") }

func writeLines(b *bytes.Buffer, lines []string) {
	for _, l := range lines {
		b.WriteString(l)
	}
}

package attention

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"anamnesis/anamnesis/quote"
)

const overlayHead = "# Effective attention spans of your own: rows that go over the built-in table.\n" +
	"# docs/guides/eas.md says what its fields mean.\n"

// PutRow returns the bytes of an overlay with r in it. It changes the row with the
// same pattern in place, or adds r at the end. Comments, layout and custom fields
// (x-…) stay byte for byte. If the place of a value cannot be found (a text over several
// lines, rows within brackets), PutRow refuses. Origin and Line of r are not used. PutRow
// returns a *TableError for an invalid overlay and for a row that LoadTable would refuse.
func PutRow(o Overlay, r Row) ([]byte, error) {
	f := tableFile{o.Name}
	r.Source, r.By = quote.Squash(r.Source), quote.Squash(r.By)
	if _, err := parseTable(Overlay{Name: o.Name, Data: []byte("version: 1\nrows:\n  - " + r.YAML() + "\n")}); err != nil {
		if wrong := new(TableError); errors.As(err, &wrong) {
			wrong.Line = 0 // the row is not in the file yet
		}
		return nil, err
	}
	was, err := parseTable(o)
	if err != nil {
		return nil, err
	}
	want := slices.Clone(was)
	at := slices.IndexFunc(want, func(w Row) bool { return strings.EqualFold(w.Pattern, r.Pattern) })
	if at >= 0 {
		r.Pattern = want[at].Pattern
		want[at] = r
	} else {
		want = append(want, r)
	}
	root, err := f.document(o.Data)
	if err != nil {
		return nil, err
	}
	data := spliceRow(o.Data, root, at, r)
	if now, err := parseTable(Overlay{Name: o.Name, Data: data}); data == nil || err != nil || !slices.EqualFunc(now, want, sameRow) {
		return nil, fmt.Errorf("%s: the row cannot be put in without touching the others; write it there by hand: %s", o.Name, r.YAML())
	}
	return data, nil
}

// sameRow compares what two rows say, not where they stand.
func sameRow(x, y Row) bool { return x.values() == y.values() }

// values are the fields of a row in the order of rowFields, as they are
// written.
func (r Row) values() [8]string {
	return [...]string{r.Pattern, strconv.Itoa(r.Window), strconv.Itoa(r.EAS), r.Encoding, string(r.Confidence), r.Source, r.Updated, r.By}
}

// YAML is the row on one line, as the built-in table writes it.
func (r Row) YAML() string {
	values := r.values()
	var parts []string
	for i, name := range strings.Split(rowFields, ", ") {
		parts = append(parts, name+": "+quoted(name, values[i]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// quoted writes a value: texts as JSON, which is YAML, too.
func quoted(name, value string) string {
	if name != "pattern" && name != "source" && name != "by" {
		return value
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return strconv.Quote(value) // does not happen: a string encodes
	}
	return strings.TrimSpace(b.String())
}

// spliceRow edits the text itself. Nil: it does not know how.
func spliceRow(data []byte, root *yaml.Node, at int, r Row) []byte {
	if at >= 0 {
		return spliceValues(data, field(root, "rows").Content[at], r)
	}
	eol := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		eol = "\r\n"
	}
	if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
		data = append(slices.Clone(data), eol...)
	}
	item := "- " + r.YAML() + eol
	if root == nil {
		if len(data) == 0 {
			data = []byte(overlayHead)
		}
		return slices.Concat(data, []byte("version: 1"+eol+"rows:"+eol+"  "+item))
	}
	list := field(root, "rows")
	switch {
	case list == nil:
		return slices.Concat(data, []byte("rows:"+eol+"  "+item))
	case isNull(list):
		return insertLine(data, keyLine(root, "rows"), "  "+item)
	case len(list.Content) == 0: // rows: []
		from := offsetOf(data, list.Line, list.Column)
		size := bytes.IndexByte(data[from:], ']') + 1
		return slices.Concat(bytes.TrimRight(data[:from], " "), []byte(eol+"  "+strings.TrimSuffix(item, eol)), data[from+size:])
	case list.Style&yaml.FlowStyle != 0:
		return nil
	}
	return insertLine(data, lastLine(list), strings.Repeat(" ", list.Column-1)+item)
}

// spliceValues puts the values that differ into a row where it stands.
func spliceValues(data []byte, row *yaml.Node, r Row) []byte {
	type change struct {
		from, to int
		text     string
	}
	var changes []change
	values := r.values()
	for i, name := range strings.Split(rowFields, ", ") {
		n := field(row, name)
		if n.Value == values[i] {
			continue
		}
		from := offsetOf(data, n.Line, n.Column)
		size := scalarBytes(data[from:], n)
		if size == 0 {
			return nil
		}
		changes = append(changes, change{from, from + size, quoted(name, values[i])})
	}
	slices.SortFunc(changes, func(x, y change) int { return y.from - x.from })
	out := slices.Clone(data)
	for _, c := range changes {
		out = slices.Replace(out, c.from, c.to, []byte(c.text)...)
	}
	return out
}

// field is the value of a mapping's key, nil where there is none.
func field(m *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return m.Content[i+1]
		}
	}
	return nil
}

func keyLine(m *yaml.Node, name string) int {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return m.Content[i].Line
		}
	}
	return 0
}

// lastLine is the last line on which a part of n begins.
func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, c := range n.Content {
		last = max(last, lastLine(c))
	}
	return last
}

// insertLine puts text, which ends in a line end, after a line, from 1.
func insertLine(data []byte, line int, text string) []byte {
	at := offsetOf(data, line+1, 1)
	return slices.Concat(data[:at], []byte(text), data[at:])
}

// offsetOf is the place of a line and a column of characters, both from 1, or
// the end of data.
func offsetOf(data []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return len(data)
		}
		at += i + 1
	}
	for i := range string(data[at:]) {
		if column == 1 {
			return at + i
		}
		column--
	}
	return len(data)
}

// scalarBytes is how much of text, which begins with it, a value of one line
// takes; 0 where that cannot be told.
func scalarBytes(text []byte, n *yaml.Node) int {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	switch {
	case n.Kind != yaml.ScalarNode || n.Anchor != "" || len(line) == 0:
		return 0
	case line[0] == '"':
		for i := 1; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
	case line[0] == '\'':
		for i := 1; i < len(line); i++ {
			if line[i] != '\'' {
				continue
			}
			if i+1 < len(line) && line[i+1] == '\'' {
				i++
				continue
			}
			return i + 1
		}
	case bytes.HasPrefix(line, []byte(n.Value)):
		return len(n.Value)
	}
	return 0
}

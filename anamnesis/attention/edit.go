package attention

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"anamnesis/anamnesis/quote"
	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream/op"
)

const overlayHead = "# Effective attention spans of your own: rows that go over the built-in table.\n" +
	"# docs/guides/eas.md says what its fields mean.\n"

// PutRow returns the bytes of an overlay with r in it, in place of the row with the same
// pattern, or at the end. Comments and custom fields (x-…) stay; the layout of the file is
// YAML's usual one afterwards. Origin and Line of r are not used. PutRow returns a *TableError for
// an invalid overlay and for a row that LoadTable would refuse.
func PutRow(o Overlay, r Row) ([]byte, error) {
	r.Source, r.By = quote.Squash(r.Source), quote.Squash(r.By)
	if remedy, err := r.check(); err != nil {
		return nil, &TableError{File: o.Name, What: err.Error(), Remedy: remedy}
	}
	rows, err := parseTable(o)
	if err != nil {
		return nil, err
	}
	var file, fresh yaml.Node
	if err := yaml.Load(o.Data, &file); userfile.Empty(err) || err == nil && len(file.Content) == 0 {
		head := o.Data
		if len(head) == 0 {
			head = []byte(overlayHead)
		}
		return fmt.Appendf(head, "version: 1\nrows:\n  - %s\n", r.YAML()), nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	at := slices.IndexFunc(rows, func(w Row) bool { return strings.EqualFold(w.Pattern, r.Pattern) })
	if at >= 0 {
		r.Pattern = rows[at].Pattern
	}
	if err := yaml.Load([]byte(r.YAML()), &fresh); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	putRow(file.Content[0], fresh.Content[0], at)
	data, err := yaml.Dump(&file, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	return data, nil
}

// putRow puts a row's node into a table's: its values into the row at a place, or the whole
// behind the others.
func putRow(table, row *yaml.Node, at int) {
	list := field(table, "rows")
	if list == nil {
		list = new(yaml.Node)
		table.Content = append(table.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "rows"}, list)
	}
	if at < 0 {
		list.Kind, list.Tag, list.Value = yaml.SequenceNode, "!!seq", ""
		list.Content = append(list.Content, row)
		return
	}
	for i := 0; i < len(row.Content); i += 2 {
		old, now := field(list.Content[at], row.Content[i].Value), row.Content[i+1]
		if old == nil { // merged from an anchor
			list.Content[at].Content = append(list.Content[at].Content, row.Content[i], now)
		} else if old.Value != now.Value {
			old.Value, old.Tag, old.Style = now.Value, now.Tag, now.Style
		}
	}
}

// values are the fields of a row in the order of rowFields, as they are
// written.
func (r Row) values() [8]string {
	return [...]string{r.Pattern, strconv.Itoa(r.Window), strconv.Itoa(r.EAS), r.Encoding, string(r.Confidence),
		r.Source, r.Updated, r.By}
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
	data, _ := op.PlainJSON(value) // a string encodes
	return string(data)
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

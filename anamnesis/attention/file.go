package attention

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"anamnesis/anamnesis/tokens"
	"anamnesis/knowledge_base/userfile"
)

const (
	tableVersion  = 1
	maxTableBytes = 1 << 20
	maxTableRows  = 5000
	maxRowTokens  = 1 << 30 // no window is larger: a guard against typing errors
	baseTableName = "eas.yaml"
	rowFields     = "pattern, window, eas, encoding, confidence, source, updated, by"
)

// Overlay is a table file that goes over the built-in one.
type Overlay struct {
	Name string // what errors call it: its path
	Data []byte // YAML, the form of eas.yaml
	// Lowers: its rows only make spans and windows smaller.
	Lowers bool
}

// ReadOverlay reads an overlay, which must be a regular file. Errors: fs.ErrNotExist, *TableError.
func ReadOverlay(path string) (Overlay, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Overlay{}, err
	}
	o := Overlay{Name: path}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	} else if err == nil && info.Size() > maxTableBytes {
		err = fmt.Errorf("%d bytes, at most %d are read", info.Size(), maxTableBytes)
	} else if err == nil {
		o.Data, err = os.ReadFile(path)
	}
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		err = of.Err
	}
	if err != nil {
		return Overlay{}, tableFile{path}.fail(1, "make it a readable file or remove it", "cannot be read: %v", err)
	}
	return o, nil
}

// TableError is a wrong value in a table file. Its text is one line of the
// form "file:line: what; remedy".
type TableError struct {
	File   string
	Line   int // from 1; 0 where the file as a whole is meant
	What   string
	Remedy string
}

func (e *TableError) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("%s: %s; %s", where, e.What, e.Remedy)
}

// LoadTable reads the base table and the overlays over it, in order: a row of
// an overlay replaces an earlier row with the same pattern and is added
// otherwise. In a pattern * stands for any text without a slash and {a,b} for
// one of the alternatives. The first wrong value of any file is returned as a
// *TableError; nothing of a wrong file is used.
func LoadTable(base []byte, overlays ...Overlay) (*Table, error) {
	t := &Table{}
	for i, file := range append([]Overlay{{Name: baseTableName, Data: base}}, overlays...) {
		rows, err := parseTable(file)
		if err != nil {
			return nil, err
		}
		for j := range rows {
			rows[j].builtin = i == 0
		}
		if file.Lowers && len(rows) > 0 {
			t.limit = &Table{rows: t.rows, limit: t.limit}
		}
		t.overlay(rows)
	}
	return t, nil
}

// overlay moves replaced rows behind the others: the later row wins among
// equally specific patterns.
func (t *Table) overlay(rows []Row) {
	replaced := make(map[string]bool, len(rows))
	for _, r := range rows {
		replaced[strings.ToLower(r.Pattern)] = true
	}
	kept := t.rows[:0:0]
	for _, r := range t.rows {
		if !replaced[strings.ToLower(r.Pattern)] {
			kept = append(kept, r)
		}
	}
	t.rows = append(kept, rows...)
}

// tableFile parses one file. Errors carry its name.
type tableFile struct{ name string }

func (f tableFile) fail(line int, remedy, format string, args ...any) error {
	return &TableError{File: f.name, Line: max(line, 1), What: fmt.Sprintf(format, args...), Remedy: remedy}
}

func parseTable(o Overlay) ([]Row, error) {
	f := tableFile{o.Name}
	root, err := f.document(o.Data)
	if err != nil || root == nil {
		return nil, err
	}
	list, err := f.list(root)
	if err != nil || list == nil {
		return nil, err
	}
	return f.rows(list)
}

// document reads the one YAML document of a file, nil where it has none: an
// empty overlay changes nothing.
func (f tableFile) document(data []byte) (*yaml.Node, error) {
	if len(data) > maxTableBytes {
		return nil, f.fail(0, "split it or remove what is not a row", "the file has %d bytes, the limit is %d", len(data), maxTableBytes)
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		line, cause := userfile.YAML(err)
		return nil, f.fail(line, "repair the YAML", "%s", cause)
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, f.fail(second.Line, "keep only one document", "a second YAML document, or text that is not YAML")
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || isNull(doc.Content[0]) {
		return nil, nil
	}
	return doc.Content[0], nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// list finds the rows of a document, nil where it has none.
func (f tableFile) list(root *yaml.Node) (*yaml.Node, error) {
	fields, err := f.mapping(root, "version", "rows")
	if err != nil {
		return nil, err
	}
	if v := fields["version"]; v == nil || v.Value != strconv.Itoa(tableVersion) {
		return nil, f.fail(root.Line, fmt.Sprintf("write version: %d", tableVersion), "the version is missing or not %d", tableVersion)
	}
	list := fields["rows"]
	switch {
	case list == nil || isNull(list):
		return nil, nil
	case list.Kind != yaml.SequenceNode:
		return nil, f.fail(list.Line, "write a list of rows", "rows is not a list")
	case len(list.Content) > maxTableRows:
		return nil, f.fail(list.Line, "use patterns", "%d rows, the limit is %d", len(list.Content), maxTableRows)
	}
	return list, nil
}

func (f tableFile) rows(list *yaml.Node) ([]Row, error) {
	rows := make([]Row, 0, len(list.Content))
	seen := make(map[string]int)
	for _, n := range list.Content {
		r, err := f.row(n)
		if err != nil {
			return nil, err
		}
		key := strings.ToLower(r.Pattern)
		if line, dup := seen[key]; dup {
			return nil, f.fail(r.Line, "keep one of the two", "pattern %q is in line %d already", r.Pattern, line)
		}
		seen[key] = r.Line
		rows = append(rows, r)
	}
	return rows, nil
}

// row checks one row, each value by itself and EAS against the window.
func (f tableFile) row(n *yaml.Node) (Row, error) {
	names := strings.Split(rowFields, ", ")
	fields, err := f.mapping(n, names...)
	if err != nil {
		return Row{}, err
	}
	for _, name := range names {
		if v := fields[name]; v == nil {
			return Row{}, f.fail(n.Line, "a row needs "+rowFields, "the row has no %s", name)
		} else if v.Kind != yaml.ScalarNode || strings.TrimSpace(v.Value) == "" {
			return Row{}, f.fail(v.Line, "write one plain value", "%s is empty or not a plain value", name)
		}
	}
	r := Row{
		Pattern: fields["pattern"].Value, Encoding: fields["encoding"].Value, Confidence: Confidence(fields["confidence"].Value),
		Source: fields["source"].Value, Updated: fields["updated"].Value, By: fields["by"].Value,
		Origin: f.name, Line: n.Line,
	}
	if r.globs, err = compileGlobs(r.Pattern); err != nil {
		return Row{}, f.fail(fields["pattern"].Line, "write it like \"gpt-4o*\"", "%v", err)
	}
	if r.Window, err = f.tokenCount(fields["window"], "window"); err != nil {
		return Row{}, err
	}
	if r.EAS, err = f.tokenCount(fields["eas"], "eas"); err != nil {
		return Row{}, err
	}
	if r.EAS > r.Window {
		return Row{}, f.fail(fields["eas"].Line, "a model cannot attend to more than it is given: lower eas or raise window",
			"eas %d is larger than the window of %d", r.EAS, r.Window)
	}
	if !tokens.IsEncoding(r.Encoding) {
		return Row{}, f.fail(fields["encoding"].Line, "use one of "+strings.Join(tokens.Encodings(), ", "), "unknown encoding %q", r.Encoding)
	}
	switch r.Confidence {
	case ConfidenceHigh, ConfidenceMedium, ConfidenceLow, ConfidenceNone:
	default:
		return Row{}, f.fail(fields["confidence"].Line, "use high, medium, low or none", "unknown confidence %q", r.Confidence)
	}
	if _, err := time.Parse(time.DateOnly, r.Updated); err != nil {
		return Row{}, f.fail(fields["updated"].Line, "write it as yyyy-mm-dd", "updated %q is not a date", r.Updated)
	}
	return r, nil
}

func (f tableFile) tokenCount(n *yaml.Node, name string) (int, error) {
	v, err := strconv.Atoi(strings.ReplaceAll(n.Value, "_", ""))
	switch {
	case err != nil:
		return 0, f.fail(n.Line, "write a number of tokens, like 8000", "%s %q is not a whole number", name, n.Value)
	case v <= 0:
		return 0, f.fail(n.Line, "write a number of tokens, like 8000", "%s is %d, it must be above 0", name, v)
	case v > maxRowTokens:
		return 0, f.fail(n.Line, "write a number of tokens, like 8000", "%s is %d, more than any model takes", name, v)
	}
	return v, nil
}

// foreignPrefix begins the names of fields that are a user's own: they are
// kept and not looked at.
const foreignPrefix = "x-"

// mapping returns the fields of a mapping node, refusing unknown and repeated
// ones.
func (f tableFile) mapping(n *yaml.Node, known ...string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, f.fail(n.Line, "write "+strings.Join(known, ", "), "not a mapping of fields to values")
	}
	fields := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		switch {
		case key.Kind == yaml.ScalarNode && strings.HasPrefix(name, foreignPrefix):
			continue
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, name):
			return nil, f.fail(key.Line, "the fields are "+strings.Join(known, ", "), "unknown field %q", name)
		case fields[name] != nil:
			return nil, f.fail(key.Line, "keep one of the two", "field %q occurs twice", name)
		}
		fields[name] = value
	}
	return fields, nil
}

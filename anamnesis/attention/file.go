package attention

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"anamnesis/anamnesis/tokens"
	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream/durable"
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
	data, err := durable.ReadFile(path, maxTableBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return Overlay{}, err
	}
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	}
	if err != nil {
		return Overlay{}, &TableError{File: path, Line: 1, What: fmt.Sprintf("cannot be read: %v", err),
			Remedy: "make it a readable file or remove it"}
	}
	return Overlay{Name: path, Data: data}, nil
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

// tableForm is the YAML of a table file. Fields whose names begin with x- are a user's own.
type tableForm struct {
	Version int            `yaml:"version"`
	Rows    []rowForm      `yaml:"rows"`
	Own     map[string]any `yaml:",inline"`
}

type rowForm struct {
	Row `yaml:",inline"`
	Own map[string]any `yaml:",inline"`
}

func (r *rowForm) UnmarshalYAML(n *yaml.Node) error {
	type plain rowForm
	r.Line = n.Line
	return n.Load((*plain)(r), yaml.WithUniqueKeys())
}

// parseTable reads one file. An empty overlay has no rows.
func parseTable(o Overlay) ([]Row, error) {
	fail := func(line int, remedy, format string, args ...any) error {
		return &TableError{File: o.Name, Line: max(line, 1), What: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	if len(o.Data) > maxTableBytes {
		return nil, fail(0, "split it or remove what is not a row", "the file has %d bytes, the limit is %d",
			len(o.Data), maxTableBytes)
	}
	var form tableForm
	if err := yaml.Load(o.Data, &form, yaml.WithUniqueKeys()); userfile.Empty(err) {
		return nil, nil
	} else if err != nil {
		line, cause := userfile.YAML(err)
		return nil, fail(line, "a file has version and rows, and a row "+rowFields, "%s", cause)
	}
	if name := unknownField(form.Own); name != "" {
		return nil, fail(1, "the fields are version, rows", "unknown field %q", name)
	}
	switch {
	case form.Version != tableVersion:
		return nil, fail(1, fmt.Sprintf("write version: %d", tableVersion), "the version is missing or not %d",
			tableVersion)
	case len(form.Rows) > maxTableRows:
		return nil, fail(1, "use patterns", "%d rows, the limit is %d", len(form.Rows), maxTableRows)
	}
	var rows []Row
	seen := make(map[string]int)
	for _, r := range form.Rows {
		if name := unknownField(r.Own); name != "" {
			return nil, fail(r.Line, "the fields are "+rowFields, "unknown field %q", name)
		}
		remedy, err := r.check()
		if err != nil {
			return nil, fail(r.Line, remedy, "%v", err)
		}
		key := strings.ToLower(r.Pattern) // names of models are compared without case
		if line, dup := seen[key]; dup {
			return nil, fail(r.Line, "keep one of the two", "pattern %q is in line %d already", r.Pattern, line)
		}
		seen[key], r.Origin = r.Line, o.Name
		rows = append(rows, r.Row)
	}
	return rows, nil
}

func unknownField(own map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if !strings.HasPrefix(name, "x-") {
			return name
		}
	}
	return ""
}

// check checks each value of a row by itself and EAS against the window, and compiles the pattern.
func (r *Row) check() (remedy string, err error) {
	values := r.values()
	for i, name := range strings.Split(rowFields, ", ") {
		if strings.TrimSpace(values[i]) == "" {
			return "a row needs " + rowFields, fmt.Errorf("the row has no %s", name)
		}
	}
	if r.globs, err = compileGlobs(r.Pattern); err != nil {
		return "write it like \"gpt-4o*\"", err
	}
	for i, n := range []int{r.Window, r.EAS} {
		if n <= 0 || n > maxRowTokens {
			return "write a number of tokens, like 8000", fmt.Errorf("%s is %d, it must be 1 to %d",
				[]string{"window", "eas"}[i], n, maxRowTokens)
		}
	}
	if r.EAS > r.Window {
		return "a model cannot attend to more than it is given: lower eas or raise window",
			fmt.Errorf("eas %d is larger than the window of %d", r.EAS, r.Window)
	}
	if !tokens.IsEncoding(r.Encoding) {
		return "use one of " + strings.Join(tokens.Encodings(), ", "), fmt.Errorf("unknown encoding %q", r.Encoding)
	}
	switch r.Confidence {
	case ConfidenceHigh, ConfidenceMedium, ConfidenceLow, ConfidenceNone:
	default:
		return "use high, medium, low or none", fmt.Errorf("unknown confidence %q", r.Confidence)
	}
	if _, err := time.Parse(time.DateOnly, r.Updated); err != nil {
		return "write it as yyyy-mm-dd", fmt.Errorf("updated %q is not a date", r.Updated)
	}
	return "", nil
}

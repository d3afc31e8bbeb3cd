package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/orchestrator/tool"
)

// MaxEdits bounds the edits of one StrReplaceFile.
const MaxEdits = 200

// maxLinesNamed bounds the places a result lists.
const maxLinesNamed = 20

// StrReplaceFile is the tool that replaces exact text in a file. Bytes outside matches are
// never changed, in any encoding.
func StrReplaceFile() tool.Tool { return replaceFile{} }

type replaceFile struct{}

// edit is one replacement.
type edit struct {
	Old        string `json:"old"`
	New        string `json:"new"`
	ReplaceAll bool   `json:"replace_all"`
}

func editParams() []tool.Param {
	return []tool.Param{
		tool.Required("old", tool.Text("The text to replace, exactly as it is in the file, without line numbers.")),
		tool.Required("new", tool.String("What to put in its place; empty to delete it.")),
		tool.Optional("replace_all", tool.Bool("Replace every match; otherwise old must match exactly once.")),
	}
}

func (replaceFile) Spec() tool.Spec {
	one, most := 1, MaxEdits
	several := func(description string) *jsonschema.Schema {
		return &jsonschema.Schema{
			Type: "array", Description: description,
			Items: tool.Params(editParams()...), MinItems: &one, MaxItems: &most,
		}
	}
	params := []tool.Param{
		tool.Required("path", tool.Text("Path of the file, relative to the working directory.")),
		tool.Optional("edit", &jsonschema.Schema{
			Description: "One edit, or a list of edits applied in order; if one fails, none is applied.",
			AnyOf:       []*jsonschema.Schema{tool.Params(editParams()...), several("")},
		}),
		tool.Optional("edits", several("Alias of edit.")),
	}
	for _, p := range editParams() {
		p.Required = false
		params = append(params, p)
	}
	return tool.Spec{
		Name: "StrReplaceFile",
		Description: "Replace exact text in a file. Give either edit, or old and new. If old occurs more than once, " +
			"the call fails unless replace_all is set: include surrounding lines to make it unique. If one edit " +
			"fails, none is applied.",
		Schema: tool.Params(params...),
		Edits:  true,
	}
}

// edits are one edit or several: an object or a list of them.
type edits []edit

func (e *edits) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return json.Unmarshal(data, (*[]edit)(e))
	}
	*e = make(edits, 1)
	return json.Unmarshal(data, &(*e)[0])
}

// replaceArgs are the three forms of the arguments.
type replaceArgs struct {
	Path       string  `json:"path"`
	Edit       edits   `json:"edit"`
	Edits      edits   `json:"edits"`
	Old        *string `json:"old"`
	New        *string `json:"new"`
	ReplaceAll bool    `json:"replace_all"`
}

// all returns the edits. The error, for the model: there are none, or in two forms.
func (a replaceArgs) all() (edits, error) {
	single := a.Old != nil || a.New != nil || a.ReplaceAll
	ways := 0
	for _, given := range []bool{len(a.Edit) > 0, len(a.Edits) > 0, single} {
		if given {
			ways++
		}
	}
	switch {
	case ways > 1:
		return nil, errors.New("give either edit or old and new, not both")
	case ways == 0, single && (a.Old == nil || a.New == nil):
		return nil, errors.New("give old and new (new may be empty), or edit: {\"old\", \"new\"} or a list of these")
	case single:
		return edits{{*a.Old, *a.New, a.ReplaceAll}}, nil
	}
	return append(a.Edit, a.Edits...), nil
}

func (replaceFile) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[replaceArgs](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	wanted, err := a.all()
	if err != nil {
		return tool.Errorf("StrReplaceFile was not run: %v.", err), nil
	}
	t, err := locateWritable(env, a.Path, tool.MustExist)
	if err != nil {
		return result("StrReplaceFile", err), nil
	}
	defer t.close()
	if t.info == nil {
		return result("StrReplaceFile", missing(t.rel)), nil
	}
	data, err := t.readAll()
	if err != nil {
		return result("StrReplaceFile", err), nil
	}
	text, n, err := apply(string(data), wanted)
	if err != nil {
		return result("StrReplaceFile", t.errorf("%v; nothing was written", err)), nil
	}
	if err := t.replace([]byte(text)); err != nil {
		return result("StrReplaceFile", err), nil
	}
	r := tool.Textf("edited %s; edits: %d; replacements: %d; size: %d%s", t.rel, len(wanted), n,
		len(text), t.linkNote())
	r.Reads, r.Writes = []string{t.rel}, []string{t.rel}
	r.Display = fmt.Sprintf("%s, %d replaced", t.rel, n)
	return r, nil
}

// apply makes the edits in order and counts the replacements. The error names the edit and the
// remedy.
func apply(text string, edits []edit) (string, int, error) {
	total := 0
	for i, e := range edits {
		which := "old"
		if len(edits) > 1 {
			which = fmt.Sprintf("edit %d of %d: old", i+1, len(edits))
		}
		n := 0
		forms := e.forms(text)
		if e.Old != "" {
			for _, f := range forms {
				n += strings.Count(text, f.Old)
			}
		}
		switch {
		case e.Old == "":
			return "", 0, fmt.Errorf("%s is empty", which)
		case e.Old == e.New:
			return "", 0, fmt.Errorf("%s and new are the same", which)
		case n == 0:
			return "", 0, fmt.Errorf("%s does not occur%s", which, whyNot(text, e.Old))
		case n > 1 && !e.ReplaceAll:
			return "", 0, fmt.Errorf("%s occurs %d times, at lines %s: add text around it to make it unique, or "+
				"set replace_all", which, n, places(text, forms))
		}
		for _, f := range forms {
			// The size is checked before the text is made: many matches could make gigabytes of a small file.
			if grown := len(text) + strings.Count(text, f.Old)*(len(f.New)-len(f.Old)); grown > MaxEditBytes {
				return "", 0, fmt.Errorf("%s: the file would become %d bytes, at most %d are allowed", which,
					grown, MaxEditBytes)
			}
			text = strings.ReplaceAll(text, f.Old, f.New)
		}
		total += n
	}
	return text, total, nil
}

// forms returns an edit in each of the line ends in which it may apply to a text. A reader of
// the file does not see them, so models write LF. Where the file has one kind, both texts get
// it; where it has both, an LF edit applies to either kind, but not across them. Texts with CR
// apply as they are where they occur.
func (e edit) forms(text string) []edit {
	with := func(end string) edit {
		ends := func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", end) }
		return edit{ends(e.Old), ends(e.New), e.ReplaceAll}
	}
	crlf := strings.Count(text, "\r\n")
	switch {
	case strings.Contains(e.Old, "\r"):
		if crlf == 0 && !strings.Contains(text, e.Old) {
			return []edit{with("\n")}
		}
	case crlf > 0 && crlf == strings.Count(text, "\n") && !strings.Contains(e.New, "\r"):
		return []edit{with("\r\n")}
	case crlf > 0 && strings.Contains(e.Old, "\n"):
		return []edit{e, with("\r\n")}
	}
	return []edit{e}
}

// places lists the lines that an edit's forms occur at.
func places(text string, forms []edit) string {
	var lines []string
	for _, f := range forms {
		for from := 0; ; {
			i := strings.Index(text[from:], f.Old)
			if i < 0 {
				break
			}
			if len(lines) == maxLinesNamed {
				return strings.Join(lines, ", ") + " and more"
			}
			lines = append(lines, fmt.Sprint(1+strings.Count(text[:from+i], "\n")))
			from += i + len(f.Old)
		}
	}
	return strings.Join(lines, ", ")
}

// whyNot looks for the usual reasons why a text is not found: mixed line ends, white space.
func whyNot(text, old string) string {
	lf := strings.NewReplacer("\r\n", "\n")
	if strings.Contains(lf.Replace(text), lf.Replace(old)) {
		return ": the file's line ends are mixed there (LF and CRLF); replace line by line"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(old), "\n")
	first = strings.Join(strings.Fields(first), " ")
	if first != "" {
		number := 0
		for line := range strings.SplitSeq(text, "\n") {
			number++
			if strings.Contains(strings.Join(strings.Fields(line), " "), first) {
				return fmt.Sprintf(": its first line is like line %d, but not byte for byte the same from there on; "+
					"read the file again", number)
			}
		}
	}
	return ": read the file again"
}

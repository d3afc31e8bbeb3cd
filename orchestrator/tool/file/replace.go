package file

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/orchestrator/tool"
)

// MaxEdits bounds the edits of one StrReplaceFile.
const MaxEdits = 200

// maxLinesNamed bounds the places an answer lists.
const maxLinesNamed = 20

// StrReplaceFile is the tool that replaces exact text in a file. Bytes that are
// not part of a match are never touched, whatever their encoding.
func StrReplaceFile(o *Options) tool.Tool { return replaceFile{} }

type replaceFile struct{}

// edit is one replacement.
type edit struct {
	Old        string `json:"old"`
	New        string `json:"new"`
	ReplaceAll bool   `json:"replace_all"`
}

func editParams() []tool.Param {
	return []tool.Param{
		{Name: "old", Required: true, Schema: tool.Text("The text to replace, exactly as it is in the file, without line numbers.")},
		{Name: "new", Required: true, Schema: tool.String("What to put in its place; empty to delete it.")},
		{Name: "replace_all", Schema: tool.Bool("Replace every match; otherwise old must match exactly once.")},
	}
}

func (replaceFile) Spec() tool.Spec {
	one, most := 1, MaxEdits
	params := []tool.Param{
		{Name: "path", Required: true, Schema: tool.Text("The file, relative to the world's directory.")},
		{Name: "edits", Schema: &jsonschema.Schema{
			Type: "array", Description: "Several edits, made one after the other, all or none.",
			Items: tool.Params(editParams()...), MinItems: &one, MaxItems: &most,
		}},
	}
	for _, p := range editParams() {
		p.Required = false
		params = append(params, p)
	}
	return tool.Spec{
		Name: "StrReplaceFile",
		Description: "Replace exact text in a file: either old and new, or edits. A text that occurs more than once is an error " +
			"unless replace_all is set: add lines around it to make it unique. All edits are made or none.",
		Schema: tool.Params(params...),
		Edits:  true,
	}
}

func (replaceFile) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Path       string  `json:"path"`
		Edits      []edit  `json:"edits"`
		Old        *string `json:"old"`
		New        *string `json:"new"`
		ReplaceAll bool    `json:"replace_all"`
	}](args)
	if err != nil {
		return tool.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return tool.Result{}, fmt.Errorf("edit %s: %w", a.Path, err)
	}
	single := a.Old != nil || a.New != nil || a.ReplaceAll
	switch {
	case single && len(a.Edits) > 0:
		return tool.Errorf("StrReplaceFile was not run: give either edits or old and new, not both."), nil
	case single && (a.Old == nil || a.New == nil), !single && len(a.Edits) == 0:
		return tool.Errorf("StrReplaceFile was not run: give old and new (new may be empty), or edits: a list of {\"old\", \"new\"}."), nil
	case single:
		a.Edits = []edit{{*a.Old, *a.New, a.ReplaceAll}}
	}
	t, err := locateWritable(env, a.Path, false)
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
	text, n, err := apply(string(data), a.Edits)
	if err != nil {
		return result("StrReplaceFile", &tool.PathError{Path: t.rel, Reason: err.Error() + "; nothing was written"}), nil
	}
	if err := t.replace([]byte(text)); err != nil {
		return result("StrReplaceFile", err), nil
	}
	r := tool.Textf("edited %s; edits: %d; replacements: %d; size: %d%s", t.rel, len(a.Edits), n, len(text), t.linkNote())
	r.Reads, r.Writes = []string{t.rel}, []string{t.rel}
	r.Display = fmt.Sprintf("%s, %d replaced", t.rel, n)
	return r, nil
}

// apply makes the edits in order and counts the replacements. The error names
// the edit and says what to do about it.
func apply(text string, edits []edit) (string, int, error) {
	total := 0
	for i, e := range edits {
		which := "old"
		if len(edits) > 1 {
			which = fmt.Sprintf("edit %d of %d: old", i+1, len(edits))
		}
		n := 0
		if e.Old != "" {
			n = strings.Count(text, e.Old)
		}
		switch {
		case e.Old == "":
			return "", 0, fmt.Errorf("%s is empty", which)
		case e.Old == e.New:
			return "", 0, fmt.Errorf("%s and new are the same", which)
		case n == 0:
			return "", 0, fmt.Errorf("%s does not occur%s", which, whyNot(text, e.Old))
		case n > 1 && !e.ReplaceAll:
			return "", 0, fmt.Errorf("%s occurs %d times, at lines %s: add text around it to make it unique, or set replace_all", which, n, places(text, e.Old))
		}
		if grown := len(text) + n*(len(e.New)-len(e.Old)); grown > MaxEditBytes {
			return "", 0, fmt.Errorf("%s: the file would become %d bytes, at most %d are allowed", which, grown, MaxEditBytes)
		}
		text = strings.ReplaceAll(text, e.Old, e.New)
		total += n
	}
	return text, total, nil
}

// places lists the lines a text occurs at.
func places(text, old string) string {
	var lines []string
	for from := 0; ; {
		i := strings.Index(text[from:], old)
		if i < 0 {
			return strings.Join(lines, ", ")
		}
		if len(lines) == maxLinesNamed {
			return strings.Join(lines, ", ") + " and more"
		}
		lines = append(lines, fmt.Sprint(lineOf(text, from+i)))
		from += i + len(old)
	}
}

// whyNot looks for the usual reasons why a text is not found: line endings,
// white space.
func whyNot(text, old string) string {
	if strings.Contains(text, "\r\n") && !strings.Contains(old, "\r") &&
		strings.Contains(text, strings.ReplaceAll(old, "\n", "\r\n")) {
		return ": the file's lines end in CRLF, write them as \\r\\n"
	}
	if strings.Contains(old, "\r\n") && strings.Contains(text, strings.ReplaceAll(old, "\r\n", "\n")) {
		return ": the file's lines end in LF, not CRLF"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(old), "\n")
	first = strings.Join(strings.Fields(first), " ")
	if first != "" {
		number := 0
		for line := range strings.SplitSeq(text, "\n") {
			number++
			if strings.Contains(strings.Join(strings.Fields(line), " "), first) {
				return fmt.Sprintf(": its first line is like line %d, but not byte for byte the same from there on; read the file again", number)
			}
		}
	}
	return ": read the file again"
}

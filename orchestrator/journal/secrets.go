package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"unicode/utf8"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/tool"
)

// Limits of the search for the file a secret came from.
const (
	maxOriginFiles = 64       // files looked into for one operation
	maxOriginBytes = 32 << 20 // bytes read of each
)

// keptNames are the fields that hold names and ids of the program: they are not redacted. The
// names and ids of calls are not among them, since a model may write anything there.
const keptNames = "task dir store model eas_from encoding approval kb program source kind hash boot_id " +
	"decision by commit tree from_commit to_commit base finish trigger writer base64 bundle"

// redactBody returns an operation as it is recorded, shown and sent: with markers in place of
// secrets. The vault durably holds the values of the markers when it returns.
func (j *Journal) redactBody(b op.Body) (op.Body, []byte, error) {
	data, err := op.Encode(b)
	if err != nil {
		return nil, nil, err
	}
	var found []redact.Found
	plain := data
	data, changed, err := j.redactor.JSON(plain, &redact.JSONOptions{
		Keep: strings.Fields(keptNames), OwnKeys: true, Foreign: "extra", Nested: []string{"args"}, Valid: true,
		Found: func(_ []string, f redact.Found) { found = append(found, f) },
	})
	if err != nil {
		return nil, nil, err
	}
	if err := j.keepOrigins(b, found); err != nil {
		return nil, nil, err
	}
	if !changed {
		return b, data, nil
	}
	redacted, err := op.Decode(b.Kind(), data)
	if err != nil {
		return nil, nil, fmt.Errorf("redact %s: %w", b.Kind(), err)
	}
	if b, ok := redacted.(*op.ModelReplied); ok {
		if was, err := op.Decode(b.Kind(), plain); err != nil || !dropAltered(b, was.(*op.ModelReplied)) {
			return redacted, data, err
		}
		data, err = op.Encode(redacted)
	}
	return redacted, data, err
}

// dropAltered removes from a reply what its provider would refuse: a structure whose texts were redacted no
// longer matches its signature. A field that is one text goes back redacted. It reports whether anything
// was removed.
func dropAltered(b, was *op.ModelReplied) bool {
	removed := false
	drop := func(now, was map[string]json.RawMessage) {
		maps.DeleteFunc(now, func(key string, v json.RawMessage) bool {
			gone := !bytes.Equal(v, was[key]) && (v[0] != '"' || redact.Opaque(key))
			removed = removed || gone
			return gone
		})
	}
	drop(b.Extra, was.Extra)
	for i := range b.Calls {
		drop(b.Calls[i].Extra, was.Calls[i].Extra)
	}
	return removed
}

// keepOrigins records in the vault where the secrets of an operation came from: the files a
// tool read that hold them, and the file into whose text the model wrote them.
func (j *Journal) keepOrigins(b op.Body, found []redact.Found) error {
	if j.o.Files == nil {
		return j.keepMarkers(found)
	}
	if err := j.vault.Learn(j.o.Learned); err != nil {
		return err
	}
	switch b := b.(type) {
	case *op.ToolReturned:
		if len(b.Reads) > 0 {
			// A file may hold text that looks like a marker. It stays text.
			for _, m := range redact.Markers(b.Text) {
				found = append(found, redact.Found{Marker: m, Bytes: m})
			}
		}
		return j.keepFound(b.Reads, found)
	case *op.ModelReplied:
		if len(found) == 0 {
			return nil
		}
		for _, c := range b.Calls {
			if err := j.keepWritten(c); err != nil {
				return err
			}
		}
	}
	return j.keepMarkers(found)
}

// keepFound records the origin of secrets that a tool itself found: the files it read that
// hold them.
func (j *Journal) keepFound(files []string, found []redact.Found) error {
	if len(found) == 0 {
		return nil
	}
	if err := j.keepRead(files, found); err != nil {
		return err
	}
	return j.keepMarkers(found)
}

// keepMarkers records that markers are this task's, whatever the origin of their secrets.
func (j *Journal) keepMarkers(found []redact.Found) error {
	for _, f := range found {
		if f.Marker == f.Bytes {
			continue
		}
		if err := j.vault.Add(f.Marker, "", ""); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) keepRead(files []string, found []redact.Found) error {
	root, err := j.o.Files()
	if err != nil {
		return err
	}
	for _, name := range notice.FirstN(files, maxOriginFiles) {
		f, err := root.Open(name)
		if err != nil {
			continue // gone by now: its secrets cannot be restored into it
		}
		data, err := io.ReadAll(io.LimitReader(f, maxOriginBytes))
		f.Close()
		if err != nil {
			continue
		}
		for _, s := range found {
			if !bytes.Contains(data, []byte(s.Bytes)) {
				continue
			}
			if err := j.vault.Add(s.Marker, name, s.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepWritten keeps the secrets that a model wrote into a file's text.
func (j *Journal) keepWritten(c op.Call) error {
	var args struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(c.Args), &args) != nil || args.Path == "" {
		return nil
	}
	root, err := j.o.Files()
	if err != nil {
		return err
	}
	env := tool.Env{Root: root, Dir: j.o.Dir}
	file, err := env.Resolve(args.Path)
	if err != nil {
		return nil // the tool reports it
	}
	var keepErr error
	_, _, err = j.redactor.JSON([]byte(c.Args), &redact.JSONOptions{Found: func(_ []string, f redact.Found) {
		keepErr = errors.Join(keepErr, j.vault.Add(f.Marker, file, f.Bytes))
	}})
	return errors.Join(err, keepErr)
}

// UnredactArgs returns the arguments a tool is run with. In the texts of a tool that edits a
// file, markers are replaced by their values from that file. A marker of another file, or for
// another kind of tool, is refused with a *tool.CallError, before anything is done.
func (j *Journal) UnredactArgs(env *tool.Env, spec tool.Spec, args json.RawMessage) (json.RawMessage, error) {
	if spec.ReadOnly || !redact.HasMarker(string(args)) {
		return args, nil
	}
	refuse := func(format string, a ...any) error {
		return &tool.CallError{Text: fmt.Sprintf("%s was not run: ", spec.Name) + fmt.Sprintf(format, a...)}
	}
	if !spec.Edits {
		return nil, refuse("its arguments hold %s, a marker of a secret that is not shown. A value reaches a command "+
			"through its environment or a file it reads itself, never through its arguments.",
			redact.Markers(string(args))[0])
	}
	var fields struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(args, &fields); err != nil {
		return nil, refuse("%v.", err)
	}
	if fields.Path == "" {
		return nil, refuse("its arguments hold %s, a marker of a secret that is not shown. WriteFile and "+
			"StrReplaceFile put it back.", redact.Markers(string(args))[0])
	}
	if redact.HasMarker(fields.Path) {
		return nil, refuse("a path cannot hold a marker of a secret.")
	}
	file, err := env.Resolve(fields.Path)
	if err != nil {
		return nil, refuse("%v.", err)
	}
	var unknown error
	out := redact.ReplaceMarkers(string(args), func(m string) string {
		secret, err := j.vault.Lookup(m, file)
		if err == nil && !utf8.ValidString(secret) { // arguments are JSON, which cannot hold it
			err = fmt.Errorf("%s is the marker of bytes that are not UTF-8; change the lines around it with "+
				"StrReplaceFile, and leave its own out", m)
		}
		unknown = cmp.Or(unknown, err)
		quoted, _ := json.Marshal(secret) // a text always encodes
		return string(quoted[1 : len(quoted)-1])
	})
	if unknown != nil {
		return nil, refuse("%v. Nothing was written.", unknown)
	}
	return json.RawMessage(out), nil
}

// RedactText redacts a text that is shown and not recorded.
func (j *Journal) RedactText(s string) string {
	out, _ := j.redactor.Text(s)
	return out
}

// RedactFault redacts a model's fault.
func (j *Journal) RedactFault(f *model.Fault) *model.Fault {
	shown := *f
	shown.Partial = j.RedactText(f.Partial)
	if f.Err != nil {
		if text := j.RedactText(f.Err.Error()); text != f.Err.Error() {
			shown.Err = errors.New(text)
		}
	}
	return &shown
}

// Deltas redacts a reply while it arrives. It holds back the last words until they cannot be
// part of a secret; end releases them.
func (j *Journal) Deltas(show func(model.Delta)) (on func(model.Delta), end func()) {
	if show == nil {
		return nil, func() {}
	}
	fresh := func() (text, reasoning *redact.Writer) {
		return j.redactor.NewWriter(deltaText(func(s string) { show(model.Delta{Text: s}) })),
			j.redactor.NewWriter(deltaText(func(s string) { show(model.Delta{Reasoning: s}) }))
	}
	text, reasoning := fresh()
	end = func() { _ = errors.Join(reasoning.Close(), text.Close()) } // deltaText never fails
	return func(d model.Delta) {
		if d.Restart { // what is held back of the reply that broke off is never shown
			text, reasoning = fresh()
			show(d)
			return
		}
		if d.Reasoning != "" {
			_, _ = io.WriteString(reasoning, d.Reasoning)
		}
		if d.Text != "" {
			_ = reasoning.Close() // thinking comes before words
			_, _ = io.WriteString(text, d.Text)
		}
	}, end
}

// deltaText is a writer that calls a function.
type deltaText func(string)

func (f deltaText) Write(p []byte) (int, error) {
	f(string(p))
	return len(p), nil
}

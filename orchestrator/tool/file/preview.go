package file

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"anamnesis/orchestrator/tool"
)

// Change is a call's change of one file.
type Change struct {
	Path          string
	Before, After string
	New           bool // the file does not exist yet
}

// Preview returns what a call of one of this package's tools would change; nothing for a call
// of another tool. The error is why the call would fail and change nothing.
func Preview(env *tool.Env, name string, args json.RawMessage) (changes []Change, err error) {
	switch name {
	case "WriteFile":
		return previewWrite(env, args)
	case "StrReplaceFile":
		return previewReplace(env, args)
	case "PatchFile":
		return previewPatch(env, args)
	}
	return nil, nil
}

// Paths lists the files that a call names to be written. Of a tool of another package, these are all
// texts on one line among its arguments, since any may be a path.
func Paths(name string, args json.RawMessage) (out []string) {
	switch name {
	case "WriteFile", "StrReplaceFile":
		var a struct {
			Path string `json:"path"`
		}
		if json.Unmarshal(args, &a) == nil {
			out = []string{a.Path}
		}
	case "PatchFile":
		var a patchArgs
		if json.Unmarshal(args, &a) == nil {
			changes, _ := parsePatch(a.Patch) // a faulty one changes nothing
			for _, c := range changes {
				out = append(out, c.path)
				if c.to != "" {
					out = append(out, c.to)
				}
			}
		}
	default:
		var value any
		if json.Unmarshal(args, &value) == nil {
			out = lines(value, nil)
		}
	}
	return out
}

// maxPathBytes bounds a text that may be a path.
const maxPathBytes = 4_096

func lines(value any, out []string) []string {
	switch v := value.(type) {
	case string:
		if v != "" && len(v) <= maxPathBytes && !strings.ContainsAny(v, "\n\x00") {
			out = append(out, v)
		}
	case []any:
		for _, e := range v {
			out = lines(e, out)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = lines(v[key], out)
		}
	}
	return out
}

func previewWrite(env *tool.Env, args json.RawMessage) ([]Change, error) {
	a, err := tool.Decode[writeArgs](context.Background(), args)
	if err != nil {
		return nil, err
	}
	before, rel, err := current(env, a.Path)
	if err != nil && before != nil && a.Mode != "append" {
		return nil, nil // a file that cannot be shown can be replaced
	}
	if err != nil {
		return nil, err
	}
	c := Change{Path: rel, After: a.Content, New: before == nil}
	if before != nil {
		c.Before = *before
		if a.Mode == "append" {
			c.After = c.Before + a.Content
		}
	}
	return []Change{c}, nil
}

func previewReplace(env *tool.Env, args json.RawMessage) ([]Change, error) {
	a, err := tool.Decode[replaceArgs](context.Background(), args)
	if err != nil {
		return nil, err
	}
	wanted, err := a.all()
	if err != nil {
		return nil, err
	}
	before, rel, err := current(env, a.Path)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return nil, missing(rel)
	}
	after, _, err := apply(*before, wanted)
	if err != nil {
		return nil, &tool.PathError{Path: rel, Reason: err.Error()}
	}
	return []Change{{Path: rel, Before: *before, After: after}}, nil
}

func previewPatch(env *tool.Env, args json.RawMessage) ([]Change, error) {
	a, err := tool.Decode[patchArgs](context.Background(), args)
	if err != nil {
		return nil, err
	}
	parsed, err := parsePatch(a.Patch)
	if err != nil {
		return nil, err
	}
	var out []Change
	for _, c := range parsed {
		before, rel, err := current(env, c.path)
		if err != nil {
			return nil, err
		}
		change := Change{Path: rel, New: before == nil}
		if before != nil {
			change.Before = *before
		}
		if change.After, err = c.apply(rel, change.Before, before != nil, tool.SecretFile(rel, nil)); err != nil {
			return nil, err
		}
		if c.kind == remove {
			change.After = ""
		}
		if c.to != "" {
			change.Path += " → " + c.to
		}
		out = append(out, change)
	}
	return out, nil
}

// current returns a file's content; nil: it does not exist, or cannot be located. It creates
// no directory.
func current(env *tool.Env, path string) (*string, string, error) {
	rel, err := env.Resolve(path)
	if err != nil {
		return nil, path, err
	}
	if _, err := env.Root.Lstat(rel); errors.Is(err, fs.ErrNotExist) {
		return nil, rel, nil
	}
	t, err := locateWritable(env, path, tool.MustExist)
	if err != nil {
		return nil, rel, err
	}
	defer t.close()
	if t.info == nil {
		return nil, t.rel, nil
	}
	data, err := t.readAll()
	text := string(data)
	return &text, t.rel, err
}

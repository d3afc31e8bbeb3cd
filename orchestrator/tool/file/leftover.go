package file

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// RemoveLeftover removes the temporary files of a file tool's call when the program was killed
// in the middle of it. A call of another tool leaves none.
func RemoveLeftover(root *os.Root, c op.Call) error {
	env := &tool.Env{Root: root, Dir: root.Name()}
	var errs []error
	for _, name := range written(c) {
		rel, err := env.Resolve(name)
		if err != nil {
			continue // it was refused
		}
		dir := path.Dir(rel)
		entries, err := fs.ReadDir(root.FS(), dir)
		if err != nil {
			continue // no such folder in the world: nothing was written there
		}
		for _, e := range entries {
			if e.Type().IsRegular() && strings.HasPrefix(e.Name(), tempPrefix) {
				errs = append(errs, root.Remove(path.Join(dir, e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

// written lists the paths that a call was to write, as it names them.
func written(c op.Call) []string {
	var args struct{ Path, Patch string }
	if json.Unmarshal([]byte(c.Args), &args) != nil {
		return nil
	}
	switch c.Name {
	case "WriteFile", "StrReplaceFile":
		return []string{args.Path}
	case "PatchFile":
		changes, err := parsePatch(args.Patch)
		if err != nil {
			return nil
		}
		var out []string
		for _, c := range changes {
			out = append(out, c.path, c.to)
		}
		return out
	}
	return nil
}

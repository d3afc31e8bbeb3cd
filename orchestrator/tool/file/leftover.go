package file

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// RemoveLeftover removes the temporary files of a file tool's call when the program was killed
// in the middle of it. A call of another tool leaves none.
func RemoveLeftover(root *os.Root, c op.Call) error {
	if !slices.Contains([]string{"WriteFile", "StrReplaceFile", "PatchFile"}, c.Name) {
		return nil
	}
	env := &tool.Env{Root: root, Dir: root.Name()}
	var errs []error
	for _, name := range Paths(c.Name, json.RawMessage(c.Args)) {
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

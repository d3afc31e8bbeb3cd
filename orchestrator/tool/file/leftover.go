package file

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"anamnesis/opstream/op"
)

// RemoveLeftover removes what a file tool's call left half written when the
// program was killed: files of our own naming beside the file it was to write.
// A call of another tool leaves nothing.
func RemoveLeftover(root *os.Root, c op.Call) error {
	var args struct {
		Path string `json:"path"`
	}
	if (c.Name != "WriteFile" && c.Name != "StrReplaceFile") || json.Unmarshal([]byte(c.Args), &args) != nil {
		return nil
	}
	dir := path.Dir(path.Clean(args.Path))
	entries, err := fs.ReadDir(root.FS(), strings.TrimPrefix(dir, "/"))
	if err != nil {
		return nil // no such folder in the world: nothing was begun there
	}
	var errs []error
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), tempPrefix) {
			errs = append(errs, root.Remove(path.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

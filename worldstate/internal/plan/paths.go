package plan

import (
	"fmt"
	"path/filepath"
	"sort"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// RelativePaths makes a caller's paths relative to the world at dir. An empty result means the
// whole world.
func RelativePaths(dir string, paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		if path == "" { // an unset variable must not mean the whole world
			return nil, fmt.Errorf("%w: an empty path; \".\" is the whole world", gitfmt.ErrRefused)
		}
		rel := filepath.Clean(path)
		if filepath.IsAbs(rel) {
			parent, err := filepath.EvalSymlinks(filepath.Dir(rel))
			if err != nil {
				return nil, err
			}
			if rel, err = filepath.Rel(dir, filepath.Join(parent, filepath.Base(rel))); err != nil {
				return nil, err
			}
		}
		rel = filepath.ToSlash(rel)
		if rel == "." {
			return nil, nil // the whole world
		}
		if !fsys.ValidPath(rel) {
			return nil, fmt.Errorf("%w: path %q is outside the world or in a git directory", gitfmt.ErrRefused, path)
		}
		out = append(out, rel)
	}
	sort.Strings(out)
	return out, nil
}

package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/worldstate"
)

// maxLinks bounds the symbolic links followed for one path.
const maxLinks = 40

// PathError is why a path from the model is refused. Its text tells the model what is wrong
// and what is right.
type PathError struct {
	Path   string // as the model named it
	Reason string
}

func (e *PathError) Error() string { return fmt.Sprintf("%s: %s", quotePath(e.Path), e.Reason) }

// maxShownPath is how much of a path a refusal repeats, in bytes.
const maxShownPath = 400

// quotePath shows a path plainly, or quoted if that would be unclear.
func quotePath(p string) string {
	if len(p) > maxShownPath {
		p = quote.CutBytes(p, maxShownPath) + "…"
	}
	if q := fmt.Sprintf("%q", p); q != `"`+p+`"` || p == "" || strings.TrimSpace(p) != p {
		return q
	}
	return p
}

const outside = "leads out of the world; paths are relative to the world's directory"

// Rel returns a path relative to the world, slash-separated and clean. It accepts an absolute
// path inside Dir. It examines the text only: Resolve checks symbolic links. The error is a
// *PathError.
func (e *Env) Rel(name string) (string, error) {
	refuse := func(reason string) (string, error) { return "", &PathError{name, reason} }
	switch {
	case name == "":
		return refuse("the path is empty")
	case strings.ContainsRune(name, 0):
		return refuse("the path contains a NUL byte")
	}
	rel := name
	if filepath.IsAbs(name) {
		inside, ok := e.inside(name)
		if !ok {
			return refuse("is outside the world " + e.Dir + "; only files inside it can be used")
		}
		rel = inside
	}
	rel = path.Clean(filepath.ToSlash(rel))
	if !filepath.IsLocal(filepath.FromSlash(rel)) {
		return refuse(outside)
	}
	if !worldstate.Fits(rel) {
		return refuse(fmt.Sprintf("is nested too deeply: no checkpoint holds a path of over %d directories or %d bytes",
			worldstate.MaxDepth, worldstate.MaxPathBytes))
	}
	return rel, nil
}

// inside makes an absolute path relative to the world, whose directory may be named through
// symbolic links.
func (e *Env) inside(name string) (string, bool) {
	real, _ := filepath.EvalSymlinks(e.Dir) // relative to "" no absolute path is inside
	for _, dir := range []string{e.Dir, real} {
		rel, err := filepath.Rel(dir, name)
		if err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// Resolve follows every symbolic link of a path and returns the target's path, without links,
// relative to the world. Missing components stay as named. The error is a *PathError, or the
// system's.
func (e *Env) Resolve(name string) (string, error) {
	rel, err := e.Rel(name)
	if err != nil {
		return "", err
	}
	done, todo := ".", strings.Split(rel, "/")
	links, missing := 0, false
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			if done == "." {
				return "", &PathError{name, outside}
			}
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		if missing {
			done = next
			continue
		}
		info, err := e.Root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing, done = true, next // what does not exist has no links beneath
		case err != nil:
			return "", SystemError(name, err)
		case info.Mode()&fs.ModeSymlink == 0:
			done = next
		default:
			if links++; links > maxLinks {
				return "", &PathError{name, "too many symbolic links"}
			}
			target, err := e.Root.Readlink(next)
			if err != nil {
				return "", SystemError(name, err)
			}
			if filepath.IsAbs(target) {
				in, ok := e.inside(target)
				if !ok {
					return "", &PathError{name, "is or goes through a symbolic link that leads out of the world"}
				}
				done, target = ".", filepath.ToSlash(in)
			}
			todo = append(strings.Split(filepath.ToSlash(target), "/"), todo...)
		}
	}
	return done, nil
}

// Protected returns why a tool may not write to a resolved path; empty if it may. Version
// control's own files and the program's state are protected, at any depth and in any spelling
// that a case-insensitive file system accepts.
func Protected(rel string) string {
	for part := range strings.SplitSeq(rel, "/") {
		switch {
		case strings.EqualFold(part, ".git"):
			return "files of a .git directory are not written by tools; use git through Bash"
		case strings.EqualFold(part, ".hg"), strings.EqualFold(part, ".jj"):
			return "files of a " + strings.ToLower(part) +
				" directory are not written by tools; use hg or jj through Bash"
		case strings.EqualFold(part, ".anamnesis"):
			return "files of .anamnesis belong to the program and the user, tools do not write them"
		}
	}
	return ""
}

// Parents is what happens to missing directories of a path.
type Parents bool

// The two kinds of Parents.
const (
	MustExist Parents = false
	Created   Parents = true
)

// OpenDir opens a resolved directory, creating what is missing if parents says so. It opens one
// component at a time and checks that each is the directory of that name and not a symbolic
// link put there meanwhile, so that operations in the result affect exactly this path. The
// caller closes it.
func (e *Env) OpenDir(rel string, parents Parents) (*os.Root, error) {
	dir, err := e.Root.OpenRoot(".")
	if err != nil {
		return nil, SystemError(rel, err)
	}
	if rel == "." {
		return dir, nil
	}
	for part := range strings.SplitSeq(rel, "/") {
		next, err := stepInto(dir, rel, part, parents)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

func stepInto(dir *os.Root, rel, part string, parents Parents) (*os.Root, error) {
	info, err := dir.Lstat(part)
	if errors.Is(err, fs.ErrNotExist) && parents == Created {
		if err := dir.Mkdir(part, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, SystemError(rel, err)
		}
		info, err = dir.Lstat(part)
	}
	if err != nil {
		return nil, SystemError(rel, err)
	}
	if !info.IsDir() {
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, changed(rel)
		}
		return nil, &PathError{rel, part + " is not a directory"}
	}
	next, err := dir.OpenRoot(part)
	if err != nil {
		return nil, SystemError(rel, err)
	}
	opened, err := next.Stat(".")
	if err != nil || !os.SameFile(info, opened) {
		next.Close()
		return nil, changed(rel)
	}
	return next, nil
}

func changed(rel string) error {
	return &PathError{rel, "was changed by something else while it was used; try again"}
}

// SystemError turns a system's error about a path into a plain *PathError.
func SystemError(name string, err error) error {
	var perr *fs.PathError
	reason := err.Error()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "does not exist"
	case errors.Is(err, fs.ErrPermission):
		reason = "permission denied"
	case errors.As(err, &perr):
		reason = perr.Err.Error()
	}
	return &PathError{name, reason}
}

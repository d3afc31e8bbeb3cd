package worldstate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// Repository reads the git repository of another program. It writes nothing and does not run
// git.
type Repository struct{ store *filesystem.Storage }

// RepositoryFile is a file or a link in a tree: the id of its blob, and its mode.
type RepositoryFile struct {
	Object string
	Mode   fs.FileMode
}

// OpenRepository returns the repository whose git directory is dir. It reads nothing yet.
func OpenRepository(dir string) *Repository {
	return &Repository{filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault())}
}

// Files returns the files of a tree whose path begins with within, which ends in a slash or is
// empty, without submodules. Errors: ErrUnknown, *MissingObjectError, and ErrCorrupt for a tree
// with too many files or levels.
func (r *Repository) Files(tree, within string) (map[string]RepositoryFile, error) {
	files := map[string]RepositoryFile{}
	root, ok := gitfmt.ParseHash(tree)
	if !ok {
		return nil, fmt.Errorf("tree %q: %w", tree, ErrUnknown)
	}
	return files, r.add(files, root, within, "", 0)
}

// maxTreeFiles bounds the files of a tree: a few trees that contain each other many times over
// could name more than memory can hold.
const maxTreeFiles = 1 << 19

func (r *Repository) add(files map[string]RepositoryFile, tree gitfmt.Hash, within, below string, depth int) error {
	data, err := r.read(gitfmt.TreeObject, tree, below)
	if err != nil {
		return err
	}
	items, err := gitfmt.DecodeTree(data)
	if err != nil {
		return fmt.Errorf("tree %s: %w: %w", tree, gitfmt.ErrCorrupt, err)
	}
	if len(files)+len(items) > maxTreeFiles || depth > gitfmt.MaxTreeDepth {
		return fmt.Errorf("tree %s: %w: more than %d files or %d levels", tree, gitfmt.ErrCorrupt, maxTreeFiles, gitfmt.MaxTreeDepth)
	}
	for _, it := range items {
		var mode fs.FileMode = 0o644
		path := below + it.Name
		switch it.Mode {
		case gitfmt.TreeMode:
			if path += "/"; strings.HasPrefix(path, within) || strings.HasPrefix(within, path) {
				if err := r.add(files, it.Hash, within, path, depth+1); err != nil {
					return err
				}
			}
			continue
		case "100644", "100664":
		case "100755":
			mode = 0o755
		case "120000":
			mode = fs.ModeSymlink
		default:
			continue
		}
		if strings.HasPrefix(path, within) {
			files[path] = RepositoryFile{it.Hash.String(), mode}
		}
	}
	return nil
}

// Read returns the bytes of a file, or the target of a link. Errors: *MissingObjectError.
func (r *Repository) Read(f RepositoryFile) ([]byte, error) {
	h, _ := gitfmt.ParseHash(f.Object)
	return r.read(gitfmt.BlobObject, h, f.Object)
}

// read returns a whole, verified object.
func (r *Repository) read(t gitfmt.ObjectType, h gitfmt.Hash, path string) (data []byte, err error) {
	object, err := r.store.EncodedObject(t, h)
	var in io.ReadCloser
	if err == nil {
		in, err = object.Reader()
	}
	if err == nil {
		data, err = io.ReadAll(in)
		err = errors.Join(err, in.Close())
	}
	if err == nil && gitfmt.HashObject(t, data) != h {
		err = objects.ErrWrongHash
	}
	if err != nil {
		return nil, &MissingObjectError{Object: h.String(), Path: path, Err: err}
	}
	return data, nil
}

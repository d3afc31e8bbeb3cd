package worldstate

import (
	"fmt"
	"io/fs"
	"strings"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// Repository reads the git repository of another program. It writes nothing and does not run
// git.
type Repository struct{ objects *objects.Store }

// RepositoryFile is a file or a link in a tree: the id of its blob, and its mode.
type RepositoryFile struct {
	Object string
	Mode   fs.FileMode
}

// OpenRepository opens the repository whose git directory is dir. The caller closes it.
func OpenRepository(dir string) (*Repository, error) {
	r := &Repository{objects.New(dir)}
	r.objects.Loose = true
	if err := r.objects.Refresh(); err != nil {
		r.Close()
		return nil, fmt.Errorf("open repository %s: %w", dir, err)
	}
	return r, nil
}

// Close frees the repository's files.
func (r *Repository) Close() { r.objects.Close() }

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
	items, err := r.objects.Tree(tree, below)
	if err != nil {
		return err
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
	return r.objects.Read(h, gitfmt.BlobObject, f.Object)
}

package refs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// repoConfig is the bare repository's configuration. Automatic maintenance is off, so that
// nothing repacks the store during a restore.
const repoConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	logallrefupdates = false
[gc]
	auto = 0
[maintenance]
	auto = false
`

// Create makes a store's bare repository if there is none. It can be repeated: HEAD, by which
// git recognises a repository, is written last.
func Create(dir string) error {
	head := filepath.Join(dir, "HEAD")
	if there, err := fsys.Exists(head); there || err != nil {
		return err
	}
	for _, d := range []string{"objects/pack", "objects/info", "refs/heads", "refs/anamnesis", fsys.StateDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return fmt.Errorf("create store: %w", err)
		}
	}
	if err := fsys.WriteFileDurably(filepath.Join(dir, "config"), []byte(repoConfig)); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	if err := (&Store{Dir: dir}).UpgradeFormat(); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	if err := fsys.WriteFileDurably(head, []byte("ref: "+Latest+"\n")); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	return nil
}

// CheckDir refuses a directory that holds anything but a store.
func CheckDir(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(list) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	there, err := fsys.Exists(filepath.Join(dir, fsys.StateDir))
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if there {
		return nil
	}
	return fmt.Errorf("open store %s: %w: the directory is not empty and is not a store of this program; "+
		"name an empty or new one", dir, gitfmt.ErrRefused)
}

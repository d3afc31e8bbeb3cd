//go:build unix

package world

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// goGit is go-git's Worktree. Only this benchmark uses it: package worldstate does not. Its
// reset deletes ignored files, so a tree with ignored files differs afterwards, for every
// subject.
type goGit struct {
	dir, repo string
	r         *gogit.Repository
}

func (g *goGit) info() info { return info{name: nameGoGit} }
func (g *goGit) close()     {}

func (g *goGit) fresh(context.Context) error {
	g.r = nil
	return os.RemoveAll(g.repo)
}

// open makes the repository without Init, which would write into the tree.
func (g *goGit) open() (*gogit.Worktree, error) {
	if g.r == nil {
		store := filesystem.NewStorage(osfs.New(g.repo), cache.NewObjectLRUDefault())
		var err error
		if g.r, err = gogit.Init(store, nil); err != nil {
			return nil, err
		}
		if g.r, err = gogit.Open(store, osfs.New(g.dir)); err != nil {
			return nil, err
		}
	}
	return g.r.Worktree()
}

func (g *goGit) save(context.Context) (string, error) {
	t, err := g.open()
	if err != nil {
		return "", err
	}
	if err := t.AddWithOptions(&gogit.AddOptions{All: true}); err != nil {
		return "", err
	}
	h, err := t.Commit("bench", &gogit.CommitOptions{Author: &object.Signature{Name: "bench", Email: "bench@localhost", When: time.Now()}})
	if errors.Is(err, gogit.ErrEmptyCommit) {
		head, err := g.r.Head()
		if err != nil {
			return "", err
		}
		return head.Hash().String(), nil
	}
	return h.String(), err
}

func (g *goGit) tree(context.Context, string) (string, error)       { return "", nil }
func (g *goGit) point(_ context.Context, id string) (string, error) { return id, nil }

func (g *goGit) restore(_ context.Context, point string) error {
	t, err := g.open()
	if err != nil {
		return err
	}
	return t.Reset(&gogit.ResetOptions{Mode: gogit.HardReset, Commit: plumbing.NewHash(point)})
}

package knowledgebase

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/knowledge_base/internal/secrets"
	"anamnesis/opstream/durable"
)

// Secrets is what a folder and its history hold of secrets, and what became of it.
type Secrets struct {
	Files   []history.Place `json:"files"`   // files as they are now
	History []history.Place `json:"history"` // the folder's own repository
	Commits int             `json:"commits"` // of the history
	Changed int             `json:"changed"` // commits that are replaced
	Unread  []string        `json:"unread"`  // files that are too long, or no text, and stay as they are
	// Remotes are the names of the remotes that may hold the old history, "" for one
	// that was named by its address. Branch is the one that was shared.
	Remotes []string `json:"remotes"`
	Branch  string   `json:"branch"`
	Done    bool     `json:"done"`
}

// InProject reports whether the cards lie in another repository.
func (s *Store) InProject() bool { return s.opts.NoHistory }

// Dir returns the folder.
func (s *Store) Dir() string { return s.dir }

// Branch returns the current branch of the folder's repository; "" where it has none.
func (s *Store) Branch() string {
	repo, err := history.Open(s.dir)
	if err != nil {
		return ""
	}
	branch, _ := repo.Branch()
	return branch
}

// Any reports whether there is a secret.
func (s *Secrets) Any() bool { return len(s.Files)+len(s.History) > 0 }

// FindSecrets looks for secrets in the folder's files and in its history, and
// changes nothing.
func (s *Store) FindSecrets(ctx context.Context) (*Secrets, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, _, _, err := s.findSecrets(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for secrets: %w", err)
	}
	return found, nil
}

// findSecrets searches twice, because a value recognised late may also occur earlier.
func (s *Store) findSecrets(ctx context.Context) (*Secrets, *secrets.Scrubber, []intent.File, error) {
	if s.closed {
		return nil, nil, nil, ErrClosed
	}
	if s.opts.Redact == nil {
		return nil, nil, nil, errors.New("no redaction is set")
	}
	b := secrets.NewScrubber(s.opts.Redact)
	var repo *history.Repo
	var err error
	if !s.opts.NoHistory {
		if repo, err = history.Open(s.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil, err
		}
	}
	var out *Secrets
	var files []intent.File
	for range 2 {
		out = &Secrets{Files: []history.Place{}, History: []history.Place{}, Unread: []string{}, Remotes: []string{}}
		if repo != nil {
			survey, err := repo.Survey(ctx, b)
			if err != nil {
				return nil, nil, nil, err
			}
			out.History, out.Commits, out.Changed = append(out.History, survey.Places...), survey.Commits, survey.Changed
			out.Unread = append(out.Unread, survey.Unread...)
		}
		paths, err := s.trackedFiles(repo)
		if err != nil {
			return nil, nil, nil, err
		}
		plan, err := b.Plan(s.dir, paths)
		var taken *secrets.TakenError
		if errors.As(err, &taken) {
			err = &ConflictError{"of " + taken.Name, taken.Path, "a file of that name is there; move it away"}
		}
		if err != nil {
			return nil, nil, nil, err
		}
		out.Files, out.Unread, files = append(out.Files, plan.Places...), append(out.Unread, plan.Unread...), plan.Files
	}
	if repo == nil || out.Changed == 0 {
		return out, b, files, nil
	}
	if out.Remotes, err = repo.Remotes(); err == nil {
		out.Branch, err = repo.Branch()
	}
	return out, b, files, err
}

// trackedFiles lists the cards and the files in the repository, if there is one.
func (s *Store) trackedFiles(repo *history.Repo) ([]string, error) {
	paths, err := s.folder.Names()
	if err != nil || repo == nil {
		return paths, err
	}
	tracked, err := repo.Tracked()
	return append(paths, tracked...), err
}

// RemoveSecrets takes secrets out of the folder's files and rewrites the history
// of its own repository without them. After a crash the folder is as before, or
// the next opening ends it. Reviews hold.
func (s *Store) RemoveSecrets(ctx context.Context) (*Secrets, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	lock, err := durable.Lock(s.lockPath())
	if err != nil {
		return nil, fmt.Errorf("remove secrets: %w", err)
	}
	defer lock.Close()
	notice := s.opts.Notice
	s.opts.Notice = nil // what holds a secret has none soon
	if err = s.settle(); err == nil {
		err = s.histErr
	}
	s.opts.Notice = notice
	if err != nil {
		return nil, fmt.Errorf("remove secrets: %w", err)
	}
	out, b, files, err := s.findSecrets(ctx)
	if err == nil && out.Any() {
		err = s.removeSecrets(ctx, b, files)
		out.Done = err == nil
	}
	if err != nil {
		return nil, fmt.Errorf("remove secrets: %w", err)
	}
	return out, s.histErr
}

func (s *Store) removeSecrets(ctx context.Context, b *secrets.Scrubber, files []intent.File) error {
	in := intent.New(s.folder.Index, s.opts.Now())
	in.Author, in.Files, in.Mark = programName(), files, "rewrite-"+rand.Text()
	if err := s.noteScrubbed(files); err != nil {
		return err
	}
	if s.opts.NoHistory { // nothing decides but the intent itself
		if err := in.Write(s.fs); err != nil {
			return err
		}
	} else {
		rw, err := s.repo.Rewrite(ctx, b, in.Mark)
		if err != nil {
			return err
		}
		if err := in.Write(s.fs); err != nil {
			rw.Drop()
			return err
		}
		if err := rw.Switch(); err != nil {
			return err
		}
	}
	if err := s.endRedaction(&in, b); err != nil {
		return err
	}
	if err := s.load(ctx, nil); err != nil {
		return err
	}
	if !s.opts.NoHistory {
		s.histErr = s.commitHandEdits()
	}
	return nil
}

// noteScrubbed notes what is reviewed here, and what arrived from elsewhere, under
// what it says without its secrets.
func (s *Store) noteScrubbed(files []intent.File) error {
	was := make(map[string]*card.Card)
	for _, st := range s.cards {
		was[hex.EncodeToString(st.Sum[:])] = folder.Unpack(st.Whole)
	}
	var old, now []*card.Card
	for i, f := range files {
		before := f.Before
		if before == "" && i+1 < len(files) && files[i+1].Gone {
			before = files[i+1].Before
		}
		c, err := card.Parse([]byte(f.Data))
		if was[before] != nil && err == nil && !f.Gone {
			old, now = append(old, was[before]), append(now, c)
		}
	}
	return s.reviews.Follow(s.opts.Now(), old, now)
}

// endRedactions ends what a dead process began, if its history took the place of
// the old one, and drops it otherwise. It returns the other changes.
func (s *Store) endRedactions(pending []intent.Intent) (rest []intent.Intent, err error) {
	for _, in := range pending {
		if in.Mark == "" {
			rest = append(rest, in)
			continue
		}
		begun := s.opts.NoHistory
		if repo, err := history.Open(s.dir); err == nil && !begun {
			if begun, err = repo.HasMark(in.Mark); err != nil {
				return nil, err
			}
		}
		if !begun {
			err = os.Remove(in.Path)
		} else {
			err = s.endRedaction(&in, secrets.NewScrubber(s.opts.Redact))
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// endRedaction writes the files and removes the secrets from what is derived from
// them. It can be repeated.
func (s *Store) endRedaction(in *intent.Intent, b *secrets.Scrubber) error {
	if err := s.finish(in); err != nil {
		return err
	}
	for i := 1; i < len(in.Files); i++ {
		if f := in.Files[i]; f.Gone {
			b.Learn(path.Base(f.Path), path.Base(in.Files[i-1].Path))
		}
	}
	lists := []string{s.opts.reviews, s.usagePath()}
	if kept, err := filepath.Glob(filepath.Join(s.dir, replacedDir, "*.md")); err == nil {
		lists = append(lists, kept...)
	}
	for _, list := range lists {
		if err := b.List(s.fs, list); err != nil {
			return err
		}
	}
	// The rest of .index is made from the cards.
	entries, err := os.ReadDir(filepath.Join(s.dir, indexDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		full := filepath.Join(s.dir, indexDir, e.Name())
		if e.Name() == ".gitignore" || full == s.lockPath() || full == in.Path {
			continue
		}
		if err := os.RemoveAll(full); err != nil {
			return err
		}
	}
	return os.Remove(in.Path)
}

package knowledgebase

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/knowledge_base/internal/secrets"
	"anamnesis/opstream/durable"
)

// Secrets is what a folder and its history hold of secrets.
type Secrets struct {
	Files   []secrets.Place `json:"files"`   // files as they are now
	History []secrets.Place `json:"history"` // the folder's own repository, which is not rewritten
	Unread  []string        `json:"unread"`  // files that are too long, or no text, and stay as they are
	Done    bool            `json:"done"`    // the files hold none any more
}

// InProject reports whether the cards lie in another repository.
func (s *Store) InProject() bool { return s.opts.NoHistory }

func (s *Store) Dir() string { return s.dir }

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
		out = &Secrets{Files: []secrets.Place{}, Unread: []string{}}
		if out.History, err = secretsOf(ctx, repo, b); err != nil {
			return nil, nil, nil, err
		}
		paths, err := s.trackedFiles(repo)
		if err != nil {
			return nil, nil, nil, err
		}
		plan, err := b.Plan(s.dir, paths)
		if conflict, ok := errors.AsType[*secrets.NameConflictError](err); ok {
			err = &ConflictError{"of " + conflict.Name, conflict.Path, "a file of that name is there; move it away"}
		}
		if err != nil {
			return nil, nil, nil, err
		}
		out.Files, out.Unread, files = append(out.Files, plan.Places...), append(out.Unread, plan.Unread...), plan.Files
	}
	return out, b, files, nil
}

// secretsOf lists the files whose committed versions hold secrets, by path.
func secretsOf(ctx context.Context, repo *history.Repo, b *secrets.Scrubber) ([]secrets.Place, error) {
	out := []secrets.Place{}
	if repo == nil {
		return out, nil
	}
	kinds := make(map[string][]string)
	err := repo.Texts(ctx, func(path string, data []byte) {
		_, found := b.Blob(path, data)
		to := b.Path(path)
		if to != path {
			found = append(found, "name")
		}
		if len(found) > 0 {
			kinds[to] = append(kinds[to], found...)
		}
	})
	for _, path := range slices.Sorted(maps.Keys(kinds)) {
		slices.Sort(kinds[path])
		out = append(out, secrets.Place{Path: path, Kinds: slices.Compact(kinds[path])})
	}
	return out, err
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

// RemoveSecrets replaces the secrets in the folder's files, as one commit. The commits before
// it hold them still: rewriting those is the user's, with git. After a crash the folder is
// as before, or the next opening completes it. Reviews hold.
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
	s.opts.Notice = nil // prepareChange would report the secrets that are removed next
	if err = s.prepareChange(); err == nil {
		err = s.histErr
	}
	s.opts.Notice = notice
	if err != nil {
		return nil, fmt.Errorf("remove secrets: %w", err)
	}
	out, b, files, err := s.findSecrets(ctx)
	if err == nil && len(files) > 0 {
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
	in.Author, in.Files, in.Mark = programName(), files, redactionMark
	if err := s.recordScrubbed(files); err != nil {
		return err
	}
	if err := in.Write(s.fs); err != nil {
		return err
	}
	if err := s.completeRedaction(&in, b); err != nil {
		return err
	}
	return s.load(ctx, nil)
}

// redactionMark is the mark of an intent that replaces secrets: unlike others it may name files
// that are no cards, and what is derived from them changes as well.
const redactionMark = "redact"

// recordScrubbed notes what is reviewed here, and what arrived from elsewhere, under
// what it says without its secrets.
func (s *Store) recordScrubbed(files []intent.File) error {
	was := make(map[string]*card.Card)
	for _, st := range s.cards {
		was[hex.EncodeToString(st.Sum[:])] = st.Stated
	}
	var old, now []*card.Card
	for i, f := range files {
		before := f.Before
		// A renamed file is planned as a new one followed by the removal of the old one, of which the sum is known.
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

// completeRedaction writes the files, removes the secrets from what is derived from them, and
// commits the change. It can be repeated.
func (s *Store) completeRedaction(in *intent.Intent, b *secrets.Scrubber) error {
	if err := s.replay(in); err != nil {
		return err
	}
	// A removed file was renamed to the one before it. The lists below may hold its old name, which held a secret.
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
	// The rest of .index is derived from the cards, and may hold their secrets; it is built anew.
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
	in.Message = fmt.Sprintf("Take secrets out of %d files", len(in.Files))
	s.histErr = s.commitIntent(in)
	return nil
}

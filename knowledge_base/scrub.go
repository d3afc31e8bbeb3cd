package knowledgebase

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/disk"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/intent"
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

// scrubber gives texts, files and names of the folder without secrets. What it
// has met once it knows in other places: it is to see everything before anything
// is written.
type scrubber struct {
	s     *Store
	names map[string]string // path to the new last part of it
	swaps map[string]string // ids and names that hold a secret, to what they become
	swap  *strings.Replacer // of swaps; nil: to be made
}

func (s *Store) scrubber() *scrubber {
	return &scrubber{s: s, names: map[string]string{}, swaps: map[string]string{}}
}

func (b *scrubber) learn(was, is string) {
	if was != is && b.swaps[was] == "" {
		b.swaps[was], b.swap = is, nil
	}
}

// Text implements [history.Scrub].
func (b *scrubber) Text(text string) (string, []string) {
	if b.swap == nil {
		words := make([]string, 0, len(b.swaps))
		for was := range b.swaps {
			words = append(words, was)
		}
		slices.SortFunc(words, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
		var pairs []string
		for _, was := range words {
			pairs = append(pairs, was, b.swaps[was])
		}
		b.swap = strings.NewReplacer(pairs...)
	}
	var kinds []string
	swapped := b.swap.Replace(text)
	if swapped != text {
		kinds = append(kinds, "name")
	}
	var markers []string
	out := b.s.redactText(swapped, &markers)
	return out, append(kinds, kindsOf(markers)...)
}

// Name implements [history.Scrub].
func (b *scrubber) Name(p string) (string, []string) {
	base := path.Base(p)
	if is, ok := b.names[p]; ok {
		return is, []string{"name"}
	}
	var markers []string
	out := b.s.redactText(base, &markers)
	if len(markers) == 0 {
		return base, nil
	}
	// A marker's brackets and colons are not for file names.
	out = strings.NewReplacer("[redacted:", "redacted-", ":", "-", "]", "").Replace(out)
	b.names[p] = out
	b.learn(base, out)
	return out, kindsOf(markers)
}

// Blob implements [history.Scrub]. A card's own name follows its topic.
func (b *scrubber) Blob(p string, data []byte) ([]byte, []string) {
	text, kinds := b.Text(string(data))
	if len(kinds) == 0 || !folder.IsCardFile(p) && p != "" {
		return []byte(text), kinds
	}
	was, err := card.Parse(data)
	if err != nil {
		return []byte(text), kinds
	}
	var markers []string
	if b.s.redactText(was.ID, &markers); len(markers) > 0 {
		b.learn(was.ID, card.NewID("redacted", was.ID))
	}
	b.Text("") // makes the replacer
	c, err := card.Parse([]byte(b.swap.Replace(string(data))))
	if err != nil {
		return []byte(text), kinds
	}
	clean, _, err := b.s.redactCard(c)
	if err != nil {
		return []byte(text), kinds
	}
	if old, now := folder.FileName(was.Topic, was.ID), folder.FileName(clean.Topic, clean.ID); p != "" && path.Base(p) == old && now != old {
		b.names[p] = now
		b.learn(old, now)
	}
	return clean.Markdown(), kinds
}

// path returns what a path is called afterwards.
func (b *scrubber) path(p string) string {
	var parts []string
	for at := p; at != "." && at != "/"; at = path.Dir(at) {
		base, _ := b.Name(at)
		parts = append(parts, base)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

// kindsOf returns the kinds that markers name.
func kindsOf(markers []string) (kinds []string) {
	for _, m := range markers {
		parts := strings.Split(strings.Trim(m, "[]"), ":")
		kinds = append(kinds, parts[min(1, len(parts)-1)])
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

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

// findSecrets looks twice: what is recognised late stands earlier, too.
func (s *Store) findSecrets(ctx context.Context) (*Secrets, *scrubber, []intent.File, error) {
	if s.closed {
		return nil, nil, nil, ErrClosed
	}
	if s.opts.Redact == nil {
		return nil, nil, nil, errors.New("no redaction is set")
	}
	b := s.scrubber()
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
		if files, err = s.secretFiles(repo, b, out); err != nil {
			return nil, nil, nil, err
		}
	}
	if repo == nil || out.Changed == 0 {
		return out, b, files, nil
	}
	if out.Remotes, err = repo.Remotes(); err == nil {
		out.Branch, err = repo.Branch()
	}
	return out, b, files, err
}

// secretFiles plans what the folder's files become.
func (s *Store) secretFiles(repo *history.Repo, b *scrubber, out *Secrets) ([]intent.File, error) {
	paths, err := s.folder.Names()
	if err != nil {
		return nil, err
	}
	if repo != nil {
		tracked, err := repo.Tracked()
		if err != nil {
			return nil, err
		}
		paths = append(paths, tracked...)
	}
	slices.Sort(paths)
	var files []intent.File
	for _, p := range slices.Compact(paths) {
		full := filepath.Join(s.dir, filepath.FromSlash(p))
		info, err := os.Lstat(full)
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(p, ".") {
			continue
		}
		if info.Size() > card.MaxBytes && info.Size() > history.MaxBlobBytes {
			out.Unread = append(out.Unread, b.path(p))
			continue
		}
		data, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		clean, kinds := b.Blob(p, data)
		to := b.path(p)
		if to != p {
			kinds = append(kinds, "name")
		}
		if len(kinds) == 0 {
			continue
		}
		if !utf8.Valid(clean) {
			out.Unread = append(out.Unread, to)
			continue
		}
		slices.Sort(kinds)
		out.Files = append(out.Files, history.Place{Path: to, Kinds: slices.Compact(kinds)})
		if to == p {
			files = append(files, intent.File{Path: p, Before: intent.Sum(data), Data: string(clean)})
			continue
		}
		if _, err := os.Lstat(filepath.Join(s.dir, filepath.FromSlash(to))); err == nil {
			return nil, &ConflictError{"of " + to, filepath.Join(s.dir, filepath.FromSlash(to)), "a file of that name is there; move it away"}
		}
		files = append(files, intent.File{Path: to, Data: string(clean)}, intent.File{Path: p, Before: intent.Sum(data), Gone: true})
	}
	return files, nil
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
	release, err := disk.Lock(s.lockPath(), true)
	if err != nil {
		return nil, fmt.Errorf("remove secrets: %w", err)
	}
	defer release()
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

func (s *Store) removeSecrets(ctx context.Context, b *scrubber, files []intent.File) error {
	in := intent.New(s.folder.Index, s.opts.Now())
	in.Author, in.Files, in.Mark = programName(), files, "rewrite-"+rand.Text()
	if err := s.noteScrubbed(files); err != nil {
		return err
	}
	if s.opts.NoHistory { // nothing decides but the intent itself
		if err := in.Write(s.opts.fs); err != nil {
			return err
		}
	} else {
		rw, err := s.repo.Rewrite(ctx, b, in.Mark)
		if err != nil {
			return err
		}
		if err := in.Write(s.opts.fs); err != nil {
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
	s.clean = ""
	if err := s.load(ctx, nil); err != nil {
		return err
	}
	if !s.opts.NoHistory {
		s.histErr = s.commitHandEdits()
	}
	return nil
}

// noteScrubbed notes what is reviewed here, and what arrived from elsewhere, under
// what it says without its secrets. A note without its card harms nothing.
func (s *Store) noteScrubbed(files []intent.File) error {
	var lines []reviewed
	was := make(map[string]*card.Card)
	for _, st := range s.cards {
		was[hex.EncodeToString(st.Sum[:])] = folder.Unpack(st.Whole)
	}
	for i, f := range files {
		before := f.Before
		if before == "" && i+1 < len(files) && files[i+1].Gone {
			before = files[i+1].Before
		}
		old := was[before]
		c, err := card.Parse([]byte(f.Data))
		if old == nil || err != nil || f.Gone {
			continue
		}
		for v, listed := range map[int]map[string]bool{1: s.trusted, 2: s.arrived} {
			if listed[old.Hash()] && !listed[c.Hash()] {
				lines = append(lines, reviewed{v, c.Hash(), s.opts.Now().UTC(), c.Topic})
				listed[c.Hash()] = true
			}
		}
	}
	return s.note(lines)
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
			err = s.endRedaction(&in, s.scrubber())
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// endRedaction writes the files and takes the secrets out of what is kept beside
// them. It can be repeated.
func (s *Store) endRedaction(in *intent.Intent, b *scrubber) error {
	if err := s.finish(in); err != nil {
		return err
	}
	for i := 1; i < len(in.Files); i++ {
		if f := in.Files[i]; f.Gone {
			b.learn(path.Base(f.Path), path.Base(in.Files[i-1].Path))
		}
	}
	lists := []string{s.opts.reviews, s.usagePath()}
	if kept, err := filepath.Glob(filepath.Join(s.dir, replacedDir, "*.md")); err == nil {
		lists = append(lists, kept...)
	}
	for _, list := range lists {
		if err := s.scrubList(list, b); err != nil {
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

// scrubList takes secrets out of a file that is kept beside the cards, line by
// line; one of JSON stays JSON.
func (s *Store) scrubList(list string, b *scrubber) error {
	data, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for line := range strings.Lines(string(data)) {
		clean, kinds := b.Text(line)
		if strings.HasSuffix(list, ".jsonl") && len(kinds) > 0 && !json.Valid([]byte(clean)) {
			continue
		}
		out.WriteString(clean)
	}
	if bytes.Equal(out.Bytes(), data) {
		return nil
	}
	return disk.WriteAtomic(s.opts.fs, list, out.Bytes())
}

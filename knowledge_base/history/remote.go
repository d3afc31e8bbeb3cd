package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"anamnesis/opstream/durable"
)

// Limits of what a remote may send.
const (
	// MaxBlobBytes is the longest file that a fetch accepts.
	MaxBlobBytes = 1 << 20
	// maxObjects and maxUnpackedBytes limit one fetch; maxTreeBytes is the longest tree or commit.
	maxObjects       = 1 << 20
	maxUnpackedBytes = 512 << 20
	maxTreeBytes     = 16 << 20
)

// quarantineName is the repository in .git from which git reaches a remote.
const quarantineName = "anamnesis-fetch"

// fetchedRefs holds a remote's branch between fetching and merging.
const fetchedRefs = "refs/anamnesis/fetched/"

var (
	// ErrRejected is returned by Push when the remote has new commits.
	ErrRejected = errors.New("the remote has new commits")
	// ErrReplaced is returned by Fetch for a history with commits that a rewrite
	// replaced here.
	ErrReplaced = errors.New("the remote has the history that was replaced here")
)

// Fetch brings the remote's branch of the current name here and returns its
// commit; "" where the remote has no such branch. remote is a name or an
// address, as for git. A remote that sends a file above [MaxBlobBytes], or more than
// one fetch accepts, is an [ErrTooMuch]; nothing of it is stored.
func (r *Repo) Fetch(ctx context.Context, remote string) (string, error) {
	branch, head, err := r.head()
	if err != nil {
		return "", err
	}
	q, err := r.quarantine(ctx, remote, head)
	if err != nil {
		return "", err
	}
	defer q.remove()
	list, err := q.run(ctx, nil, nil, "ls-remote", "in", branch)
	if err != nil || !strings.Contains(list, "\t"+branch+"\n") {
		return "", err
	}
	const in = "refs/heads/in"
	if _, err := q.run(ctx, nil, nil, "fetch", "--quiet", "--no-tags", "in", "+"+branch+":"+in); err != nil {
		return "", err
	}
	theirs, err := q.run(ctx, nil, nil, "rev-parse", in)
	if err != nil {
		return "", err
	}
	theirs = strings.TrimSpace(theirs)
	since := []string{theirs}
	if head != "" {
		since = append(since, "--not", head)
	}
	if err := r.refuseReplaced(ctx, q, since); err != nil {
		return "", err
	}
	// Every received object, with a path for those that have one.
	if list, err = q.run(ctx, nil, nil, append([]string{"rev-list", "--objects"}, since...)...); err != nil {
		return "", err
	}
	// Sizes come from the objects' headers, those of deltas from theirs: nothing is unpacked.
	format := "--batch-check=%(objecttype) %(objectsize) %(rest)"
	sizes, err := q.run(ctx, nil, strings.NewReader(list), "cat-file", format)
	if err != nil {
		return "", err
	}
	if err := checkSizes(sizes); err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	if err := r.acceptPacks(q); err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	ref := filepath.Join(r.git, filepath.FromSlash(fetchedRefs+strings.TrimPrefix(branch, "refs/heads/")))
	if err := os.MkdirAll(filepath.Dir(ref), durable.DirMode); err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	return theirs, durable.WriteVia(durable.OS{}, filepath.Join(q.git, "fetched"), ref, []byte(theirs+"\n"))
}

// quarantine makes a repository that reads the folder's objects as alternates, for a remote, a name or
// an address. Its configuration is made here, with the remote's address from the folder's, of which
// nothing else is used. What it receives is checked before it is moved to the folder's objects.
func (r *Repo) quarantine(ctx context.Context, remote, head string) (*Repo, error) {
	address, err := r.run(ctx, nil, nil, "config", "--get", "remote."+remote+".url")
	if err != nil && !exitedWith(err, 1) {
		return nil, err
	}
	address = cmp.Or(strings.TrimSuffix(address, "\n"), remote)
	if strings.ContainsAny(address, "\n\r\x00") || address == "" {
		return nil, fmt.Errorf("%q is no address of a remote", address)
	}
	q := &Repo{
		dir: r.dir, git: filepath.Join(r.git, quarantineName), name: r.name + "/" + quarantineName,
		protocols: "file:git:http:https:ssh",
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(address)
	files := map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  "[remote \"in\"]\n\turl = \"" + quoted + "\"\n",
		"objects/info/alternates": "../../objects\n",
		"refs/heads/have":         head + "\n",
	}
	if head == "" {
		delete(files, "refs/heads/have")
	}
	err = os.RemoveAll(q.git) // a dead process's
	for name, text := range files {
		path := filepath.Join(q.git, filepath.FromSlash(name))
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), durable.DirMode),
			os.WriteFile(path, []byte(text), durable.FileMode))
	}
	return q, errors.Join(err, os.MkdirAll(filepath.Join(q.git, "refs"), durable.DirMode))
}

// remove deletes the repository. What stays after a failure is removed by the next one.
func (r *Repo) remove() { _ = os.RemoveAll(r.git) }

// checkSizes checks lines of the form "type size path".
func checkSizes(list string) error {
	objects, total := 0, 0
	for line := range strings.Lines(list) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		number, path, _ := strings.Cut(rest, " ")
		size, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("git cat-file: %q is no object", line)
		}
		if kind == "blob" && size > MaxBlobBytes {
			return fmt.Errorf("%w: %s has %d bytes, and a file may have %d; remove it there, from the history as well",
				ErrTooMuch, path, size, MaxBlobBytes)
		}
		objects, total = objects+1, total+size
		if size > maxTreeBytes || objects > maxObjects || total > maxUnpackedBytes {
			return fmt.Errorf("%w: at most %d objects of together %d MiB are accepted, and no folder or commit "+
				"above %d MiB", ErrTooMuch, maxObjects, maxUnpackedBytes>>20, maxTreeBytes>>20)
		}
	}
	return nil
}

// refuseReplaced refuses a history that brings back a commit that was rewritten here: git filter-repo
// lists them with their successors, and versions of this program that rewrote histories listed them
// alone.
func (r *Repo) refuseReplaced(ctx context.Context, q *Repo, since []string) error {
	replaced := make(map[string]bool)
	for _, name := range []string{"filter-repo/commit-map", "anamnesis-replaced"} {
		data, err := os.ReadFile(filepath.Join(r.git, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) == 1 || len(f) == 2 && f[0] != f[1] {
				replaced[f[0]] = true
			}
		}
	}
	if len(replaced) == 0 {
		return nil
	}
	ids, err := q.run(ctx, nil, nil, append([]string{"rev-list"}, since...)...)
	for id := range strings.Lines(ids) {
		if replaced[strings.TrimSpace(id)] {
			return ErrReplaced
		}
	}
	return err
}

// acceptPacks moves the received packs to the folder's objects. The index of a pack comes last,
// because git does not see a pack without it.
func (r *Repo) acceptPacks(q *Repo) error {
	to := filepath.Join(r.git, "objects", "pack")
	if err := durable.MakeDir(durable.OS{}, to); err != nil {
		return err
	}
	for _, ext := range []string{".pack", ".rev", ".idx"} {
		files, err := fs.Glob(os.DirFS(q.git), "objects/pack/*"+ext)
		if err != nil {
			return err
		}
		for _, name := range files {
			if err := os.Rename(filepath.Join(q.git, name), filepath.Join(to, filepath.Base(name))); err != nil {
				return err
			}
		}
	}
	return durable.Sync(to)
}

// Push returns the current branch to the remote, [ErrRejected] when that has
// gone on.
func (r *Repo) Push(ctx context.Context, remote string) error {
	branch, head, err := r.head()
	if err != nil {
		return err
	}
	q, err := r.quarantine(ctx, remote, head)
	if err != nil {
		return err
	}
	defer q.remove()
	_, err = q.run(ctx, nil, nil, "push", "--quiet", "in", head+":"+branch)
	if err != nil && (strings.Contains(err.Error(), "[rejected]") || strings.Contains(err.Error(), "fetch first")) {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return err
}

// Side is one file on the three sides of a merge; nil bytes: not there.
type Side struct {
	Path               string
	Base, Ours, Theirs []byte
}

// Merge is how a fetched commit relates to the current one.
type Merge struct {
	UpToDate bool   // the remote has nothing that is missing here
	Forward  bool   // nothing local is missing at the remote
	Changed  []Side // the files in which theirs differs from the base
}

// Compare returns what taking theirs in would bring.
func (r *Repo) Compare(ctx context.Context, theirs string) (*Merge, error) {
	_, head, err := r.head()
	if err != nil {
		return nil, err
	}
	base := ""
	if head != "" {
		// It exits with 1 where they have nothing in common.
		if base, err = r.run(ctx, nil, nil, "merge-base", head, theirs); err != nil && !exitedWith(err, 1) {
			return nil, err
		}
		base = strings.TrimSpace(base)
	}
	m := &Merge{UpToDate: base == theirs, Forward: base == head}
	if m.UpToDate {
		return m, nil
	}
	var sides [3]map[string]entry
	for i, commit := range []string{base, head, theirs} {
		if sides[i], err = r.list(commit); err != nil {
			return nil, err
		}
	}
	var list strings.Builder // lines "id file side"
	paths := maps.Clone(sides[2])
	maps.Copy(paths, sides[0])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if sides[0][path] == sides[2][path] {
			continue
		}
		for i, side := range sides {
			if e, has := side[path]; has && e.mode != plainMode {
				return nil, fmt.Errorf("%s is no plain file on one side; merge it with git", path)
			} else if has {
				fmt.Fprintf(&list, "%s %d %d\n", e.id, len(m.Changed), i)
			}
		}
		m.Changed = append(m.Changed, Side{Path: path})
	}
	err = r.objects(ctx, list.String(), func(_, rest string, data []byte) {
		var n, i int
		if _, err := fmt.Sscan(rest, &n, &i); err == nil {
			s := &m.Changed[n]
			*[]*[]byte{&s.Base, &s.Ours, &s.Theirs}[i] = data
		}
	})
	for _, s := range m.Changed {
		if _, has := sides[2][s.Path]; has && s.Theirs == nil {
			err = errors.Join(err, fmt.Errorf("%s of %s is missing", s.Path, theirs))
		}
	}
	return m, err
}

package history

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/opstream/durable"
)

const (
	// lockWait bounds the wait for a git command that holds the index.
	lockWait = 5 * time.Second
	lockTick = 20 * time.Millisecond
	// lockName is this program's name of a lock, and index.lock a second link to it,
	// so that a lock left by a dead process of this program differs from git's.
	lockName = "anamnesis.lock"
	// importRef names a commit until the branch does.
	importRef = "refs/anamnesis/commit"

	plainMode, programMode = "100644", "100755"
	noID                   = "0000000000000000000000000000000000000000"
)

// Commit is one commit to be made.
type Commit struct {
	Message string // the first line says what changed, as a user would
	Author  Person
	By      Person // the committer
	At      time.Time
	// Files are the paths that change, with slashes, and their new bytes; nil
	// bytes take a path out. Every other path stays as the branch has it.
	Files map[string][]byte
	// Merged is a further parent, for a merge; "" for none.
	Merged string
	// Forward is a commit that the branch moves to instead, because it has the branch's commit
	// as an ancestor. Files are those that it changes and that are in the folder.
	Forward string
}

// Commit makes the commit on the current branch and returns its id. Where it would change
// nothing and merge nothing it makes none and returns the current one. It is durable when
// Commit returns. The files themselves are not touched.
func (r *Repo) Commit(c Commit) (id string, err error) {
	if err := r.ready(); err != nil {
		return "", err
	}
	release, err := r.lock()
	if err != nil {
		return "", err
	}
	defer release()
	branch, at, err := r.head()
	if err != nil {
		return "", err
	}
	base, err := r.list(at)
	if err != nil {
		return "", err
	}
	changed := false
	files := make(map[string]entry, len(c.Files)) // as they become; zero: out
	for path, data := range c.Files {
		if data != nil {
			files[path] = entry{plainMode, blobID(data)}
			if base[path].mode == programMode {
				files[path] = entry{programMode, blobID(data)}
			}
		}
		changed = changed || files[path] != base[path]
	}
	id = cmp.Or(c.Forward, at)
	if c.Forward == "" && (changed || c.Merged != "") {
		if id, err = r.writeCommit(c, at, files); err != nil {
			return "", err
		}
	}
	// The index first: where the branch does not follow any more, the same change is made again.
	if err := r.updateIndex(c.Files, files); err != nil || id == at {
		return id, err
	}
	if _, now, err := r.head(); err != nil || now != at {
		return "", errors.Join(err, fmt.Errorf("%w: %s moved meanwhile", ErrBusy, branch))
	}
	// The rename also makes durable what git renamed before, on the same file system.
	if err := r.replace(branch, []byte(id+"\n")); err != nil {
		return "", fmt.Errorf("move %s: %w", branch, err)
	}
	return id, nil
}

// blobID returns the id that git has for a file's bytes.
func blobID(data []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// writeCommit stores the commit with its objects. No branch names it yet.
func (r *Repo) writeCommit(c Commit, parent string, files map[string]entry) (id string, err error) {
	var in strings.Builder
	message := strings.TrimSpace(c.Message) + "\n"
	fmt.Fprintf(&in, "commit %s\nmark :1\nauthor %s %d +0000\ncommitter %s %d +0000\ndata %d\n%s",
		importRef, identity(c.Author), c.At.Unix(), identity(c.By), c.At.Unix(), len(message), message)
	if parent != "" {
		fmt.Fprintf(&in, "from %s\n", parent)
	}
	if c.Merged != "" {
		fmt.Fprintf(&in, "merge %s\n", c.Merged)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	paths := slices.Sorted(maps.Keys(c.Files))
	for _, path := range paths { // first what goes: a folder may become a file
		if c.Files[path] == nil {
			fmt.Fprintf(&in, "D \"%s\"\n", quote.Replace(path))
		}
	}
	for _, path := range paths {
		if data := c.Files[path]; data != nil {
			fmt.Fprintf(&in, "M %s inline \"%s\"\n", files[path].mode, quote.Replace(path))
			fmt.Fprintf(&in, "data %d\n%s\n", len(data), data)
		}
	}
	in.WriteString("get-mark :1\ndone\n")
	ref := filepath.Join(r.git, filepath.FromSlash(importRef))
	err = os.Remove(ref + ".lock") // a dead process's
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	// --done refuses a stream that was cut short, and --force replaces a ref that a dead process left.
	id, err = r.run(context.Background(), nil, strings.NewReader(in.String()),
		"fast-import", "--quiet", "--force", "--done", "--date-format=raw")
	if err != nil {
		reports, _ := filepath.Glob(filepath.Join(r.git, "fast_import_crash_*"))
		for _, report := range reports {
			err = errors.Join(err, os.Remove(report))
		}
		return "", err
	}
	return strings.TrimSpace(id), os.Remove(ref)
}

func identity(p Person) string { return fmt.Sprintf("%s <%s>", clean(p.Name), clean(p.Email)) }

// clean keeps a name from breaking the form of a commit.
func clean(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == '<' || r == '>' || r == 0x7f {
			return -1
		}
		return r
	}, s))
	return cmp.Or(s, "unknown")
}

// updateIndex enters the files, leaving every other entry as it is: what a user has staged stays
// staged. The entries have no times and sizes: git then compares the files' contents once, when it
// is asked. The lock is held: git works on a copy.
func (r *Repo) updateIndex(given map[string][]byte, files map[string]entry) error {
	path := filepath.Join(r.git, "index")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read git index: %w", err)
	}
	name := tempPrefix + rand.Text()
	temp := filepath.Join(r.git, name)
	if data != nil {
		if err := os.WriteFile(temp, data, durable.FileMode); err != nil {
			return fmt.Errorf("write git index: %w", err)
		}
	}
	defer os.Remove(temp)
	var in strings.Builder
	for p := range given {
		e := files[p] // of a removed file zero: git removes an entry of mode 0
		fmt.Fprintf(&in, "%s %s\t%s\x00", cmp.Or(e.mode, "0"), cmp.Or(e.id, noID), p)
	}
	env := []string{"GIT_INDEX_FILE=.git/" + name}
	_, err = r.run(context.Background(), env, strings.NewReader(in.String()), "update-index", "-z", "--index-info")
	if err != nil {
		return err
	}
	if data, err = os.ReadFile(temp); err == nil {
		err = r.replace("index", data)
	}
	if err != nil {
		return fmt.Errorf("write git index: %w", err)
	}
	return nil
}

// lock takes git's lock of the index. A lock that a process of this program left is taken over:
// the caller is its only writing process, so that one is dead.
func (r *Repo) lock() (release func(), err error) {
	ours, theirs := filepath.Join(r.git, lockName), filepath.Join(r.git, "index.lock")
	// Writing keeps the inode of a lock that a dead process left, by which its second link, index.lock, is recognised.
	if err := os.WriteFile(ours, nil, durable.FileMode); err != nil {
		return nil, fmt.Errorf("lock %s: %w", r.git, err)
	}
	tick := time.NewTicker(lockTick)
	defer tick.Stop()
	for end := time.Now().Add(lockWait); ; <-tick.C {
		err := os.Link(ours, theirs)
		a, _ := os.Lstat(ours)
		b, _ := os.Lstat(theirs)
		if err == nil || os.SameFile(a, b) {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("lock %s: %w", r.git, err)
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%w: a git process holds %s; wait for it, or remove that file if none is running",
				ErrBusy, theirs)
		}
	}
	release = func() {
		// What stays behind after a failure is taken over by the next lock. git's name goes first: alone, it would
		// pass for a lock that git holds.
		_ = os.Remove(theirs)
		_ = os.Remove(ours)
	}
	if err := durable.RemoveTemp(r.git, tempPrefix); err != nil {
		release()
		return nil, fmt.Errorf("sweep %s: %w", r.git, err)
	}
	return release, nil
}

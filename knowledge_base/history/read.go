package history

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Whoami returns the user at this machine as git would name them for a
// repository in dir: by its settings, else by the user's own, else by the
// login name.
func Whoami(dir string) Person {
	var p Person
	r := &Repo{dir: dir, name: ".git"}
	out, _ := r.run(context.Background(), nil, nil, "config", "--null", "--get-regexp", `^user\.(name|email)$`)
	for setting := range strings.SplitSeq(out, "\x00") { // the nearest comes last
		if name, value, _ := strings.Cut(setting, "\n"); name == "user.name" {
			p.Name = value
		} else if name == "user.email" {
			p.Email = value
		}
	}
	login := "person"
	if u, err := user.Current(); err == nil {
		login = cmp.Or(u.Username, login)
		p.Name = cmp.Or(p.Name, u.Name)
	}
	return Person{cmp.Or(p.Name, login), cmp.Or(p.Email, login+"@localhost")}
}

type entry struct{ mode, id string }

// list returns the entries of a commit by path; none for "".
func (r *Repo) list(commit string) (map[string]entry, error) {
	if commit == "" {
		return nil, nil
	}
	if commit == r.listedAt {
		return r.listed, nil
	}
	out, err := r.run(context.Background(), nil, nil, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return nil, err
	}
	listed := make(map[string]entry)
	for line := range strings.SplitSeq(out, "\x00") {
		head, path, _ := strings.Cut(line, "\t")
		if f := strings.Fields(head); len(f) == 3 {
			listed[path] = entry{mode: f[0], id: f[2]}
		}
	}
	r.listed, r.listedAt = listed, commit
	return listed, nil
}

// Names returns the names at the top of the current commit's tree.
func (r *Repo) Names() ([]string, error) {
	out, err := r.run(context.Background(), nil, nil, "ls-tree", "-z", "--name-only", "--full-tree", "HEAD")
	return strings.FieldsFunc(out, func(c rune) bool { return c == 0 }), err
}

// Uncommitted returns the files that differ from the current commit, by path,
// with their bytes; nil bytes for one that is gone, other than by a user's
// sparse checkout. files are the paths to be
// looked at that are there; tracked says which paths of the commit belong to
// the caller, so that their absence counts. Files that are not regular, or
// longer than most, are left out.
func (r *Repo) Uncommitted(files []string, tracked func(path string) bool, most int64) (map[string][]byte, error) {
	_, at, err := r.head()
	if err != nil {
		return nil, err
	}
	listed, err := r.list(at)
	if err != nil {
		return nil, err
	}
	changed := make(map[string][]byte)
	for _, path := range files {
		full := filepath.Join(r.dir, filepath.FromSlash(path))
		info, err := os.Lstat(full)
		if err != nil || !info.Mode().IsRegular() || info.Size() > most {
			continue
		}
		data, err := os.ReadFile(full)
		if errors.Is(err, fs.ErrNotExist) { // removed since Lstat
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for changes in %s: %w", r.dir, err)
		}
		if blobID(data) != listed[path].id {
			changed[path] = data // not nil, which means that the file is gone
		}
	}
	gone := false
	for path := range listed {
		_, err := os.Lstat(filepath.Join(r.dir, filepath.FromSlash(path)))
		if tracked(path) && errors.Is(err, fs.ErrNotExist) {
			changed[path], gone = nil, true
		}
	}
	if !gone { // the index is read only where a file is missing
		return changed, nil
	}
	index, err := r.indexed()
	for path, sparse := range index {
		if sparse && changed[path] == nil {
			delete(changed, path)
		}
	}
	return changed, err
}

// indexed returns the paths in git's index, and whether a sparse checkout leaves them out of the folder.
func (r *Repo) indexed() (map[string]bool, error) {
	out, err := r.run(context.Background(), nil, nil, "ls-files", "-t", "-z")
	paths := make(map[string]bool)
	for line := range strings.SplitSeq(out, "\x00") {
		if tag, path, ok := strings.Cut(line, " "); ok {
			paths[path] = tag == "S"
		}
	}
	return paths, err
}

// Tracked returns the paths of the files in git's index that are in the folder.
func (r *Repo) Tracked() ([]string, error) {
	index, err := r.indexed()
	var out []string
	for path, sparse := range index {
		if !sparse {
			out = append(out, path)
		}
	}
	return out, err
}

// Differing returns those of the files, by path, that are not in the current commit with these
// bytes; none before the first commit.
func (r *Repo) Differing(files map[string][]byte) (map[string][]byte, error) {
	_, at, err := r.head()
	if err != nil || at == "" {
		return nil, err
	}
	listed, err := r.list(at)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte)
	for path, data := range files {
		if blobID(data) != listed[path].id {
			out[path] = data
		}
	}
	return out, nil
}

const maxRevisions = 10_000

// Revision is one commit in which a file changed.
type Revision struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Author  Person    `json:"author"`
	Message string    `json:"message"` // its first line
	Path    string    `json:"path"`
	Gone    bool      `json:"gone,omitempty"` // the file was removed
	Diff    string    `json:"diff"`           // unified
}

// Log returns the commits in which a file changed that pathspec names, newest first, at most
// 10,000. A merge counts only where its file is none of its parents'.
func (r *Repo) Log(ctx context.Context, pathspec string) ([]Revision, error) {
	_, at, err := r.head()
	if err != nil || at == "" {
		return nil, err
	}
	mark := rand.Text() // no commit and no file holds it
	out, err := r.run(ctx, nil, nil, "log", "--full-history", "--cc", "--no-renames", "--no-color", "--no-ext-diff",
		"--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", "--max-count="+strconv.Itoa(maxRevisions),
		"--format="+strings.Join([]string{"", "%H", "%at", "%an", "%ae", "%s", ""}, mark), at, "--", pathspec)
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", r.dir, err)
	}
	const fields = 6
	var revs []Revision
	for f := strings.Split(out, mark)[1:]; len(f) >= fields; f = f[fields:] {
		seconds, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", r.dir, err)
		}
		for diff := range strings.SplitSeq("\n"+f[5], "\ndiff --") {
			head, _, _ := strings.Cut(diff, "\n@@")
			kind, path, ok := strings.Cut(strings.SplitN(head, "\n", 2)[0], " ")
			if !ok {
				continue
			}
			// A path may itself hold " b/". As renames are not followed, both halves name the same path.
			if kind == "git" { // "a/path b/path"
				path = path[len(path)/2+len(" b/"):]
			}
			revs = append(revs, Revision{
				ID: f[0], At: time.Unix(seconds, 0).UTC(), Author: Person{f[2], f[3]},
				Message: f[4], Path: path, Gone: strings.Contains(head, "\ndeleted file "),
				Diff: "diff --" + strings.TrimSuffix(diff, "\n") + "\n",
			})
		}
	}
	return revs, nil
}

// Messages is the path under which [Repo.Texts] passes commit messages.
const Messages = "(commit messages)"

// Texts passes each version of each file up to [MaxBlobBytes] that the branches and tags reach,
// once, and each commit message. A version with several paths is passed with one of them.
func (r *Repo) Texts(ctx context.Context, visit func(path string, data []byte)) error {
	// A version that is absent is not searched: earlier versions of this program left long ones at the remote.
	list, err := r.run(ctx, nil, nil, "rev-list", "--objects", "--all", "--missing=allow-any",
		fmt.Sprintf("--filter=blob:limit=%d", MaxBlobBytes+1))
	if err != nil {
		return err
	}
	return r.objects(ctx, list, func(kind, path string, data []byte) {
		switch kind {
		case "blob":
			visit(path, data)
		case "commit", "tag":
			_, message, _ := bytes.Cut(data, []byte("\n\n"))
			visit(Messages, message)
		}
	})
}

// objects passes the objects that a list names, one a line, each with its type and with the rest of its
// line. Those that are not there are left out.
func (r *Repo) objects(ctx context.Context, list string, visit func(kind, rest string, data []byte)) error {
	cmd, err := r.command(ctx, nil, "cat-file", "--batch=%(objecttype) %(objectsize) %(rest)")
	if err != nil {
		return err
	}
	problem := capped{most: 64 << 10}
	cmd.Stdin, cmd.Stderr = strings.NewReader(list), &problem
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	out := bufio.NewReader(pipe)
	for err == nil {
		var line string
		if line, err = out.ReadString('\n'); err != nil {
			break
		}
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		number, rest, _ := strings.Cut(rest, " ")
		size, missing := strconv.Atoi(number)
		// The line of an object that the repository lacks has no size.
		if missing != nil {
			continue
		}
		data := make([]byte, size)
		if _, err = io.ReadFull(out, data); err == nil {
			_, err = out.Discard(1)
			visit(kind, rest, data)
		}
	}
	if ended := cmd.Wait(); ended != nil {
		return failure("cat-file", cmp.Or(ctx.Err(), ended), problem.String())
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("git cat-file: %w", err)
}

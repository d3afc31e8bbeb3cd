package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"

	"anamnesis/opstream/durable"
)

// Bounds of what a remote may send.
const (
	// MaxBlobBytes is the longest file that is taken in; of a longer one the name
	// stays in the tree, and nothing else arrives.
	MaxBlobBytes = 1 << 20
	// maxReceivedBytes bounds the pack of one fetch, maxGitMemoryBytes the memory
	// of each git process.
	maxReceivedBytes  = 1 << 30
	maxGitMemoryBytes = 2 << 30
	// maxObjects and maxKeptBytes bound what a fetch may bring in; maxTreeBytes is
	// the longest tree, commit or tag.
	maxObjects   = 1 << 20
	maxKeptBytes = 512 << 20
	maxTreeBytes = 16 << 20
	// maxGitOutput is how much is read of what git prints.
	maxGitOutput = 128 << 20
)

// ErrTooMuch is returned for a remote that sends more than is taken in.
var ErrTooMuch = errors.New("the remote sends too much")

const quarantinePrefix = "anamnesis-fetch-"

// quarantine is a bare repository beside ours: git runs there, with a
// configuration of our own and none of the folder's, and reads our objects. What
// it receives is looked at before it is taken over, and dropped with it.
type quarantine struct {
	r   *Repo
	dir string
}

// quarantine makes one for a remote, a name or an address.
func (r *Repo) quarantine(remote string) (*quarantine, error) {
	dead, err := filepath.Glob(filepath.Join(r.git, quarantinePrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, d := range dead {
		if err := os.RemoveAll(d); err != nil {
			return nil, err
		}
	}
	address, err := r.address(remote)
	if err != nil {
		return nil, err
	}
	_, head, err := r.head()
	if err != nil {
		return nil, err
	}
	objects, err := filepath.Abs(filepath.Join(r.git, "objects"))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(r.git, quarantinePrefix+"*")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	files := map[string]string{
		"HEAD":                    "ref: refs/heads/in\n",
		"config":                  "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[remote \"in\"]\n\turl = " + quoted(address) + "\n\tpromisor = true\n",
		"objects/info/alternates": objects + "\n",
		"objects/pack/.keep":      "",
		"refs/tags/.keep":         "",
	}
	if !head.IsZero() {
		files["refs/heads/have"] = head.String() + "\n"
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err = os.MkdirAll(filepath.Dir(path), durable.DirMode); err == nil && filepath.Base(path) != ".keep" {
			err = os.WriteFile(path, []byte(text), durable.FileMode)
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	return &quarantine{r, dir}, nil
}

func (q *quarantine) drop() { _ = os.RemoveAll(q.dir) } // the next one drops what stays

// address returns a remote's address: of a name that of the folder's configuration,
// and nothing else of that.
func (r *Repo) address(remote string) (string, error) {
	f, err := os.Open(filepath.Join(r.git, "config"))
	if err == nil {
		defer f.Close()
		var c *config.Config
		if c, err = config.ReadConfig(f); err == nil && c.Remotes[remote] != nil && len(c.Remotes[remote].URLs) > 0 {
			remote = c.Remotes[remote].URLs[0]
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the configuration of %s: %w", r.git, err)
	}
	if strings.ContainsAny(remote, "\n\r\x00") || remote == "" {
		return "", fmt.Errorf("%q is no address of a remote", remote)
	}
	return remote, nil
}

// quoted writes a value of git's configuration.
func quoted(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }

// settings are those every git process is run with: it runs no hook and no
// program of the folder, and its memory is bounded.
func settings() []string {
	var out []string
	for _, s := range []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.alternateRefsCommand=true", "protocol.ext.allow=never", "protocol.fd.allow=never",
		"gc.auto=0", "maintenance.auto=false", "submodule.recurse=false", "fetch.recurseSubmodules=false", "fetch.writeCommitGraph=false",
		"transfer.unpackLimit=1", "core.bigFileThreshold=1m", "core.packedGitLimit=256m", "core.packedGitWindowSize=32m",
		"core.deltaBaseCacheLimit=32m", "pack.threads=1", "pack.windowMemory=32m", "pack.deltaCacheSize=32m",
	} {
		out = append(out, "-c", s)
	}
	return out
}

// run runs git in the quarantine; relative addresses are seen from the folder.
func (q *quarantine) run(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], ErrNoGit)
	}
	// The limits hold for what git starts, too. Not every system has the first.
	limits := fmt.Sprintf(`ulimit -v %d 2>/dev/null; ulimit -f %d; exec "$0" "$@"`, maxGitMemoryBytes>>10, maxReceivedBytes>>9)
	cmd := exec.CommandContext(ctx, "sh", slices.Concat([]string{"-c", limits, path, "--git-dir=" + q.dir}, settings(), args)...)
	cmd.Dir = q.r.dir
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_TEMPLATE_DIR":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	out, problem := capped{most: maxGitOutput}, capped{most: 64 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &problem
	if err := cmd.Run(); err != nil {
		text := strings.Join(strings.Fields(problem.String()), " ")
		if strings.Contains(text, "died of signal") || strings.Contains(text, "out of memory") || strings.Contains(text, "File too large") || strings.Contains(text, "SIGXFSZ") {
			err = fmt.Errorf("%w: at most %d MiB are received, with %d MiB of memory: %w", ErrTooMuch, maxReceivedBytes>>20, maxGitMemoryBytes>>20, err)
		}
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, text)
	}
	if out.cut {
		return "", fmt.Errorf("git %s: %w: it prints more than %d bytes", args[0], ErrTooMuch, maxGitOutput)
	}
	return out.String(), nil
}

// capped keeps the first bytes of what is written.
type capped struct {
	bytes.Buffer
	most int
	cut  bool
}

func (c *capped) Write(p []byte) (int, error) {
	keep := min(len(p), c.most-c.Len())
	c.Buffer.Write(p[:keep])
	c.cut = c.cut || keep < len(p)
	return len(p), nil
}

// fetch receives a branch and takes over what is not too long of it.
func (q *quarantine) fetch(ctx context.Context, branch string) error {
	const in = "refs/heads/in"
	_, err := q.run(ctx, nil, "fetch", "--quiet", "--no-tags", fmt.Sprintf("--filter=blob:limit=%d", MaxBlobBytes+1), "in", "+"+branch+":"+in)
	if err != nil {
		return err
	}
	if err := q.refuseReplaced(ctx, in); err != nil {
		return err
	}
	packs, err := filepath.Glob(filepath.Join(q.dir, "objects", "pack", "*.pack"))
	if err != nil || len(packs) == 0 {
		return err
	}
	var keep strings.Builder
	left, kept := false, total{}
	for _, p := range packs {
		idx, err := os.Open(strings.TrimSuffix(p, ".pack") + ".idx")
		if err != nil {
			return err
		}
		names, err := q.run(ctx, idx, "show-index")
		if err = errors.Join(err, idx.Close()); err != nil {
			return err
		}
		var ids strings.Builder
		for line := range strings.Lines(names) {
			if f := strings.Fields(line); len(f) > 1 {
				ids.WriteString(f[1] + "\n")
			}
		}
		// Sizes come from the headers, those of deltas from theirs: nothing is unpacked.
		sizes, err := q.run(ctx, strings.NewReader(ids.String()), "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
		if err != nil {
			return err
		}
		if err := kept.add(sizes, &keep, &left); err != nil {
			return err
		}
	}
	return q.takeOver(ctx, packs, keep.String(), left)
}

// refuseReplaced refuses a history with a commit that a rewrite replaced here.
func (q *quarantine) refuseReplaced(ctx context.Context, in string) error {
	replaced, err := q.r.readReplaced()
	if err != nil || len(replaced) == 0 {
		return err
	}
	args := []string{"rev-list", in}
	if _, err := os.Lstat(filepath.Join(q.dir, "refs", "heads", "have")); err == nil {
		args = append(args, "--not", "refs/heads/have")
	}
	ids, err := q.run(ctx, nil, args...)
	if err != nil {
		return err
	}
	for id := range strings.Lines(ids) {
		if id = strings.TrimSpace(id); replaced[id] {
			return fmt.Errorf("%w: commit %s", ErrReplaced, id)
		}
	}
	return nil
}

// total counts what is taken in.
type total struct{ objects, bytes int }

// add reads the lines "id type size" and adds the ids to be kept.
func (t *total) add(sizes string, keep *strings.Builder, left *bool) error {
	for line := range strings.Lines(sizes) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return fmt.Errorf("git cat-file: %q is no object", strings.TrimSpace(line))
		}
		size, err := strconv.Atoi(f[2])
		if err != nil {
			return fmt.Errorf("git cat-file: %w", err)
		}
		if f[1] == "blob" && size > MaxBlobBytes {
			*left = true
			continue
		}
		t.objects, t.bytes = t.objects+1, t.bytes+size
		if size > maxTreeBytes || t.objects > maxObjects || t.bytes > maxKeptBytes {
			return fmt.Errorf("%w: at most %d objects of together %d MiB are taken in, and no list of files above %d MiB", ErrTooMuch, maxObjects, maxKeptBytes>>20, maxTreeBytes>>20)
		}
		keep.WriteString(f[0] + "\n")
	}
	return nil
}

// takeOver moves the packs to ours, or, where something is left out, a new pack of
// the rest. It is no promisor's: git gc would drop from ours what a remote that is
// asked for the rest has. The index comes last: without it git sees no pack.
func (q *quarantine) takeOver(ctx context.Context, packs []string, keep string, left bool) error {
	to := filepath.Join(q.r.git, "objects", "pack")
	if err := os.MkdirAll(to, durable.DirMode); err != nil {
		return err
	}
	if left {
		own := filepath.Join(q.dir, "kept")
		name, err := q.run(ctx, strings.NewReader(keep), "pack-objects", "--quiet", own)
		if err != nil {
			return err
		}
		packs = []string{own + "-" + strings.TrimSpace(name) + ".pack"}
	}
	for _, p := range packs {
		base := strings.TrimSuffix(p, ".pack")
		_, hash, _ := strings.Cut(filepath.Base(base), "-")
		target := filepath.Join(to, "pack-"+hash)
		for _, ext := range []string{".pack", ".rev", ".idx"} {
			if err := os.Rename(base+ext, target+ext); err != nil && !(ext == ".rev" && errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
	}
	return durable.Sync(to)
}

// isLeftOut reports whether a blob is too long to be read, or was left out.
func (r *Repo) isLeftOut(h plumbing.Hash) (bool, error) {
	n, err := r.st.EncodedObjectSize(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read object %s of %s: %w", h, r.git, err)
	}
	return n > MaxBlobBytes, nil
}

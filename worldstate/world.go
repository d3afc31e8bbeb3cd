package worldstate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/history"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
)

// The types that every operation uses.
type (
	// ID names a snapshot: its commit's hash, 40 lower-case hex digits.
	ID = gitfmt.ID
	// Skip is a Path, and the Reason why its content is not stored or not changed.
	Skip = gitfmt.Skip
	// Progress is that of a scan: Files and Bytes seen so far, Known files of the scan before (of the
	// first one, of the user's git index), and Done, which is reported once.
	Progress = scan.Progress
)

// Options configure a World. The zero value, or nil, means the defaults.
type Options struct {
	// Task is the namespace of the refs this World writes: refs/anamnesis/<Task>/….
	// Default "cli".
	Task string
	// Home is refused as a world, as "/" is. Default: the user's home directory.
	Home string
	// Hook is called with the step's name before and after every durable step of a save or
	// restore. It is called under the store's lock and must not use the World. Tests on every
	// system kill the process in it, or change the directory: ptrace exists for that on Linux
	// only, and its system calls do not tell the step.
	Hook func(point string)
	// SizeLimitBytes caps the size of the store's packs on disk; beyond it Save returns a
	// *LimitError. 0: no cap.
	SizeLimitBytes int64
	// FileLimitBytes is the largest size of a file in a snapshot, its holes included. A larger
	// one is left out and listed, which makes the snapshot incomplete; no restore writes or
	// removes it. 0: DefaultFileLimitBytes; negative: no limit.
	FileLimitBytes int64
	// Secrets are patterns of file names, as of path.Match. A file of up to MaxSecretBytes with
	// such a name that git ignores, in a directory that it does not, is in snapshots all the
	// same, so that a restore brings it back; Patch and Content do not show it.
	// nil: DefaultSecrets.
	Secrets []string
	// Exclude lists absolute paths that are never part of the world, such as the program's own
	// state if it is inside. The store is always excluded.
	Exclude []string
	// Moved are the absolute paths at which the directory was before. Snapshots taken there are its
	// own, and a restore interrupted there is recovered here.
	Moved []string
	// Progress is called with the progress of a scan at every file, from several goroutines,
	// one at a time. It must return quickly.
	Progress func(Progress)
	// AllTasks makes Log list the snapshots of every task in the store, their steps
	// named TASK@STEP.
	AllTasks bool
	// StoreOnly: the directory is not read and need not exist, and no store is created: without
	// one, Open returns ErrCorrupt. Only operations that read snapshots may be called.
	StoreOnly bool
	// LockWait is how long to wait for another process. Default DefaultLockWait.
	LockWait time.Duration
	// Now is the clock of snapshots. Default time.Now.
	Now func() time.Time
}

const defaultTask = "cli"

// MaxSecretBytes is the largest size of a file that Options.Secrets adds to snapshots.
const MaxSecretBytes = scan.MaxSecretBytes

// DefaultSecrets returns the default of Options.Secrets: environments, local settings and
// small databases.
func DefaultSecrets() []string {
	return strings.Fields(`.env* *.env .envrc *.local *.local.* local_settings.py secrets.* credentials.*
		*.sqlite *.sqlite3 *.db`)
}

// DefaultFileLimitBytes is the default of Options.FileLimitBytes: a GiB takes some seconds to
// read at each change.
const DefaultFileLimitBytes = 1 << 30

// A World is one directory tree and the store of its snapshots. Its methods are safe for
// concurrent use and run one after another. The store's lock excludes other processes during
// writes.
type World struct {
	dir, store string
	key        string   // identifies this directory in the store
	moved      []string // the keys it had before, the latest first
	opts       Options
	objects    *objects.Store
	track      *scan.Tracker
	refs       *refs.Store
	packs      objects.Pool
	journal    restore.File

	mu         sync.Mutex
	lock       *fsys.Lock
	cleared    bool                          // leftovers of killed processes were removed
	listings   map[gitfmt.Hash]*tree.Listing // by tree, those of late
	policies   map[gitfmt.Hash]*tree.Policy  // by snapshot; a plan would read every directory
	ignoredWas map[string]bool               // the ignored paths at the last save
	saved      *gitfmt.Commit                // of the last save
	held       *fsys.Root                    // the directory, open so that no other one gets its inode; nil at first
	unsettled  error                         // why the last restore is not known to be durable
}

// Open opens the store for the world at dir and makes the bare repository on
// first use. It does not look at the tree and recovers nothing: see Recover.
// "/", the home directory, a store around its own world, and a store
// directory that holds other things return ErrRefused; a dir that is not there
// ErrNoDirectory.
func Open(dir, store string, o *Options) (*World, error) {
	w := &World{}
	if o != nil {
		w.opts = *o
	}
	if err := w.defaults(); err != nil {
		return nil, fmt.Errorf("open world: %w", err)
	}
	err := w.setDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open world %s: %w", dir, err)
	}
	if w.store, err = filepath.Abs(store); err != nil {
		return nil, fmt.Errorf("open world: %w", err)
	}
	if err := refs.CheckDir(w.store); err != nil {
		return nil, err
	}
	if there, err := fsys.Exists(filepath.Join(w.store, "HEAD")); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	} else if !there && w.opts.StoreOnly {
		return nil, fmt.Errorf("open store %s: %w: there is none", w.store, gitfmt.ErrCorrupt)
	}
	if err := os.MkdirAll(filepath.Join(w.store, fsys.StateDir), 0o700); err != nil {
		return nil, fmt.Errorf("create store: %w", err)
	}
	if w.store, err = filepath.EvalSymlinks(w.store); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if rel, err := filepath.Rel(w.store, w.dir); err == nil && filepath.IsLocal(rel) {
		return nil, fmt.Errorf("open world %s: %w: it lies inside its own store %s", w.dir, ErrRefused, w.store)
	}
	excluded := map[string]bool{}
	w.addExcluded(excluded, w.store)
	for _, path := range w.opts.Exclude {
		w.addExcluded(excluded, path)
		if real, err := filepath.EvalSymlinks(path); err == nil {
			w.addExcluded(excluded, real)
		}
	}
	w.key = keyOf(w.dir)
	for _, dir := range slices.Backward(w.opts.Moved) {
		w.moved = append(w.moved, keyOf(dir))
	}
	w.objects, w.refs, w.journal = objects.New(w.store), &refs.Store{Dir: w.store}, restore.JournalOf(w.store, w.key)
	// A restore that was cut short before the directory moved is finished under the name it began with.
	for _, key := range append([]string{w.key}, w.moved...) {
		f := restore.JournalOf(w.store, key)
		if there, err := f.Exists(); there || err != nil {
			w.journal = f
			break
		}
	}
	w.lock = fsys.NewLock(w.store, fsys.WriterLock)
	cache := filepath.Join(w.store, fsys.StateDir, "statcache-"+w.key)
	w.track = scan.New(w.dir, cache, w.objects, excluded, scan.Options{
		Secrets: w.opts.Secrets, FileLimitBytes: w.opts.FileLimitBytes, Progress: w.opts.Progress,
	})
	return w, w.create()
}

// keyOf returns the key of a directory in a store.
func keyOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:8])
}

// isOwn reports whether a snapshot was taken of this directory.
func (w *World) isOwn(c *gitfmt.Commit) bool {
	return c.World == w.key || slices.Contains(w.moved, c.World)
}

func (w *World) defaults() error {
	w.opts.Task = cmp.Or(w.opts.Task, defaultTask)
	if err := checkName("task", w.opts.Task); err != nil {
		return err
	}
	if w.opts.LockWait <= 0 {
		w.opts.LockWait = DefaultLockWait
	}
	if w.opts.Secrets == nil {
		w.opts.Secrets = DefaultSecrets()
	}
	w.opts.FileLimitBytes = cmp.Or(w.opts.FileLimitBytes, DefaultFileLimitBytes)
	if w.opts.Now == nil {
		w.opts.Now = time.Now
	}
	if w.opts.Hook == nil {
		w.opts.Hook = func(string) {}
	}
	if w.opts.Home == "" {
		w.opts.Home, _ = os.UserHomeDir() // none is fine
	}
	return nil
}

// checkName refuses a name of a task or a step that is not valid in a ref.
func checkName(what, name string) error {
	if refs.ValidPart(name) {
		return nil
	}
	return fmt.Errorf("%s %q: %w: letters, digits, dot, dash and underscore only", what, name, ErrBadName)
}

// Accept makes the directory that is at the world's path now the world's, after ErrReplaced.
func (w *World) Accept() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release()
}

// release closes the held directory, if there is one.
func (w *World) release() {
	if w.held != nil {
		w.held.Close()
		w.held = nil
	}
}

// Missing reports whether there is no directory at the world's path, or a link.
func (w *World) Missing() bool {
	info, err := os.Lstat(w.dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir()
}

// openRoot opens the directory for one operation. The error is ErrReplaced if it is not the one
// that the first operation opened. An empty one, in which nothing can be lost, takes its place.
func (w *World) openRoot() (*fsys.Root, error) {
	root, err := fsys.OpenRoot(w.dir)
	if err != nil {
		return nil, err
	}
	if w.held != nil && !w.held.SameDirectory(root) {
		if !root.Empty() {
			root.Close()
			return nil, fmt.Errorf("%s: %w", w.dir, ErrReplaced)
		}
		w.release()
	}
	if w.held == nil {
		if w.held, err = root.Dup(); err != nil {
			root.Close()
			return nil, err
		}
	}
	return root, nil
}

// create creates the repository under the store's lock. An existing one is not written, so that
// reading needs no write permission.
func (w *World) create() error {
	if there, err := fsys.Exists(filepath.Join(w.store, "HEAD")); there || err != nil {
		return err
	}
	if err := w.lockStore(context.Background(), w.opts.LockWait); err != nil {
		return err
	}
	defer w.lock.Release()
	return refs.Create(w.store)
}

// lockStore takes the store's lock. The first time, it removes leftovers of killed processes.
func (w *World) lockStore(ctx context.Context, wait time.Duration) error {
	err := w.lock.Acquire(ctx, wait)
	if err == nil && !w.cleared {
		w.objects.Sweep()
		w.refs.Sweep()
		w.cleared = true
	}
	return err
}

func (w *World) setDir(dir string) (err error) {
	if w.opts.StoreOnly {
		w.dir, err = fsys.RealPath(dir)
		return err
	}
	if w.dir, err = fsys.RealDir(dir); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: %s", ErrNoDirectory, dir)
		} else if fsys.IsErrno(err, unix.ENOTDIR) {
			err = fmt.Errorf("%w: %w", ErrNoDirectory, err)
		}
		return err
	}
	return w.checkDir()
}

// checkDir refuses directories that must never be restored.
func (w *World) checkDir() error {
	here, err := os.Stat(w.dir)
	if err != nil {
		return err
	}
	for _, refused := range [][2]string{{"/", "the root directory"}, {w.opts.Home, "the home directory"}} {
		if refused[0] == "" {
			continue
		}
		if info, err := os.Stat(refused[0]); err == nil && os.SameFile(here, info) {
			return fmt.Errorf("%w: %s is never a world; name a project's directory", ErrRefused, refused[1])
		}
	}
	return nil
}

func (w *World) addExcluded(excluded map[string]bool, abs string) {
	if rel, err := filepath.Rel(w.dir, abs); err == nil && filepath.IsLocal(rel) && rel != "." {
		excluded[filepath.ToSlash(rel)] = true
	}
}

// Close waits until the last restore is durable, closes the store's files and writes the stat
// cache; its error is about these alone. The World must not be used afterwards.
func (w *World) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := errors.Join(w.unsettled, w.closeCache())
	w.track.Close()
	w.release()
	w.objects.Close()
	w.lock.Close()
	w.listings = nil
	return err
}

func (w *World) closeCache() error {
	if !w.track.Behind() {
		return nil
	}
	if err := w.lockStore(context.Background(), 0); err != nil {
		return nil // the process that holds the lock writes its own
	}
	defer w.lock.Release()
	return w.track.StoreCache()
}

// scanDir scans the directory. If a pack was removed since the last scan, it drops what memory says
// is stored.
func (w *World) scanDir(ctx context.Context, root *fsys.Root, pack *objects.Writer) (*scan.Scanned, error) {
	sc, err := w.track.Rescan(ctx, root, pack)
	if w.track.PackLost {
		w.listings, w.saved, w.track.PackLost = nil, nil, false
	}
	return sc, err
}

// Repositories returns where the git repository around the world and those inside are, as the last
// Save found them: paths relative to the world, at most so many.
func (w *World) Repositories(most int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.track.Repositories(most)
}

// Dir returns the world's directory, absolute and without symbolic links.
func (w *World) Dir() string { return w.dir }

// Store returns the store's directory, absolute and without symbolic links.
func (w *World) Store() string { return w.store }

// access is whether an operation may change the store.
type access int

const (
	reading access = iota
	changing
)

// begin serialises the World's operations, takes the store's lock unless the operation only
// reads, and looks for new packs.
func (w *World) begin(ctx context.Context, as access) (end func(), err error) {
	w.mu.Lock()
	end = w.mu.Unlock
	if as != reading {
		if err := w.lockStore(ctx, w.opts.LockWait); err != nil {
			w.mu.Unlock()
			return nil, err
		}
		end = func() { w.lock.Release(); w.mu.Unlock() }
	}
	if err := w.objects.Refresh(); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// head returns the snapshot that this world was last known at: that of the last save, or the last
// restore's target. It is zero if there is none.
func (w *World) head() (gitfmt.Hash, error) {
	byName, err := w.refs.All()
	return w.headOf(byName), err
}

// headOf is head in refs that were read.
func (w *World) headOf(byName map[string]gitfmt.Hash) gitfmt.Hash {
	for _, key := range append([]string{w.key}, w.moved...) {
		if h := byName[refs.WorldPrefix+key]; !h.IsZero() {
			return h
		}
	}
	return gitfmt.Hash{}
}

// readCommit reads the commit of an id. The error is ErrUnknown if the store has none, and
// ErrCorrupt if a ref or another snapshot names it and the store lacks it.
func (w *World) readCommit(h gitfmt.Hash) (*gitfmt.Commit, error) {
	c, err := w.objects.Commit(h)
	if !errors.Is(err, objects.ErrNoObject) {
		return c, err
	}
	byName, rerr := w.refs.All()
	if rerr != nil {
		return nil, rerr
	}
	named, herr := history.Log(context.Background(), w.objects, byName, refs.IsOurs)
	if herr != nil {
		return nil, herr
	}
	for _, c := range named {
		if c.Id == h {
			return nil, fmt.Errorf("%w %s; restore that snapshot from a backup of the store; "+
				"the world's log lists the others", err, w.store)
		}
	}
	return nil, fmt.Errorf("snapshot %s: %w: the store has no snapshot with this id", h, ErrUnknown)
}

func (w *World) byID(id ID) (*gitfmt.Commit, error) {
	h, ok := gitfmt.ParseHash(string(id))
	if !ok {
		return nil, fmt.Errorf("snapshot %q: %w: not a full id", id, ErrUnknown)
	}
	return w.readCommit(h)
}

// Has reports whether the store holds everything that the snapshot needs, by reading and
// hashing all of it. The error is a *MissingObjectError naming the first missing or damaged
// object, or ErrUnknown.
func (w *World) Has(ctx context.Context, id ID) error {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return err
	}
	defer end()
	c, err := w.byID(id)
	if err != nil {
		return err
	}
	w.listings = nil // a listing in memory proves nothing about the disk
	l, err := tree.Load(w.objects, c.Tree, nil)
	if err != nil {
		return err
	}
	for e := range l.All() {
		if e.Kind == tree.KindDir {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.objects.Check(e.Hash, gitfmt.BlobObject, e.Path); err != nil {
			return err
		}
	}
	return nil
}

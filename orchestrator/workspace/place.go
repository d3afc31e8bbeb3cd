package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/journal"
	"anamnesis/worldstate"
)

// Directory is a task's directory and the store of its snapshots, as long as a process holds
// them. Root may be called from any goroutine.
type Directory struct {
	Dir    string
	World  *worldstate.World
	rootMu sync.Mutex // guards root
	root   *os.Root   // of the directory; see Root
}

func OpenDirectory(dir, store string, o *worldstate.Options) (*Directory, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the world: %w", err)
	}
	world, err := worldstate.Open(dir, store, o)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Directory{Dir: dir, World: world, root: root}, nil
}

func (d *Directory) Close() error { return errors.Join(d.World.Close(), d.root.Close()) }

// Root returns the world's directory for the file tools. If a command replaced the directory,
// it is opened again. While there is none, the tools find nothing in the old one.
func (d *Directory) Root() (*os.Root, error) {
	d.rootMu.Lock()
	defer d.rootMu.Unlock()
	now, err := os.Stat(d.Dir)
	if err != nil || !now.IsDir() {
		return d.root, nil
	}
	if held, err := d.root.Stat("."); err == nil && os.SameFile(held, now) {
		return d.root, nil
	}
	root, err := os.OpenRoot(d.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the world: %w", err)
	}
	old := d.root
	d.root = root
	return root, old.Close()
}

// Options describe a place's task beside its record. The zero value is a place without commands,
// whose task no other task began.
type Options struct {
	// Abandon ends an interrupted jump or restore with the present files.
	Abandon bool
	// Changed passes a change on to the task that began this one in the same directory; nil if
	// there is none.
	Changed func(ctx context.Context, b *op.WorldChanged) error
	// Disturbed is called after the save that ends a step. by, if not empty, names another
	// program that may have changed files in this step; late reports that the step's own agent
	// did not wait for the save. nil: neither ever happens.
	Disturbed func() (by string, late bool)
	// Kept: a bucket keeps the task, so that commits of git are put beside its stream.
	Kept bool
	// Confine replaces how the task's commands are confined, in this process.
	Confine guard.Confinement
}

// Place is a task's directory and its recorded state. Except for Root, only the goroutine that
// runs the task uses it, or calls that run one after another.
type Place struct {
	*journal.Ledger // of the task
	*Directory
	Options
	Sandbox *Sandbox // of its commands

	// Autorun are the changed paths of steps that other programs run by themselves; the owner of
	// the place resets it.
	Autorun []string

	damaged string     // see Damaged
	here    SavedWorld // of the current step, once needed

	// Of the calls under way; see changed.go.
	seen          SavedWorld // the last snapshot
	dirty, looked bool       // a call that may write ran since; no call ran since it was taken

	// calls guards the fields above while calls of a reply run: several may ask the user at
	// the same time.
	calls   sync.Mutex
	partial []string // what the step under way had changed by then
	gone    []string // ignored paths that it had removed
	authors authors
	git     map[string]*worldstate.GitReader // by where their .git is
}

func NewPlace(d *Directory, l *journal.Ledger, o Options) *Place {
	box := &Sandbox{ledger: l, dir: d.Dir, override: o.Confine}
	return &Place{Ledger: l, Directory: d, Options: o, Sandbox: box, git: make(map[string]*worldstate.GitReader)}
}

// Fork copies the present world for a subagent.
func (p *Place) Fork(ctx context.Context, id string) (dir string, err error) {
	now, err := p.present()
	if err != nil {
		return "", err
	}
	parent, err := p.commitOf(now)
	if err != nil {
		return "", err
	}
	snap, err := p.World.Save(ctx, worldstate.SaveOptions{
		Message: "what " + id + " begins with", Parent: parent, Ref: "fork-" + id,
	})
	if err != nil {
		return "", err
	}
	target := filepath.Join(p.Dir+"-forks", id)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	f, err := p.World.Fork(ctx, snap.ID, target)
	return f.Dir, err
}

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
	"anamnesis/orchestrator/jobs"
	"anamnesis/orchestrator/journal"
	"anamnesis/worldstate"
)

// Place is a task's directory and its recorded state. Except for Root, only the goroutine that
// runs the task uses it, or calls that run one after another.
type Place struct {
	*journal.Ledger // of the task
	Dir             string
	World           *worldstate.World
	Jobs            *jobs.Jobs // background commands; nil until the task is open
	// Abandon ends an interrupted jump or restore with the present files.
	Abandon bool
	// Changed passes a change on to the task that began this one in the same directory; nil if
	// there is none.
	Changed func(ctx context.Context, b *op.WorldChanged) error

	// Disturbed is called after the save that ends a step. by, if not empty, names another
	// program that may have changed files in this step; late reports that the step's own agent
	// did not wait for the save. nil: neither ever happens.
	Disturbed func() (by string, late bool)

	// Examine runs move, which restores files, and quarantines what git would run by them; note
	// names that. nil: move is only run.
	Examine func(ctx context.Context, move func() error) (note string, err error)

	// Writes learns what the commands of the task's sandboxes change.
	Writes guard.Writes

	// Autorun are the changed paths of steps that other programs run by themselves; the owner of
	// the place resets it.
	Autorun []string

	staysOpen bool       // World stays open
	rootMu    sync.Mutex // guards root
	root      *os.Root   // of the directory; see Root
	damaged   string     // see Damaged
	here      SavedWorld // of the current step, once needed

	// Of the calls under way; see changed.go.
	seen          SavedWorld // the last snapshot
	dirty, looked bool       // a call that may write ran since; no call ran since it was taken

	// calls guards the fields above while calls of a reply run: several may ask the user at
	// the same time.
	calls   sync.Mutex
	partial []string // what the step under way had changed by then
	gone    []string // ignored paths that it had removed
	authors authors
}

// OpenPlace opens a directory and the store of its snapshots. kept is a World of the directory
// that stays open when the place is closed; if nil, the place opens its own.
func OpenPlace(dir, store string, o *worldstate.Options, kept *worldstate.World) (*Place, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the world: %w", err)
	}
	if kept != nil && !sameStore(store, kept) { // the task was moved
		kept = nil
	}
	p := &Place{Dir: dir, World: kept, staysOpen: kept != nil, root: root}
	if p.staysOpen {
		err = kept.SetTask(o.Task)
	} else {
		p.World, err = worldstate.Open(dir, store, o)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return p, nil
}

// Close closes the directory, and the store unless that stays open.
func (p *Place) Close() error {
	if p.staysOpen {
		return p.root.Close()
	}
	return errors.Join(p.World.Close(), p.root.Close())
}

// Root returns the world's directory for the file tools. If a command replaced the directory,
// it is opened again. While there is none, the tools find nothing in the old one.
func (p *Place) Root() (*os.Root, error) {
	p.rootMu.Lock()
	defer p.rootMu.Unlock()
	now, err := os.Stat(p.Dir)
	if err != nil {
		return p.root, nil
	}
	if held, err := p.root.Stat("."); err == nil && os.SameFile(held, now) {
		return p.root, nil
	}
	root, err := os.OpenRoot(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the world: %w", err)
	}
	old := p.root
	p.root = root
	return root, old.Close()
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

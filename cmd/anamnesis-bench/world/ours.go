//go:build unix

package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"anamnesis/worldstate"
)

// ours is package worldstate in process, its store open all the time, as in a running task.
type ours struct {
	who        info
	store, dir string
	w          *worldstate.World
	last       worldstate.Snapshot
}

func (o *ours) info() info { return o.who }

func (o *ours) open() error {
	if o.w != nil {
		return nil
	}
	var err error
	o.w, err = worldstate.Open(o.dir, o.store, nil)
	return err
}

func (o *ours) fresh(context.Context) error {
	o.close()
	if err := os.RemoveAll(o.store); err != nil {
		return err
	}
	return o.open()
}

func (o *ours) save(ctx context.Context) (string, error) {
	if err := o.open(); err != nil {
		return "", err
	}
	snap, err := o.w.Save(ctx, worldstate.SaveOptions{Message: "bench", Parent: o.last.ID})
	if err != nil {
		return "", err
	}
	o.last = snap
	return string(snap.ID), nil
}

func (o *ours) tree(context.Context, string) (string, error)       { return o.last.Tree, nil }
func (o *ours) point(_ context.Context, id string) (string, error) { return id, nil }

func (o *ours) restore(ctx context.Context, point string) error {
	res, err := o.w.RestoreTo(ctx, worldstate.ID(point), worldstate.RestoreOptions{PlanOptions: worldstate.PlanOptions{OverwriteEdits: true}})
	if err == nil && !res.Exact {
		err = fmt.Errorf("the restore was not exact: kept %v", res.Kept)
	}
	o.last.ID = worldstate.ID(point)
	return err
}

func (o *ours) sync() error { return o.w.Sync() }

func (o *ours) close() {
	if o.w != nil {
		o.w.Close()
	}
	o.w, o.last = nil, worldstate.Snapshot{}
}

// program is this program's binary, one process a command.
type program struct {
	binary, store, dir string
	peak               int64 // of memory, in bytes, of any process so far
}

func (p *program) info() info { return info{name: nameProgram} }
func (p *program) close()     {}

func (p *program) fresh(context.Context) error { return os.RemoveAll(p.store) }

func (p *program) run(ctx context.Context, out any, args ...string) error {
	cmd := exec.CommandContext(ctx, p.binary, append([]string{"world"}, append(args, "--dir", p.dir, "--store", p.store, "--json")...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	data, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		p.peak = max(p.peak, int64(u.Maxrss)*maxrssUnit())
	}
	return json.Unmarshal(data, out)
}

// maxrssUnit: kilobytes on most systems.
func maxrssUnit() int64 {
	if runtime.GOOS == "darwin" {
		return 1
	}
	return 1024
}

func (p *program) save(ctx context.Context) (string, error) {
	var snap worldstate.Snapshot
	err := p.run(ctx, &snap, "save")
	return string(snap.ID), err
}

func (p *program) tree(context.Context, string) (string, error)       { return "", nil }
func (p *program) point(_ context.Context, id string) (string, error) { return id, nil }

func (p *program) restore(ctx context.Context, point string) error {
	var res worldstate.Result
	return p.run(ctx, &res, "restore", point, "--overwrite")
}

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
	last       worldstate.ID // of the state that the directory was in last
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

func (o *ours) save(ctx context.Context) (id, tree string, err error) {
	if err := o.open(); err != nil {
		return "", "", err
	}
	snap, err := o.w.Save(ctx, worldstate.SaveOptions{Message: "bench", Parent: o.last})
	if err == nil {
		o.last = snap.ID
	}
	return string(snap.ID), snap.Tree, err
}

func (o *ours) restore(ctx context.Context, id string) error {
	res, err := o.w.RestoreTo(ctx, worldstate.ID(id),
		worldstate.RestoreOptions{PlanOptions: worldstate.PlanOptions{OverwriteEdits: true}})
	if err == nil && !res.Exact {
		err = fmt.Errorf("the restore was not exact: kept %v", res.Kept)
	}
	o.last = worldstate.ID(id)
	return err
}

func (o *ours) sync() error { return o.w.Sync() }

func (o *ours) close() {
	if o.w != nil {
		o.w.Close()
	}
	o.w, o.last = nil, ""
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
	cmd := exec.CommandContext(ctx, p.binary, append([]string{"world"},
		append(args, "--dir", p.dir, "--store", p.store, "--json")...)...)
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

func (p *program) save(ctx context.Context) (id, tree string, err error) {
	var snap worldstate.Snapshot
	err = p.run(ctx, &snap, "save")
	return string(snap.ID), "", err
}

func (p *program) restore(ctx context.Context, id string) error {
	var res worldstate.Result
	return p.run(ctx, &res, "restore", id, "--overwrite")
}

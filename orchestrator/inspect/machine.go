package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool/search"
)

// Machine is what this machine offers to confine commands, and whether Grep uses ripgrep.
type Machine struct {
	Sandbox   string   `json:"sandbox"`
	Missing   []string `json:"missing"`              // what it cannot confine, a sentence each
	Ripgrep   string   `json:"ripgrep,omitempty"`    // the rg program that Grep uses
	NoRipgrep string   `json:"no_ripgrep,omitempty"` // why it uses none
}

// ExamineMachine tries the sandbox and ripgrep.
func ExamineMachine(ctx context.Context) (Machine, error) {
	dir, err := os.MkdirTemp("", "anamnesis-doctor-")
	if err != nil {
		return Machine{}, fmt.Errorf("try the sandbox: %w", err)
	}
	defer os.RemoveAll(dir)
	box, err := guard.NewSandbox(ctx, guard.SandboxOptions{World: dir, Cache: filepath.Join(dir, "cache"), Temp: filepath.Join(dir, "tmp")})
	if err != nil {
		return Machine{}, err
	}
	d := Machine{Sandbox: box.String(), Missing: append([]string{}, box.Missing()...)}
	if d.Ripgrep, err = search.CheckRipgrep(ctx, box, dir); err != nil {
		d.NoRipgrep = err.Error()
	}
	return d, nil
}

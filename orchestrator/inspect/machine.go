package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"anamnesis/orchestrator/guard"
)

// Machine is what this machine offers to confine commands.
type Machine struct {
	Sandbox string   `json:"sandbox"`
	Missing []string `json:"missing"` // what it cannot confine, a sentence each
}

// ExamineMachine tries the sandbox.
func ExamineMachine(ctx context.Context) (Machine, error) {
	dir, err := os.MkdirTemp("", "anamnesis-doctor-")
	if err != nil {
		return Machine{}, fmt.Errorf("try the sandbox: %w", err)
	}
	defer os.RemoveAll(dir)
	o := guard.SandboxOptions{World: dir, Cache: filepath.Join(dir, "cache"), Temp: filepath.Join(dir, "tmp")}
	box, err := guard.NewSandbox(ctx, o)
	if err != nil {
		return Machine{}, err
	}
	return Machine{Sandbox: box.String(), Missing: append([]string{}, box.Missing()...)}, nil
}

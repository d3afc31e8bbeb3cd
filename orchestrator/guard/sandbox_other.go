//go:build !linux

package guard

import (
	"cmp"
	"context"
)

// NewSandbox returns a sandbox that confines nothing: this platform has no parts for one.
// ConfineOff returns nil.
func NewSandbox(_ context.Context, o SandboxOptions) (*Sandbox, error) {
	if !supervised.Load() {
		return nil, ErrNoSupervisor
	}
	if o.Confine == ConfineOff {
		return nil, nil
	}
	o.Confine = cmp.Or(o.Confine, ConfineWorld)
	return &Sandbox{o: o}, nil
}

// Quarantine finds nothing on this platform.
func (s *Sandbox) Quarantine() string { return "" }

// Examine runs move; nothing is quarantined on this platform.
func (s *Sandbox) Examine(move func() error) (note string, err error) { return "", move() }

// Observes reports that no command is observed on this platform.
func (s *Sandbox) Observes() bool { return false }

package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/workspace"
)

// sandbox makes the confinement of a task's commands when it is first needed. Its methods may be
// called from any goroutine.
type sandbox struct {
	ledger   *journal.Ledger
	dir      string
	override guard.Confinement // instead of the task's, in this process
	writes   *guard.Writes

	mu   sync.Mutex // guards the others
	made bool
	box  *guard.Sandbox
}

// Get returns the confinement, nil if there is none. The first call examines this machine.
func (s *sandbox) Get(ctx context.Context) (*guard.Sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made {
		return s.box, nil
	}
	box, err := s.make(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("sandbox of task %s: %w", s.ledger.ID, err)
	}
	if dirs := box.Exposes(); len(dirs) > 0 {
		return nil, fmt.Errorf("sandbox of task %s: this system has neither user namespaces nor Landlock, so commands could read the program's state, with the streams and secrets of all tasks, in %s; to run them all the same, give --sandbox off",
			s.ledger.ID, strings.Join(dirs, ", "))
	}
	s.box, s.made = box, true
	return box, nil
}

func (s *sandbox) make(ctx context.Context, untried bool) (*guard.Sandbox, error) {
	h, id := s.ledger.Home, s.ledger.ID
	return workspace.NewSandbox(ctx, h, guard.SandboxOptions{
		Confine: s.confinement(), World: s.dir, Writable: s.ledger.State().Opened.Writable, Temp: h.Temp(id), Quarantine: h.Quarantine(id),
		Writes: s.writes, Untried: untried,
	})
}

// examine runs what restores files, and quarantines what git would run by them. Without a sandbox
// no command could have prepared that.
func (s *sandbox) examine(ctx context.Context, move func() error) (note string, err error) {
	s.mu.Lock()
	box, made := s.box, s.made
	s.mu.Unlock()
	if !made {
		box, err = s.make(ctx, true)
	}
	if err != nil {
		return "", move()
	}
	return box.Examine(move)
}

// confinement returns how the task's commands are to be confined.
func (s *sandbox) confinement() guard.Confinement {
	if s.override != "" {
		return s.override
	}
	return guard.Confinement(s.ledger.State().Opened.Sandbox)
}

// beside returns the directories beside the world that the task's commands may write.
func (s *sandbox) beside() []string {
	return append(slices.Clone(s.ledger.State().Opened.Writable), s.ledger.Home.Cache())
}

// Sandbox returns the confinement of the task's commands, nil if there is none. The first call
// examines this machine. It may be called from any goroutine.
func (t *Task) Sandbox(ctx context.Context) (*guard.Sandbox, error) { return t.sandbox.Get(ctx) }

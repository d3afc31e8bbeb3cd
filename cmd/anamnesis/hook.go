//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
)

const (
	// hookReply is how long the agent waits at most. What takes longer goes on without it.
	hookReply = 1800 * time.Millisecond
	// hookWork is how long a hook may record.
	hookWork = 10 * time.Minute
)

// hookCommand is what the wrapper in an agent's configuration runs. It never fails
// towards the agent: standard error is empty, and standard output empty or one reply.
func (a *app) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "hook AGENT",
		Short:  "Record an event of another agent, given on standard input",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || !beside.Recorded(sessions.Agent(args[0])) {
				return nil
			}
			a.hook(cmd.Context(), sessions.Agent(args[0]))
			return nil
		},
	}
}

func (a *app) hook(ctx context.Context, agent sessions.Agent) {
	svc, err := a.service()
	if err != nil {
		return // there is nowhere to say it; doctor finds it
	}
	// The wrapper waits for the end of standard output, not of this process.
	var once sync.Once
	answer := func(reply []byte) {
		once.Do(func() {
			if len(reply) > 0 {
				a.stdout.Write(reply)
			}
			if f, ok := a.stdout.(*os.File); ok {
				f.Close()
			}
		})
	}
	timer := time.AfterFunc(hookReply, func() { answer(nil) })
	defer timer.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookWork)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			beside.LogError(svc.Home, string(agent), fmt.Errorf("panic: %v", p))
		}
		answer(nil)
	}()
	if err := beside.Hook(ctx, svc, agent, a.stdin, answer); err != nil {
		beside.LogError(svc.Home, string(agent), err)
	}
}

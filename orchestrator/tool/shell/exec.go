package shell

import (
	"context"
	"errors"
	"os"
	"time"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
)

// Exec is a program that a tool runs.
type Exec struct {
	Name    string   // the tool's, for texts
	Path    string   // absolute
	Args    []string // with the program's name first
	Env     []string // all of it; nil: the task's, without secrets
	Stdin   []byte   // what it reads; nil: nothing
	Timeout time.Duration
	Network bool // the call asked for the network, and it was approved
}

// Run runs a program for a tool as Bash runs a command: in the world's directory, with an
// environment without secrets, supervised, its output redacted and shortened.
// The result is the output and a closing line about its end. A non-nil error comes with a
// Result that holds the output so far.
func Run(ctx context.Context, env *tool.Env, e Exec) (tool.Result, error) {
	out := newOutputs(MaxOutputRunes, MaxLineRunes, env)
	c := command(env, e)
	c.Output = out.write
	if e.Stdin != nil {
		theirs, ours, err := os.Pipe()
		if err != nil {
			return tool.Errorf("%s was not run: %v.", e.Name, err), err
		}
		written := make(chan struct{})
		go func() {
			defer close(written)
			_, _ = ours.Write(e.Stdin) // a program need not read it
			ours.Close()
		}()
		defer func() { <-written }()
		c.Stdin = theirs
	}
	o, err := guard.Run(ctx, c)
	var start *guard.StartError
	switch {
	case errors.As(err, &start):
		return tool.Errorf("%s was not run: %v.", e.Name, start), nil
	case err != nil && !o.Canceled:
		return tool.Errorf("%s was not run: %v. %s", e.Name, err, o.Note), err
	}
	out.why = context.Cause(ctx)
	r := out.result(o, e.Timeout)
	r.Isolated = c.Sandbox.Isolates()
	return r, err
}

func command(env *tool.Env, e Exec) guard.Command {
	kept := e.Env
	if kept == nil {
		kept = guard.Environ(os.Environ())
	}
	box := env.Sandbox
	if e.Network {
		box = box.WithNetwork()
	}
	return guard.Command{
		Path: e.Path, Args: e.Args, Dir: env.Dir, Env: append(kept, "PWD="+env.Dir), Timeout: e.Timeout, Call: env.Call,
		Started: env.Started, Sandbox: box,
	}
}

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/shell"
)

// remembered is a tool made from a file.
type remembered struct {
	definition
	spec    tool.Spec
	timeout time.Duration
	// granted returns a project's tool's grants, and whether its present content is approved;
	// nil for a user's own tool.
	granted func() (guard.Grants, bool)
	place   string // the name of its private cache
}

// Spec implements tool.Tool.
func (r *remembered) Spec() tool.Spec { return r.spec }

// surroundings returns the tool's sandbox and environment: the task's sandbox, that of a
// project's programs, or none if a user's own file says so. A tool that changes nothing always
// has a sandbox.
func (r *remembered) surroundings(env *tool.Env, g guard.Grants) (box *guard.Sandbox, environ []string, err error) {
	if environ = env.Environ; environ == nil {
		environ = os.Environ()
	}
	switch {
	case r.granted != nil:
		if box, err = env.Sandbox.ForProject(g, r.place); err != nil {
			return nil, nil, err
		}
		environ = box.ProjectEnviron(environ, g)
	case r.Sandbox != "":
		environ = guard.Environ(environ)
	default:
		box = env.Sandbox
		environ = guard.Environ(environ)
	}
	if r.ReadOnly {
		box = box.ReadOnly()
	}
	return box, consent.EnvironOutside(environ, env.Dir), nil
}

// Call implements tool.Tool. The command's output is the result; JSON is compacted.
func (r *remembered) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	var grants guard.Grants
	if r.granted != nil {
		var ok bool
		if grants, ok = r.granted(); !ok {
			return tool.Errorf("%s was not run: its file or the program it names was changed since it was approved. A user has to approve it again.", r.spec.Name), ctx.Err()
		}
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var values map[string]any
	if err := dec.Decode(&values); err != nil {
		return tool.Result{}, fmt.Errorf("read tool arguments: %w", err)
	}
	words := fill(r.Command, values)
	for _, w := range words {
		if strings.ContainsRune(w, 0) {
			return tool.Errorf("%s was not run: an argument contains a NUL byte.", r.spec.Name), nil
		}
	}
	box, environ, err := r.surroundings(env, grants)
	if err != nil {
		return tool.Errorf("%s was not run: %v.", r.spec.Name, err), ctx.Err()
	}
	path, err := consent.FindProgram(words[0], env.Dir, consent.PathOf(environ), box.Hides)
	if err != nil {
		return tool.Errorf("%s was not run: %v.", r.spec.Name, err), ctx.Err()
	}
	held := *env
	held.Sandbox = box
	res, err := shell.Run(ctx, &held, shell.Exec{
		Name: r.spec.Name, Path: path, Args: words, Stdin: append(args, '\n'), Timeout: r.timeout,
		Network: r.Network && r.granted == nil, Env: environ,
	})
	var compact bytes.Buffer
	if err == nil && !res.IsError && res.Cut == 0 && res.Stderr == "" && json.Compact(&compact, []byte(res.Stdout)) == nil {
		res.Text = compact.String()
	}
	return res, err
}

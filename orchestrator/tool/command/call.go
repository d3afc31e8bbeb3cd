//go:build unix

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/shell"
)

// remembered is a tool made of a file.
type remembered struct {
	definition
	spec    tool.Spec
	timeout time.Duration
	// unchanged says whether what was approved is still what would run; nil for
	// a person's own tool.
	unchanged func() bool
}

// Spec implements tool.Tool.
func (r *remembered) Spec() tool.Spec { return r.spec }

// held is the environment with the sandbox the file asks for: none, or the
// task's, in which a tool that changes nothing cannot.
func (r *remembered) held(env *tool.Env) *tool.Env {
	with := *env
	switch {
	case r.Sandbox != "":
		with.Sandbox = nil
	case r.ReadOnly:
		with.Sandbox = env.Sandbox.ReadOnly()
	}
	return &with
}

// Call implements tool.Tool. What the command prints is the result; JSON comes
// without spare space.
func (r *remembered) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	if r.unchanged != nil && !r.unchanged() {
		return tool.Errorf("%s was not run: its file or the program it names was changed since it was approved. A person has to approve it again.", r.spec.Name), ctx.Err()
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
	path := words[0]
	if strings.ContainsRune(path, '/') {
		if !filepath.IsAbs(path) {
			path = filepath.Join(env.Dir, path)
		}
	} else {
		found, err := exec.LookPath(path)
		if err != nil {
			return tool.Errorf("%s was not run: %s is not installed, or not in PATH.", r.spec.Name, path), ctx.Err()
		}
		if path, err = filepath.Abs(found); err != nil {
			return tool.Result{}, fmt.Errorf("find %s: %w", words[0], err)
		}
	}
	held := r.held(env)
	if real, err := filepath.EvalSymlinks(path); err == nil && held.Sandbox.Hides(real) {
		return tool.Errorf("%s was not run: %s lies in the program's own folders, of which the sandbox shows nothing. A person can move it elsewhere, or write sandbox: off into the tool's file.",
			r.spec.Name, words[0]), ctx.Err()
	}
	res, err := shell.Run(ctx, held, nil, shell.Exec{
		Name: r.spec.Name, Path: path, Args: words, Stdin: append(args, '\n'), Timeout: r.timeout, Network: r.Network,
	})
	var compact bytes.Buffer
	if err == nil && !res.IsError && res.Cut == 0 && res.Stderr == "" && json.Compact(&compact, []byte(res.Stdout)) == nil {
		res.Text = compact.String()
	}
	return res, err
}

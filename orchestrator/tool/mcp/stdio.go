package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/consent"
)

const (
	// closeTime is how long a server may take to exit when its input has ended; then it is
	// ended.
	closeTime = time.Second
	// stderrBytes is how much of the end of a server's stderr is stored to explain why it
	// ended.
	stderrBytes = 2_000
)

// process is a started server, under the supervisor that ends everything it starts. It is a
// reader of its output and a writer to its input.
type process struct {
	stdin  *os.File
	out    *io.PipeReader
	cancel context.CancelFunc
	done   chan struct{} // closed when nothing of it is alive

	mu      sync.Mutex
	errText []byte // the end of its stderr
	stray   string // the last line of its output that was not a message
	end     string // how it ended, in words; valid when done is closed
}

// startProcess starts a server. It runs until close, or its own end; ctx carries values only.
func startProcess(ctx context.Context, s Server, o *Options) (*process, error) {
	getenv := func(name string) string {
		if name == ProjectVariable {
			return o.Dir
		}
		return o.Getenv(name)
	}
	args := make([]string, 0, len(s.Args)+1)
	for _, a := range append([]string{s.Command}, s.Args...) {
		text, err := expand(a, getenv)
		if err != nil {
			return nil, err
		}
		args = append(args, text)
	}
	own, err := expandAll(s.Env, getenv)
	if err != nil {
		return nil, fmt.Errorf("env %w", err)
	}
	dir, err := s.directory(args, o)
	if err != nil {
		return nil, err
	}
	env, box, err := surroundings(s, own, dir, o)
	if err != nil {
		return nil, err
	}
	path, err := consent.FindProgram(args[0], o.Dir, guard.Variable(env, "PATH"), box.Hides)
	if err != nil {
		own, missing := consent.FindProgram(args[0], os.DevNull, os.Getenv("PATH"), nil)
		if missing == nil && consent.InWorld(own, o.Dir) {
			err = fmt.Errorf("%s is found only in %s, in the project: a program there is run by its path only, and "+
				"for a server of yours with \"cwd\": %q", args[0], filepath.Dir(own), CwdProject)
		}
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &process{stdin: ours, out: r, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer cancel()
		out, err := guard.Run(ctx, guard.Command{
			Path: path, Args: args, Dir: dir, Env: env, Stdin: theirs, Timeout: guard.MaxTimeout, Sandbox: box,
			Output: func(s guard.Stream, b []byte) {
				if s == guard.Stdout {
					_, _ = w.Write(b) // an error means that the reader is gone
					return
				}
				p.keep(b)
			},
		})
		p.setExit(out, err)
		if out.Note != "" && o.Note != nil {
			o.Note(fmt.Sprintf("MCP server %s: %s", s.Name, out.Note))
		}
		close(p.done) // before the output ends: its reader then asks why
		w.Close()
	}()
	return p, nil
}

// ProjectVariable names the project's directory to servers, and in their configuration.
const ProjectVariable = "ANAMNESIS_PROJECT_DIR"

// directory returns where a command runs. A user's own runs outside the sandbox, so it is kept
// from the code of the project unless its Cwd says otherwise: interpreters and package runners
// load modules of their working directory and of those above it.
func (s Server) directory(args []string, o *Options) (string, error) {
	switch {
	case s.confined() || s.Cwd == CwdProject:
		return o.Dir, nil
	case s.Cwd != "" && consent.InWorld(s.Cwd, o.Dir):
		return "", fmt.Errorf("its cwd %s is in the project, whose code would run outside the sandbox; \"cwd\": "+
			"%q allows that", s.Cwd, CwdProject)
	case strings.ContainsRune(args[0], '/') && !filepath.IsAbs(args[0]):
		return "", fmt.Errorf("its command %s is relative: give its absolute path, or \"cwd\": %q to run it in the "+
			"project, outside the sandbox", args[0], CwdProject)
	}
	if file := projectProgram(args, o.Dir); file != "" {
		return "", fmt.Errorf("%s is in the project and would run outside the sandbox; \"cwd\": %q allows that",
			file, CwdProject)
	}
	if s.Cwd != "" {
		return s.Cwd, nil
	}
	if a := relative(args[1:]); a != "" { // a server of files would show the empty directory without an error
		return "", fmt.Errorf("its argument %s is relative, and the server runs in an empty directory: write ${%s} "+
			"or an absolute path; \"cwd\": %q runs it in the project, outside the sandbox",
			a, ProjectVariable, CwdProject)
	}
	if o.Empty == "" {
		return "/", nil
	}
	err := os.MkdirAll(o.Empty, 0o700)
	if err == nil {
		err = os.Chmod(o.Empty, 0o500) // no server leaves a module for the next one
	}
	if err != nil {
		return "", fmt.Errorf("make the empty directory for MCP servers: %w", err)
	}
	if consent.InWorld(o.Empty, o.Dir) { // programs also look in the directories above
		return "/", nil
	}
	return o.Empty, nil
}

// projectProgram returns the program, the script or the directory of a command that is in the
// project, also behind env, timeout or "sh -c"; empty: none is. What follows an interpreter's
// script or module is data.
func projectProgram(args []string, world string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = shell.Quote(a)
	}
	commands, _ := shell.Parse(strings.Join(words, " ")) // an error comes with what was read
	for _, c := range commands {
		if len(c.Words) > 0 && filepath.IsAbs(c.Words[0].Text) && consent.InWorld(c.Words[0].Text, world) {
			return c.Words[0].Text
		}
		name := c.Program()
		runs := approval.IsShell(name) || approval.Interprets(name)
		if !runs && !slices.Contains([]string{".", "source", "cd"}, name) {
			continue
		}
		for _, w := range c.Args() {
			_, value, _ := strings.Cut(w.Text, "=")
			for _, path := range []string{w.Text, value} {
				if filepath.IsAbs(path) && consent.InWorld(path, world) {
					return path
				}
			}
			info, err := os.Stat(w.Text)
			script := filepath.IsAbs(w.Text) && err == nil && info.Mode().IsRegular()
			if script || w.Text == "-m" || w.Text == "-c" {
				break
			}
		}
	}
	return ""
}

// relative returns an argument that is a path relative to the working directory; empty: none is.
func relative(args []string) string {
	for _, a := range args {
		_, value, _ := strings.Cut(a, "=")
		for _, path := range []string{a, value} {
			if first, _, _ := strings.Cut(path, "/"); first == "." || first == ".." {
				return a
			}
		}
	}
	return ""
}

// surroundings returns the environment of a server in dir, and its sandbox. own are the
// variables of its configuration.
func surroundings(s Server, own map[string]string, dir string, o *Options) (
	env []string, box *guard.Sandbox, err error) {
	if s.confined() {
		if box, err = o.Sandbox.ForProject(s.Grants, s.approval(trustCommand, "").Place()); err != nil {
			return nil, nil, err
		}
		env = box.ProjectEnviron(os.Environ(), s.Grants)
	} else {
		env = guard.Environ(os.Environ())
		if dir != o.Dir {
			env = consent.EnvironApart(env, o.Dir)
		}
	}
	env = guard.SetVariable(guard.SetVariable(env, "PWD", dir), ProjectVariable, o.Dir)
	for k, v := range own {
		env = guard.SetVariable(env, k, v)
	}
	return consent.EnvironOutside(env, o.Dir), box, nil
}

func (p *process) keep(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errText = append(p.errText, b...)
	if n := len(p.errText) - stderrBytes; n > 0 {
		p.errText = append(p.errText[:0], p.errText[n:]...)
	}
}

// keepStray records a line of the output that is not a message.
func (p *process) keepStray(line []byte) {
	text := strings.TrimSpace(strings.ToValidUTF8(string(line[:min(len(line), stderrBytes)]), ""))
	p.mu.Lock()
	defer p.mu.Unlock()
	if text != "" {
		p.stray = text
	}
}

// aside returns what the process printed instead of messages; empty: nothing.
func (p *process) aside() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stray == "" {
		return ""
	}
	return fmt.Sprintf("; its output has lines that are not messages, the last is %q", oneLine(p.stray))
}

// setExit records why the process ended, with the end of what it printed.
func (p *process) setExit(out guard.Outcome, err error) {
	var start *guard.StartError
	end := fmt.Sprintf("it ended with exit code %d", out.Exit)
	switch {
	case errors.As(err, &start):
		end = start.Error()
	case err != nil && !out.Canceled:
		end = err.Error()
	case out.TimedOut:
		end = fmt.Sprintf("it was ended after %v", guard.MaxTimeout)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := strings.TrimSpace(strings.ToValidUTF8(string(p.errText), "")); text != "" {
		lines := strings.Split(text, "\n")
		end += ": " + strings.TrimSpace(lines[len(lines)-1])
	}
	p.end = end
}

// why returns how the process ended; empty while it runs.
func (p *process) why() string {
	select {
	case <-p.done:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.end
	default:
		return ""
	}
}

// close lets the server exit, ends it if it does not, and waits for its processes.
func (p *process) close() {
	p.stdin.Close()
	p.out.Close()
	select {
	case <-p.done:
	case <-time.After(closeTime):
		p.cancel()
		<-p.done
	}
}

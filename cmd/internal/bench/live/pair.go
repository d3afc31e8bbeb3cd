package live

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// data holds the pairs: two requests, one a line; the files of the repositories learn
// and trap, each with its tests in test.sh; and a command that repairs either.
//
//go:embed data
var data embed.FS

// pair is two repositories with one trap: what is learned in the first helps in the
// second.
type pair struct {
	learn, trap string // requests
	fix         string // a shell command that repairs either, for the tests of this package
	files       map[string][]byte
}

// pairs reads all pairs, in the order of their names.
func pairs() ([]unit, error) {
	entries, err := data.ReadDir("data")
	if err != nil {
		return nil, err
	}
	var out []unit
	for _, e := range entries {
		text, err := data.ReadFile(path.Join("data", e.Name()))
		if err != nil {
			return nil, err
		}
		a := txtar.Parse(text)
		lines := strings.SplitN(strings.TrimSpace(string(a.Comment)), "\n", 2)
		if len(lines) != 2 {
			return nil, fmt.Errorf("%s: want two requests", e.Name())
		}
		p := &pair{learn: lines[0], trap: lines[1], files: make(map[string][]byte)}
		for _, f := range a.Files {
			if f.Name == "fix" {
				p.fix = string(f.Data)
				continue
			}
			p.files[f.Name] = f.Data
		}
		out = append(out, unit{name: strings.TrimSuffix(e.Name(), ".txtar"), pair: p})
	}
	return out, nil
}

// write returns what writes one repository of the pair into a directory.
func (p *pair) write(which string) func(dir string) error {
	return func(dir string) error {
		for name, text := range p.files {
			rel, ok := strings.CutPrefix(name, which+"/")
			if !ok {
				continue
			}
			file := filepath.Join(dir, filepath.FromSlash(rel))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(file, text, 0o644); err != nil {
				return err
			}
		}
		return nil
	}
}

// passes runs the tests of a repository, as they were before the agent came.
func (p *pair) passes(ctx context.Context, which, dir string) (bool, error) {
	if err := os.WriteFile(filepath.Join(dir, "test.sh"), p.files[which+"/test.sh"], 0o644); err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, "sh", "test.sh")
	cmd.Dir = dir
	err := cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

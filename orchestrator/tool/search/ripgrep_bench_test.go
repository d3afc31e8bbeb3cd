package search_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/search"
)

// BenchmarkGrepBesideRipgrep searches the Go source tree with Grep and with the
// rg program, in turns:
//
//	go test ./orchestrator/tool/search -bench Ripgrep -benchtime 5x
func BenchmarkGrepBesideRipgrep(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("ripgrep is not installed")
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	for name, pattern := range map[string]string{"literal": "ErrUnexpectedEOF", "rare": "no such words anywhere", "regexp": `func \(\w+ \*?Reader\) Read`} {
		args, err := json.Marshal(map[string]any{"pattern": pattern, "head_limit": 1000})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/own", func(b *testing.B) {
			for b.Loop() {
				r, err := search.Grep(nil).Call(b.Context(), &tool.Env{Root: root, Dir: dir}, args)
				if err != nil || r.IsError {
					b.Fatal(err, r.Text)
				}
			}
		})
		b.Run(name+"/rg", func(b *testing.B) {
			for b.Loop() {
				c := exec.Command(rg, "--no-config", "--hidden", "--files-with-matches", "--sortr", "modified", "-e", pattern)
				c.Dir = dir
				var none *exec.ExitError
				if _, err := c.Output(); err != nil && (!errors.As(err, &none) || none.ExitCode() != 1) {
					b.Fatal(err)
				}
			}
		})
	}
}

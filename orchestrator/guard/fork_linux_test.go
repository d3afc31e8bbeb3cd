package guard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/guard/confine"
)

// TestFork: in a fork a command finds the copy at the world's path, with what the copy lacks beneath it, and
// nothing that it writes reaches the world.
func TestFork(t *testing.T) {
	b := newBox(t, SandboxOptions{})
	needs(t, b.parts.Namespaces, "namespaces")
	fork := filepath.Join(b.home, "fork")
	for path, text := range map[string]string{
		b.world + "/a": "now", b.world + "/node_modules/lib": "dependency", b.world + `/od,d:\=/x`: "odd",
		fork + "/a": "then",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	forked, ok := b.InFork(confine.Fork{Dir: fork, Beneath: []string{"node_modules", ".git", `od,d:\=`},
		Scratch: filepath.Join(b.home, "scratch")})
	if !ok {
		t.Fatal("no fork with namespaces")
	}
	world := b.Sandbox
	b.Sandbox = forked
	out, o := b.run(t,
		`cat a node_modules/lib; echo more >> a; echo x > node_modules/lib; echo y > node_modules/new; echo z > b; cat .git/config; cat od*/x; ls `+b.home+` 2>&1; pwd`)
	if !strings.HasPrefix(out, "thendependency") || !strings.Contains(out, "[core]") || !strings.Contains(out, "odd") ||
		!strings.HasSuffix(strings.TrimSpace(out), b.world) || strings.Contains(out, "vault") {
		t.Errorf("exit %d, output %q", o.Exit, out)
	}
	forked, ok = world.InFork(confine.Fork{Scratch: filepath.Join(b.home, "scratch2")})
	if b.Sandbox = forked; !ok {
		t.Fatal("no fork with namespaces")
	}
	if out, o := b.run(t, `cat a node_modules/lib; echo more >> a; rm -r node_modules; echo z > b; cat a b; pwd`); o.Exit != 0 || out != "nowdependencynowmore\nz\n"+b.world+"\n" {
		t.Errorf("without a copy: exit %d, output %q", o.Exit, out)
	}
	b.Sandbox = world
	if out, _ := b.run(t, "cat a node_modules/lib; ls b node_modules 2>&1"); !strings.HasPrefix(out, "nowdependency") ||
		strings.Contains(out, "new") || !strings.Contains(out, "No such file") {
		t.Errorf("the world has %q", out)
	}
}

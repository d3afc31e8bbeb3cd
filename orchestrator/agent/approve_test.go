package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/guard/consent"
)

// TestApprove: every file the project brings for an agent is part of what was
// approved, and what is not the project's needs no approval.
func TestApprove(t *testing.T) {
	root, l := write(t, `
-- project/.anamnesis/agents/a.yaml --
extends: ./base.yaml
subagents: {s: {path: s.yaml, description: D.}}
-- project/.anamnesis/agents/base.yaml --
system_prompt: ../../prompt.md
-- project/prompt.md --
Hello.
-- project/.anamnesis/agents/s.yaml --
extends: coder
-- user/u.yaml --
extends: default
-- user/reach.yaml --
system_prompt: ../project/prompt.md
`)
	trust := consent.OpenTrust(filepath.Join(root, "approvals.json"))
	allowed := func(name string, ask func(context.Context, string) bool) bool {
		t.Helper()
		a, err := l.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		ok, err := a.Allow(t.Context(), trust, ask)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !allowed("u", nil) || !allowed("default", nil) {
		t.Error("what the project did not bring is asked about")
	}
	if allowed("reach", nil) {
		t.Error("a prompt in the project was not asked about")
	}
	var asked string
	if allowed("a", func(_ context.Context, q string) bool { asked = q; return false }) {
		t.Error("a no is a yes")
	}
	for _, file := range []string{".anamnesis/agents/a.yaml", ".anamnesis/agents/base.yaml", "prompt.md", ".anamnesis/agents/s.yaml"} {
		if !strings.Contains(asked, "--- "+file+"\n") {
			t.Errorf("%s is not shown in %s", file, asked)
		}
		if !allowed("a", func(context.Context, string) bool { return true }) || !allowed("a", nil) {
			t.Fatal("an approval does not hold")
		}
		path := filepath.Join(root, "project", file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(data, "# more\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
		if allowed("a", nil) {
			t.Errorf("%s may change after the approval", file)
		}
	}
}

// TestScopes: a name means what it means from where its file stands; a user's
// specs do not come to depend on a project's.
func TestScopes(t *testing.T) {
	root, l := write(t, `
-- project/.anamnesis/agents/base.yaml --
extends: default
model: of-the-project
-- project/.anamnesis/agents/default.yaml --
extends: default
model: of-the-project
-- user/base.yaml --
extends: default
model: of-the-person
-- user/mine.yaml --
extends: base
-- user/default.yaml --
extends: default
approval: edits
-- elsewhere/named.yaml --
extends: base
`)
	for ref, want := range map[string][2]string{
		"mine": {"of-the-person", "edits"}, "base": {"of-the-project", "edits"}, "default": {"of-the-project", "edits"},
		filepath.Join(root, "elsewhere/named.yaml"): {"of-the-person", "edits"}, "embedded:default.yaml": {"", ""},
		"coder": {"", ""},
	} {
		a, err := l.Load(ref)
		if err != nil || a.Spec.Model != want[0] || a.Spec.Approval != want[1] {
			t.Errorf("%s: %v, %+v; want %q", ref, err, a, want)
		}
	}
	entries, err := l.List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name+":"+string(e.Scope))
	}
	if want := "base:project coder:embedded default:project explore:embedded mine:user plan:embedded"; strings.Join(got, " ") != want {
		t.Errorf("%q", got)
	}
}

// TestOutside: a project's file reaches for nothing outside the project.
func TestOutside(t *testing.T) {
	root, l := write(t, `
-- project/.anamnesis/agents/a.yaml --
extends: ../../../user/u.yaml
-- project/.anamnesis/agents/b.yaml --
system_prompt: /etc/hostname
-- project/.anamnesis/agents/c.yaml --
system_prompt: link.md
-- user/u.yaml --
extends: default
-- user/secret.md --
secret
`)
	if err := os.Symlink("../../../user/secret.md", filepath.Join(root, "project", ProjectDir, "link.md")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if a, err := l.Load(name); err == nil || strings.Contains(err.Error(), "secret\n") {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

package worldstate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"anamnesis/worldstate/worldtest"
)

// TestSecretsKept: small ignored files of the list are in snapshots, so that a restore brings
// them back, and no part of the package shows them.
func TestSecretsKept(t *testing.T) {
	b := newBench(t, nil)
	worldtest.Git(t, b.dir, "init", "-q")
	b.write(".gitignore", ".env*\n*.sqlite3\n*.local.*\n*.log\nbuild/\n")
	b.write("settings.local.json", "{}")
	b.write(".env", "KEY=hunter2\n")
	b.write("sub/dev.sqlite3", "rows\n")
	b.write("big.sqlite3", strings.Repeat("x", MaxSecretBytes+1))
	b.write("x.log", "not held")
	b.write("build/.env", "not held")
	b.write(".env.example", "KEY=\n")
	worldtest.Git(t, b.dir, "add", "-f", ".env.example")
	first := b.save()
	if first.Files != 5 { // .gitignore, .env, .env.example, settings.local.json, sub/dev.sqlite3
		t.Errorf("%d files are held", first.Files)
	}
	b.write(".env", "KEY=changed\n")
	b.write(".env.example", "KEY=example\n")
	second := b.save()
	if err := errors.Join(os.Remove(b.path(".env")), os.Remove(b.path("sub/dev.sqlite3"))); err != nil {
		t.Fatal(err)
	}
	third := b.save()

	ctx := context.Background()
	changes, err := b.w.Diff(ctx, first.ID, second.ID)
	if err != nil || len(changes) != 2 || !changes[0].Secret || changes[1].Secret {
		t.Errorf("changes: %+v, %v", changes, err)
	}
	var shown bytes.Buffer
	if err := b.w.Patch(ctx, &shown, changes); err != nil || !strings.Contains(shown.String(), "+KEY=example") ||
		strings.Contains(shown.String(), "hunter2") || strings.Contains(shown.String(), "changed") {
		t.Errorf("%s, %v", shown.String(), err)
	}
	if err := b.w.Content(ctx, first.ID, ".env", &shown); !errors.Is(err, ErrRefused) ||
		strings.Contains(shown.String(), "hunter2") {
		t.Errorf("Content: %v", err)
	}
	items, err := b.w.List(ctx, first.ID, "")
	if err != nil || items[0].Path != ".env" || !items[0].Secret || items[0].Blob != "" {
		t.Errorf("items: %+v, %v", items, err)
	}
	b.jump(first.ID)
	if got, err := os.ReadFile(b.path(".env")); string(got) != "KEY=hunter2\n" {
		t.Errorf(".env = %q, %v", got, err)
	}
	if got, err := os.ReadFile(b.path("sub/dev.sqlite3")); string(got) != "rows\n" {
		t.Errorf("dev.sqlite3 = %q, %v", got, err)
	}
	plan, err := b.w.Plan(ctx, third.ID, nil)
	if err != nil || len(plan.Keep) != 2 || plan.Keep[0].Reason != "ignored by the target's rules" {
		t.Errorf("kept: %+v, %v", plan.Keep, err)
	}
}

// TestSecretsOfOldSnapshots: a snapshot from before the list is restored without deleting what
// it ignored.
func TestSecretsOfOldSnapshots(t *testing.T) {
	b := newBench(t, &Options{Secrets: []string{}})
	b.write(".gitignore", ".env\n")
	b.write(".env", "KEY=hunter2\n")
	b.write("a", "1")
	old := b.save()
	b.must(b.w.Close())
	b.open(&Options{})
	b.write("a", "2")
	now := b.save()
	if changed := strings.Join(now.ChangedPaths, " "); changed != ".env a" {
		t.Errorf("changed: %s", changed)
	}
	b.jump(old.ID)
	if got, err := os.ReadFile(b.path(".env")); string(got) != "KEY=hunter2\n" {
		t.Errorf(".env = %q, %v", got, err)
	}
	b.jump(now.ID)
	if got, err := os.ReadFile(b.path("a")); string(got) != "2" {
		t.Errorf("a = %q, %v", got, err)
	}
}

package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// bundleTest is a task in a repository, and a clone of it from before.
type bundleTest struct {
	*testing.T
	*workspace.Place
	other string
}

func (b *bundleTest) sh(dir, line string) string {
	b.Helper()
	cmd := exec.Command("sh", "-euc", line)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@a", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@a")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

// record records where the repository stands, and returns that.
func (b *bundleTest) record(bundled bool) *op.GitSeen {
	b.Helper()
	if _, err := b.World.Save(b.Context(), worldstate.SaveOptions{Message: "m", Ref: "1"}); err != nil { // finds it
		b.Fatal(err)
	}
	first := b.State().Last + 1
	if err := b.RecordGit(b.Context(), bundled); err != nil {
		b.Fatal(err)
	}
	ops, err := b.Ops(op.Range{First: first, Last: b.State().Last})
	if err != nil {
		b.Fatal(err)
	}
	for _, o := range ops { // a log that was idle for long is sealed in between
		if seen, ok := o.Body.(*op.GitSeen); ok {
			return seen
		}
	}
	return new(op.GitSeen)
}

// fetched fetches a bundle into the clone, and returns the names of its references.
func (b *bundleTest) fetched(seen *op.GitSeen) string {
	b.Helper()
	if seen.Bundle == "" {
		return ""
	}
	b.sh(b.other, "git fetch -q --no-tags "+filepath.Join(b.Home.Task(b.ID), seen.Bundle)+" '+*:refs/anamnesis/t/*'")
	out := b.sh(b.other, "git for-each-ref --format='%(refname)' refs/anamnesis/t")
	return strings.ReplaceAll(strings.ReplaceAll(out, "refs/anamnesis/t/", ""), "\n", " ")
}

func newBundleTest(t *testing.T, began string) *bundleTest {
	t.Helper()
	b := &bundleTest{T: t, Place: gatetest.Place(t, op.TaskOpened{}), other: t.TempDir()}
	b.Kept = true
	b.sh(b.Dir, began)
	b.sh(b.other, "git init -q; test ! -d "+b.Dir+"/.git || git fetch -q "+b.Dir+" '+refs/*:refs/had/*'")
	return b
}

const oneCommit = "git init -q -b main; echo 1 >a; git add a; git commit -qm one; "

// TestBundle: a bundle has the commits since the repository was recorded last, and those that it follows are the ones
// that another clone has.
func TestBundle(t *testing.T) {
	t.Parallel()
	const commit = "echo $$ >>a; git commit -qam next; "
	for name, tt := range map[string]struct{ began, sh, want string }{
		"a commit":         {oneCommit, commit, "refs/heads/main"},
		"two branches":     {oneCommit, commit + "git switch -qc b; " + commit, "refs/heads/b refs/heads/main"},
		"no commit":        {oneCommit, "git branch b; echo 2 >a; git add a", ""},
		"amended":          {oneCommit + commit, "git commit -q --amend -m other", "refs/heads/main"},
		"back":             {oneCommit + commit, "git reset -q --hard HEAD~1", ""},
		"detached":         {oneCommit, "git checkout -q --detach; " + commit, "HEAD"},
		"a tag, a stash":   {oneCommit, commit + "git tag -am m v1; git reset -q --hard HEAD~1; echo 3 >a; git stash -q", "refs/stash refs/tags/v1"},
		"pushed":           {oneCommit, commit + "git update-ref refs/remotes/origin/main HEAD", ""},
		"pushed in part":   {oneCommit, commit + "git push -q $OTHER HEAD:refs/had/pushed; git update-ref refs/remotes/origin/main HEAD; " + commit, "refs/heads/main"},
		"no commit before": {"git init -q -b main", "echo 1 >a; git add a; git commit -qm one", "refs/heads/main"},
		"made by the task": {"true", oneCommit, "refs/heads/main"},
		"in a rebase": {oneCommit + "git switch -qc b; " + commit, "git switch -q main; echo c >c; git add c; git commit -qm c; echo other >a; git commit -qam other; " +
			"git rebase -q b >../out 2>&1 || test -d .git/rebase-merge", "HEAD refs/heads/main"},
		"files like refs":    {oneCommit + "mkdir -p refs/heads; touch HEAD refs/heads/main; ", "git checkout -q --detach; " + commit, "HEAD"},
		"shallow":            {oneCommit + commit + "cp -r . ../full", "rm -rf .git; git clone -q --depth 1 file://$PWD/../full ../s; mv ../s/.git .git; git remote remove origin; " + commit, "refs/heads/main"},
		"another repository": {oneCommit, "rm -rf .git; git init -q -b other; git commit -q --allow-empty -m z", "refs/heads/other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundleTest(t, tt.began)
			if seen := b.record(false); seen.Bundle+seen.Unbundled != "" {
				t.Fatalf("before the task: %+v", seen)
			}
			b.sh(b.Dir, "OTHER="+b.other+"; "+tt.sh)
			seen := b.record(true)
			if got := b.fetched(seen); got != tt.want || seen.Unbundled != "" {
				t.Fatalf("references %q, want %q; %+v", got, tt.want, seen)
			}
			if tt.want != "" {
				b.sh(b.other, "git rev-list --objects --all >/dev/null; test $(git rev-parse refs/anamnesis/t/"+
					strings.Fields(tt.want)[0]+") = $(git -C "+b.Dir+" rev-parse "+strings.Fields(tt.want)[0]+")")
			}
		})
	}
}

// TestBundleAgain: bundles follow each other. What is in none is in the next one.
func TestBundleAgain(t *testing.T) {
	t.Parallel()
	b := newBundleTest(t, oneCommit)
	b.record(false)
	b.sh(b.Dir, "echo 2 >a; git commit -qam two")
	first := b.record(true)
	b.sh(b.Dir,
		"git config core.compression 0; head -c 68000000 /dev/urandom >large; git add large; git commit -qm large")
	if seen := b.record(true); seen.Bundle != "" || !strings.Contains(seen.Unbundled, "they exceed 64 MiB; push them") {
		t.Errorf("too large: %+v", seen)
	}
	b.sh(b.Dir, "git reset -q --hard HEAD~1; echo 3 >a; git commit -qam three")
	second := b.record(true)
	if got := b.fetched(first) + " " + b.fetched(second); got != "refs/heads/main refs/heads/main" ||
		first.Bundle >= second.Bundle {
		t.Errorf("%q, bundles %s and %s", got, first.Bundle, second.Bundle)
	}
	if got := b.sh(b.other, "git log --format=%s refs/anamnesis/t/refs/heads/main"); got != "three\ntwo\none" {
		t.Errorf("commits %q", got)
	}
	b.Kept = false
	b.sh(b.Dir, "git commit -q --allow-empty -m four")
	if seen := b.record(true); seen.Bundle+seen.Unbundled != "" {
		t.Errorf("without a bucket: %+v", seen)
	}
}

// TestBundleWithoutGit: the task goes on, and its record says why there is no bundle.
func TestBundleWithoutGit(t *testing.T) {
	b := newBundleTest(t, oneCommit)
	b.record(false)
	b.sh(b.Dir, "echo 2 >a; git commit -qam two")
	t.Setenv("PATH", "")
	if seen := b.record(true); seen.Bundle != "" || seen.Unbundled != "where it stands is unknown" {
		t.Errorf("%+v", seen)
	}
}

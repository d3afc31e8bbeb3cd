package git

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// TestMoves: what a repository's way back to the end of a step moves, what it leaves, and why it cannot move. In the
// table "sh" is run before step 1 ends, "then" after it.
func TestMoves(t *testing.T) {
	const commit = "git commit -q --allow-empty -m "
	for _, tt := range []struct {
		name, sh, then string
		want           string // the move in words; empty: nothing moves
		left           string // subjects of commits that no branch holds afterwards
		err            string
	}{
		{name: "nothing changed"},
		{name: "a commit more", then: commit + "two", want: "HEAD main at # -> main at #; main # -> #", left: "two"},
		{name: "a staged file", then: "echo b >b; git add b", want: "HEAD main at # -> main at #; staged files 1 -> 0"},
		{name: "a file staged then", sh: "echo b >b; git add b", then: commit + "two", want: "HEAD main at # -> main at #; main # -> #; staged files 0 -> 1", left: "two"},
		{name: "a new branch stays", then: "git switch -qc topic; " + commit + "two", want: "HEAD topic at # -> main at #"},
		{name: "a branch that was there moves, too", sh: "git branch topic", then: "git switch -q topic; " + commit + "two",
			want: "HEAD topic at # -> main at #; topic # -> #", left: "two"},
		{name: "both branches", sh: "git branch topic", then: commit + "two; git switch -q topic; " + commit + "three",
			want: "HEAD topic at # -> main at #; main # -> #; topic # -> #", left: "three\ntwo"},
		{name: "another branch, at the same commit", then: "git switch -qc topic", want: "HEAD topic at # -> main at #"},
		{name: "a branch that is not checked out stays", sh: "git branch topic", then: "git branch -f topic $(git commit-tree -m x HEAD^{tree})"},
		{name: "a branch that was deleted", sh: "git switch -qc topic; " + commit + "two", then: "git switch -q main; git branch -qD topic",
			want: "HEAD main at # -> topic at #; topic none -> #"},
		{name: "detached", then: "git checkout -q --detach", want: "HEAD detached at # -> main at #"},
		{name: "detached then", sh: "git checkout -q --detach", then: "git switch -q main; " + commit + "two", want: "HEAD main at # -> detached at #; main # -> #", left: "two"},
		{name: "without a commit then", sh: "git switch -q --orphan new", then: commit + "two",
			want: "HEAD new at # -> new without a commit; new # -> none", left: "two"},

		{name: "in a merge", sh: "git branch topic", then: commit + "two; git switch -q topic; " + commit + "three; git merge -q --no-commit main",
			err: "in the middle of a merge; finish it or run 'git merge --abort'"},
		{name: "in a bisect", then: commit + "two; git bisect start", err: "in the middle of a bisect; run 'git bisect reset'"},
		{name: "in a merge then", sh: "git switch -qc topic; " + commit + "two; git switch -q main; " + commit + "three; git merge -q --no-commit topic",
			then: "git merge --abort; " + commit + "four",
			err:  "step 1 ended with a state that git cannot be moved into (merge)"},
		{name: "gone", then: "mv .git ../gone", err: "where it stands is unknown"},
		{name: "locked", then: commit + "two; touch .git/index.lock", err: "index.lock exists"},
		{name: "in another worktree", then: "git switch -qc topic; git worktree add -q ../other main", err: "branch main is checked out in"},
		{name: "removed by gc", sh: "echo b >b; git add b", then: "git reset -q; git gc -q --prune=now", err: "staged file of step 1 is gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := begin(t, "w")
			r.sh(t, tt.sh)
			r.saved(t)
			r.sh(t, tt.then)
			was := workspace.GitNow(t.Context(), r.dir, new(worldstate.GitReader))
			moves, err := r.plan(t, 1)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if now := workspace.GitNow(t.Context(), r.dir, new(worldstate.GitReader)); now != was {
				t.Errorf("planning changed %+v to %+v", was, now)
			}
			if got := inWords(moves); got != tt.want {
				t.Fatalf("%s, want %s", got, tt.want)
			}
			if len(moves) == 0 {
				return
			}
			for i, from := range []op.GitAt{moves[0].From, moves[0].To} { // the second time as after a kill
				got := Apply(t.Context(), r.dir, moves[0], "x")
				if !strings.Contains(got, "HEAD is "+moves[0].To.String()+" again") {
					t.Fatalf("%d, from %s: %s", i, from, got)
				}
				now := workspace.GitNow(t.Context(), r.dir, new(worldstate.GitReader))
				if now.Head != moves[0].To.Head || now.Commit != moves[0].To.Commit ||
					now.Staged != moves[0].To.Staged {
					t.Errorf("%d: it stands at %+v, want %+v", i, now, moves[0].To)
				}
				left := r.sh(t,
					"git log --format=%s refs/anamnesis/left/x --not --branches | grep -v 'before a jump' | sort || true")
				if left != tt.left {
					t.Errorf("%d: %q is left, want %q", i, left, tt.left)
				}
			}
			if again, err := r.plan(t, 1); err != nil || len(again) != 0 {
				t.Errorf("it still moves: %s, %v", inWords(again), err)
			}
		})
	}
}

// TestPlanSteps: each step has its own place in git, and a step before the first that was recorded has none.
func TestPlanSteps(t *testing.T) {
	r := begin(t, "w")
	r.saved(t)
	r.sh(t, "git switch -qc topic")
	r.saved(t)
	for step, want := range map[int]string{1: "HEAD topic at # -> main at #", 2: ""} {
		if moves, err := r.plan(t, step); err != nil || inWords(moves) != want {
			t.Errorf("step %d: %s, %v; want %s", step, inWords(moves), err, want)
		}
	}
	if _, err := r.plan(t, 0); err == nil ||
		!strings.Contains(err.Error(), "no git repository is recorded up to step 0") {
		t.Errorf("step 0: %v", err)
	}
}

// TestMovedMeanwhile: a jump does not move a HEAD that somebody moved after it was planned.
func TestMovedMeanwhile(t *testing.T) {
	r := begin(t, "w")
	r.saved(t)
	r.sh(t, "git switch -qc topic; git branch third")
	moves, err := r.plan(t, 1)
	if err != nil || len(moves) != 1 {
		t.Fatal(moves, err)
	}
	r.sh(t, "git switch -q third")
	if got := Apply(t.Context(), r.dir, moves[0], "x"); got != "not moved: HEAD was moved meanwhile." {
		t.Error(got)
	}
	if got := r.sh(t, "git branch --show-current; git for-each-ref refs/anamnesis"); got != "third" {
		t.Errorf("after a refusal: %s", got)
	}
}

// TestPathInLines: git says where the repository's files are in lines, so a path with a line break is refused.
func TestPathInLines(t *testing.T) {
	r := begin(t, "two\nlines")
	r.saved(t)
	r.sh(t, "git switch -qc topic")
	if _, err := r.plan(t, 1); err == nil || !strings.Contains(err.Error(), "its paths are unknown") {
		t.Error(err)
	}
}

// repository is one whose states are recorded in a task.
type repository struct {
	dir   string
	place *workspace.Place
}

// begin makes a repository with one commit.
func begin(t *testing.T, name string) repository {
	t.Helper()
	for key, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "n@example.test",
		"GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "n@example.test",
	} {
		t.Setenv(key, value)
	}
	r := repository{filepath.Join(t.TempDir(), name), gatetest.Place(t, op.TaskOpened{})}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.sh(t, "git init -q -b main; echo a >a; git add a; git commit -q -m one")
	return r
}

// sh runs a script in the repository.
func (r repository) sh(t *testing.T, script string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-ec", cmp.Or(script, ":"))
	c.Dir = r.dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// saved ends a step of the task with the repository as it is.
func (r repository) saved(t *testing.T) {
	t.Helper()
	now := workspace.GitNow(t.Context(), r.dir, new(worldstate.GitReader))
	s := r.place.State()
	bodies := []op.Body{
		&op.GitSeen{Dir: ".", GitAt: now}, &op.WorldSaved{Commit: fmt.Sprint(s.Last)},
		&op.ModelAsked{LastSeq: s.Last + 2}, &op.ModelReplied{Text: "On."},
	}
	if err := r.place.Record(t.Context(), bodies...); err != nil {
		t.Fatal(err)
	}
}

func (r repository) plan(t *testing.T, step int) ([]op.GitMove, error) {
	t.Helper()
	return Plan(t.Context(), r.dir, r.place.State(), r.place.Journal.Log(), step)
}

// inWords shows moves without the ids of commits.
func inWords(moves []op.GitMove) string {
	var all []string
	for _, m := range moves {
		all = append(all, Words(m))
	}
	return regexp.MustCompile(`[0-9a-f]{7}`).ReplaceAllString(strings.Join(all, "\n"), "#")
}

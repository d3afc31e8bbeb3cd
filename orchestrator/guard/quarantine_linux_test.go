package guard

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/guard/confine"
)

// gitBox is a sandbox whose world is a repository with another one in it, and a
// work tree beside.
func gitBox(t *testing.T, o SandboxOptions) box {
	t.Helper()
	b := newBox(t, SandboxOptions{Confine: ConfineOff})
	o.World, o.Hidden, o.Quarantine = b.world, []string{b.home}, b.home+"/quarantine"
	o.Cache, o.Temp = b.home+"/cache", b.home+"/tmp"
	b.plain(t, `rm -rf .git .anamnesis link && git init -q -b main . && git commit -q --allow-empty -m x && rm -r .git/hooks && git config alias.mine '!true' &&
		git init -q -b main sub && git -C sub commit -q --allow-empty -m x && git worktree add -q tree && git -C sub config filter.mine.clean cat && echo 'exit 0' > sub/.git/hooks/pre-commit`)
	var err error
	if b.Sandbox, err = NewSandbox(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return b
}

// plain runs a shell text in the world as the user does, outside of any sandbox.
func (b box) plain(t *testing.T, text string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", text)
	cmd.Dir = b.world
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.outside, "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_PAGER=cat", "GIT_EDITOR=true"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", text, err, out)
	}
	return string(out)
}

// use runs git as a user would, in every directory of the world.
const use = `find . \( -name objects -o -name refs -o -name logs -o -name info -o -name hooks \) -prune -o \( -type d -o -type l \) -print | while read -r d; do
	( cd "$d" && git status; git x; git commit --allow-empty -qm y; git rebase --continue ) > /dev/null 2>&1 < /dev/null; done; true`

var nightly = flag.Bool("nightly", false, "try all attacks")

// quarantineEvery is which part of the attacks a run tries, another one each time;
// the nightly run tries all.
const quarantineEvery = 3

// TestQuarantine: after a command, the user's git runs nothing that the command
// wrote, whatever repository of the world they use it in; the result says what
// was taken away, and it is kept.
func TestQuarantine(t *testing.T) {
	const commits = `git init -q n && cd n && for i in 1 2; do git commit -q --allow-empty -m $i; done; GIT_SEQUENCE_EDITOR='printf "break\n" >' git rebase -q -i HEAD~1 || true; `
	rows := []attack{
		{"commondir", `mkdir -p e/objects e/refs && cp .git/config e/config; printf '[core]\n fsmonitor = $EVIL\n' >> e/config; echo ../e > .git/commondir; cp -r .git/refs .git/objects e`},
		{"config.worktree", `printf '[core]\n\tfsmonitor = $EVIL\n' > .git/config.worktree; git config extensions.worktreeConfig true`},
		{"hooks that were absent", `mkdir .git/hooks; printf '#!/bin/sh\n$EVIL\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`},
		{"hooks as a link", `mkdir h; printf '#!/bin/sh\n$EVIL\n' > h/pre-commit; chmod +x h/pre-commit; ln -s ../h .git/hooks`},
		{"a module", `mkdir -p .git/modules/deep && git init -q --separate-git-dir=.git/modules/deep/m m && git -C m config core.fsmonitor '$EVIL'`},
		{"a new repository", `git init -q n && git -C n config core.fsmonitor '$EVIL' && git -C n config alias.x '!$EVIL'`},
		{"a bare repository as a work tree", `git init -q --bare bare && git -C bare config core.bare false && git -C bare config core.worktree .. && git -C bare config core.fsmonitor '$EVIL'`},
		{"a .git file", `rm tree/.git; git init -q --bare k && git -C k config core.bare false && git -C k config core.fsmonitor '$EVIL'; echo 'gitdir: ../k' > tree/.git`},
		{"an unfinished directory", `mkdir -p n/f/objects n/f/refs; printf '[core]\n fsmonitor = $EVIL\n' > n/f/config; mkdir n/w; echo 'gitdir: ../f' > n/w/.git; git init -q q; cp q/.git/HEAD n/f`},
		{"a .git link", `git init -q l && mv l/.git l/g && git --git-dir=l/g config core.fsmonitor '$EVIL' ; ln -s g l/.git`},
		{"a repository moved aside", `mv .git g2; mv sub sub2; git init -q sub; git -C sub config core.fsmonitor '$EVIL'; git init -q .; git config core.fsmonitor '$EVIL'`},
		{"a linked work tree", `git worktree add -q w2; git init -q evil; git -C evil config core.fsmonitor '$EVIL'; echo '../../../evil/.git' > .git/worktrees/w2/commondir`},
		{"a link to a private cache", `git init -q "$XDG_CACHE_HOME/e" && git -C "$XDG_CACHE_HOME/e" config core.fsmonitor '$EVIL'; mkdir "$XDG_CACHE_HOME/e/s"; ln -s "$XDG_CACHE_HOME/e/s" n; ls -l n`},
		{"an include", `git init -q n && git -C n config include.path ../../i && printf '[core]\n fsmonitor = $EVIL\n' > i`},
		{"a setting that goes on", `git init -q n; printf '[user]\n name = a\\\n[core]\n fsmonitor = $EVIL\n[core] fsmonitor = $EVIL\n' >> n/.git/config`},
		{"a directory nobody may read", `git init -q d/n && git -C d/n config core.fsmonitor '$EVIL'; chmod 500 d/n/.git; chmod 111 d`},
		{"a rebase to be continued", `git init -q n && cd n && for i in 1 2; do git commit -q --allow-empty -m $i; done; GIT_SEQUENCE_EDITOR='printf "break\nexec $EVIL\n" >' git rebase -q -i HEAD~1 || true`},
		{"while it goes on", `git init -q n; (setsid sh -c 'while :; do git -C n config core.fsmonitor "$EVIL"; done' &) ; until git -C n config core.fsmonitor > /dev/null; do :; done`},
		{"a rebase's state as a link", commits + `mv .git/rebase-merge rm; echo "exec $EVIL" >> rm/git-rebase-todo; ln -s ../rm .git/rebase-merge`},
		{"a rebase's strategy", commits + `echo /x > .git/rebase-merge/strategy; mkdir git-merge-; cp $EVIL git-merge-/x`},
		{"a cherry-pick's options", `git init -q n && cd n && mkdir -p .git/sequencer; printf '[options]\n\tstrategy = /x\n' > .git/sequencer/opts`},
		{"a link above a repository in a private cache", `mkdir -p "$XDG_CACHE_HOME/u"; git init -q "$XDG_CACHE_HOME/u/e" && git -C "$XDG_CACHE_HOME/u/e" config core.fsmonitor '$EVIL'; ln -s "$XDG_CACHE_HOME/u" n`},
		{"links to a private cache, one by another", `git init -q "$XDG_CACHE_HOME/v" && git -C "$XDG_CACHE_HOME/v" config core.fsmonitor '$EVIL'; mkdir p; ln -s "$XDG_CACHE_HOME" p/c; ln -s p/c/v n`},
		{"modules as a link", `git init -q "$XDG_CACHE_HOME/k/m" && git -C "$XDG_CACHE_HOME/k/m" config core.fsmonitor '$EVIL'; ln -s "$XDG_CACHE_HOME/k" .git/modules`},
		{"a work tree in quotes", `git init -q n; printf '[core]\n\tworktree = "/"home\n' >> n/.git/config`},
		{"an address in quotes", `git init -q n; printf '[remote "origin"]\n\turl = e"xt"::$EVIL\n' >> n/.git/config`},
		{"a remote in a private cache", `git init -q --bare "$XDG_CACHE_HOME/r"; git remote add o "$XDG_CACHE_HOME/r" 2> /dev/null; git init -q n; git -C n remote add o "$XDG_CACHE_HOME/r"`},
		{"a remote of old form", `mkdir .git/remotes .git/branches; echo "URL: $EVIL" > .git/remotes/origin; echo $EVIL > .git/branches/b`},
	}
	found := newBox(t, SandboxOptions{}).parts
	needs(t, found.Namespaces && found.PIDs, "user namespaces")
	needs(t, found.Landlock > 0, "Landlock")
	from := rand.IntN(quarantineEvery)
	t.Logf("every attack number %d, from %d", quarantineEvery, from)
	for i, row := range rows {
		if i%quarantineEvery != from && !*nightly {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			quarantined(t, found, row.command)
		})
	}
	// Where no mounts keep what was there as it is, it is set back.
	for _, row := range []attack{
		{"the configuration that was there, by Landlock", `git config core.fsmonitor $EVIL; git config filter.mine.clean $EVIL`},
		{"a hook that was there, by Landlock", `printf '#!/bin/sh\n$EVIL\n' > sub/.git/hooks/pre-commit`},
		{"by a hard link, by Landlock", `ln sub/.git/config other; printf '[core]\n fsmonitor = $EVIL\n' >> other`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := quarantined(t, confine.Parts{Landlock: found.Landlock, Seccomp: true}, row.command)
			if got := b.plain(t, "git config alias.mine; git -C sub config filter.mine.clean; cat sub/.git/hooks/pre-commit"); got != "!true\ncat\nexit 0\n" {
				t.Errorf("what the user had: %q", got)
			}
		})
	}
}

// quarantined runs an attack and uses git afterwards.
func quarantined(t *testing.T, p confine.Parts, command string) box {
	b := gitBox(t, SandboxOptions{})
	b.parts = p
	ran, script := b.outside+"/ran", b.outside+"/evil"
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, o := b.run(t, "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n"+
		strings.ReplaceAll(command, "$EVIL", script))
	if !strings.Contains(o.Note, "quarantine: ") {
		t.Errorf("nothing was quarantined: %q\n%s", o.Note, out)
	}
	b.plain(t, use)
	if _, err := os.Stat(ran); err == nil {
		t.Errorf("git ran a program of the command: %q\n%s", o.Note, out)
	}
	return b
}

// TestQuarantineLinks: no link in a git directory makes the user's git write
// what a command chose into a file outside, or another of git's.
func TestQuarantineLinks(t *testing.T) {
	found := newBox(t, SandboxOptions{}).parts
	needs(t, found.Namespaces && found.PIDs, "user namespaces")
	for _, row := range []attack{
		{"the message of a commit", `ln -sf $OUT .git/COMMIT_EDITMSG; echo evil > .git/SQUASH_MSG; echo b >> a; git add a`},
		{"a log", `rm -rf .git/logs/HEAD; ln -s $OUT .git/logs/HEAD; echo b >> a; git add a`},
		{"a link to a link", `ln -sf ../l2 .git/COMMIT_EDITMSG; ln -s $OUT l2; echo evil > .git/MERGE_MSG; echo b >> a; git add a`},
		{"a directory", `mv .git/logs l; rm l/HEAD; ln -s ../l .git/logs; ln -s $OUT l/HEAD; echo b >> a; git add a`},
		{"in a module", `git init -q --bare .git/modules/m; ln -s $OUT .git/modules/m/FETCH_HEAD; ln -sf $OUT .git/COMMIT_EDITMSG; echo b >> a; git add a`},
		{"git's own configuration", `ln -sf config .git/COMMIT_EDITMSG; printf '[core]\nx=evil\n' > .git/SQUASH_MSG; echo b >> a; git add a`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := gitBox(t, SandboxOptions{})
			file := b.outside + "/bashrc"
			if err := os.WriteFile(file, []byte("mine\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			out, o := b.run(t, strings.ReplaceAll(row.command, "$OUT", file))
			if !strings.Contains(o.Note, "quarantine: ") {
				t.Errorf("nothing was quarantined: %q\n%s", o.Note, out)
			}
			b.plain(t, "git commit -q > /dev/null 2>&1; git fetch -q . ; true")
			if got := b.plain(t, "cat "+file+"; grep -h evil .git/config || true"); got != "mine\n" {
				t.Errorf("git wrote by a link: %q, %q", got, o.Note)
			}
		})
	}
}

// TestQuarantineWorktreeMoves: where a work tree leads is judged after each
// command, also when the configuration that names it is as it was.
func TestQuarantineWorktreeMoves(t *testing.T) {
	b := gitBox(t, SandboxOptions{})
	needs(t, b.parts.Namespaces, "user namespaces")
	if _, o := b.run(t, "mkdir n.d && git init -q n && git -C n config core.worktree ../../n.d"); o.Note != "" {
		t.Fatalf("an inert work tree was quarantined: %q", o.Note)
	}
	if _, o := b.run(t, "rmdir n.d && ln -s "+b.outside+" n.d"); !strings.Contains(o.Note, "core.worktree") {
		t.Errorf("a work tree that leads out stays: %q", o.Note)
	}
}

// TestQuarantineKeepsWork: what commands do with git keeps working, and nothing
// of it is quarantined.
func TestQuarantineKeepsWork(t *testing.T) {
	b := gitBox(t, SandboxOptions{})
	needs(t, b.parts.Namespaces, "user namespaces")
	for _, row := range []attack{
		{"init", "git init -q n && git -C n remote add origin ../sub && git -C n config user.name a && git -C n config user.email a@b"},
		{"later, in a repository of its own", "git -C n fetch -q && git -C n checkout -q -b main --track origin/main && git -C n config init.defaultBranch x && git -C n remote set-url origin ../tree"},
		{"clone", "git clone -q sub c && git -C c commit -q --allow-empty -m y && git -C c push -q origin HEAD:refs/heads/other"},
		{"commit, branch, stash, rebase", "echo x > f && git add f && git commit -qm f && git branch b2 && echo y > f && git stash -q && git stash pop -q && git commit -qam g && git rebase -q --force-rebase HEAD~1 && git tag v1 && git gc -q"},
		{"worktree", "git worktree add -q w2 && git -C w2 commit -q --allow-empty -m w && git worktree list"},
		{"a submodule of its own repository", "git -C n -c protocol.file.allow=always submodule --quiet add ../sub s && git -C n commit -qm s && git -C n -c protocol.file.allow=always submodule update --init --recursive && git -C n/s log -1"},
		{"rename beside", "mkdir a && mv a sub/a && mv sub/a . && rmdir a"},
		{"remove its own", "rm -rf n c"},
	} {
		out, o := b.run(t,
			"export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n"+row.command)
		if o.Exit != 0 || o.Note != "" {
			t.Errorf("%s: exit %d, %q\n%s", row.name, o.Exit, o.Note, out)
		}
	}
	if got := b.plain(t, "git config alias.mine; git -C sub config filter.mine.clean"); got != "!true\ncat\n" {
		t.Errorf("the user's settings: %q", got)
	}
}

// TestQuarantineRestores: the line says how the file comes back, and then it stays.
func TestQuarantineRestores(t *testing.T) {
	b := gitBox(t, SandboxOptions{})
	_, o := b.run(t, "mkdir -p .git/hooks && printf '#!/bin/sh\n' > .git/hooks/pre-commit")
	_, restore, ok := strings.Cut(o.Note, "runs: ")
	if !ok {
		t.Fatalf("no way back: %q", o.Note)
	}
	b.plain(t, restore)
	if _, o := b.run(t, "true"); o.Note != "" {
		t.Errorf("what the user restored was quarantined again: %q", o.Note)
	}
	if _, err := os.Stat(b.world + "/.git/hooks/pre-commit"); err != nil {
		t.Error(err)
	}
}

// TestLostRepository: a repository that a command removes or moves is named once;
// one that the task's commands made is theirs to remove.
func TestLostRepository(t *testing.T) {
	b := gitBox(t, SandboxOptions{})
	b.plain(t, "git init -q gone; git init -q far/was")
	for _, c := range []struct{ command, note string }{
		{"git init -q own", ""},
		{"rm -rf gone own", "the git repository gone/.git is missing or has no HEAD"},
		{"true", ""},
		{"mv far near", "the git repository far/was/.git was moved to near/was/.git"},
	} {
		if _, o := b.run(t, c.command); c.note == "" && o.Note != "" || !strings.HasPrefix(o.Note, c.note) ||
			strings.Contains(o.Note, "own/.git") {
			t.Errorf("%s: note %q, want %q", c.command, o.Note, c.note)
		}
	}
}

// TestQuarantineAfterDeath: what a command left whose program died is found when
// the task continues.
func TestQuarantineAfterDeath(t *testing.T) {
	b := gitBox(t, SandboxOptions{})
	if _, err := b.git.Begin(); err != nil { // a command begins, and never ends
		t.Fatal(err)
	}
	b.plain(t, `mkdir .git/rebase-merge; echo 'exec x' > .git/rebase-merge/git-rebase-todo`) // which stays while it runs
	again, err := NewSandbox(t.Context(), b.o)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(again.Earlier(), ".git/rebase-merge/git-rebase-todo") {
		t.Errorf("Earlier = %q", again.Earlier())
	}
	kept, _ := filepath.Glob(b.o.Quarantine + "/*/.git/rebase-merge/git-rebase-todo")
	if len(kept) != 1 {
		t.Errorf("kept: %v", kept)
	}
}

// TestQuarantineInPlace: what cannot be taken out of the world is disarmed where
// it is, and what was there before is not lost.
func TestQuarantineInPlace(t *testing.T) {
	for _, row := range []attack{
		{"too long a path", `d=$(printf "%0200d" 0); while [ $(pwd | wc -c) -lt 3800 ]; do mkdir $d; cd $d; done; d=$(printf "%0$((4040 - $(pwd | wc -c)))d" 0); mkdir $d; cd $d; git init -q n; printf '#!/bin/sh\n' > n/.git/hooks/pre-commit; git -C n config core.fsmonitor x`},
		{"the name of the new file", `git init -q n; mkdir n/.git/config.anamnesis; touch n/.git/config.anamnesis/x; git -C n config core.fsmonitor x; mkdir -p n/.git/hooks; echo x > n/.git/hooks/pre-commit`},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := gitBox(t, SandboxOptions{})
			out, o := b.run(t, row.command)
			if !strings.Contains(o.Note, "pre-commit") || !strings.Contains(o.Note, "/config") ||
				strings.Contains(o.Note, "could not be taken") {
				t.Errorf("the report: %q\n%s", o.Note, out)
			}
			left := b.plain(t,
				`find . -name pre-commit -type f -not -path './sub/*'; find . -name config -type f -not -path '*/config.anamnesis/*' -execdir grep -l fsmonitor {} \;`)
			if left != "" {
				t.Errorf("stays: %.300q", left)
			}
			configs := strings.Count(b.plain(t, `find . -name config -type f -path '*/.git/*' -printf 'x\n'`), "x")
			if configs != 3 {
				t.Errorf("%d configurations; want 3", configs)
			}
		})
	}
}

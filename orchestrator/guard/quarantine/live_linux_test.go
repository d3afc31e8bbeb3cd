package quarantine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// place is a world that the test writes as a command would, and uses as its user does.
type place struct {
	world, home, state string
	q                  *Quarantine
}

func newPlace(t *testing.T, before string) *place {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{world: base + "/w", home: base + "/home", state: base + "/state"}
	for _, dir := range []string{p.world, p.home, p.state + "/q"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.sh(t, `git init -q -b main . && git commit -q --allow-empty -m x && rm -rf .git/hooks`+"\n"+before)
	p.open(t)
	return p
}

func (p *place) open(t *testing.T) {
	t.Helper()
	var err error
	for _, name := range []string{"XDG_CONFIG_HOME", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", p.home)
	p.q, err = Open(Options{Dir: p.state + "/q", World: p.world, Skip: []string{p.state}, Runs: p.state + "/runs"})
	if err != nil {
		t.Fatal(err)
	}
}

func (p *place) sh(t *testing.T, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -e\n"+text)
	cmd.Dir = p.world
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "STATE=" + p.state, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_EDITOR=true"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", text, err, out)
	}
	return string(out)
}

// begin starts a command and returns what it must not write.
func (p *place) begin(t *testing.T) string {
	t.Helper()
	closed, err := p.q.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.q.running > 0 {
			p.q.End()
		}
	})
	return strings.Join(closed, "\n") + "\n"
}

// TestLive: what git would run is taken out while the command that wrote it still runs.
func TestLive(t *testing.T) {
	for _, row := range []struct{ name, before, command, gone string }{
		{"commondir", "", `mkdir -p e/objects e/refs; printf '[core]\n fsmonitor = x\n' > e/config; echo ../e > .git/commondir`, `test ! -e .git/commondir`},
		{"commondir of a repository that is incomplete", "", `git init -q n; echo ../../absent > n/.git/commondir`, `test ! -e n/.git/commondir`},
		{"hooks that were absent", "", `mkdir .git/hooks; echo x > .git/hooks/pre-commit`, `test ! -e .git/hooks/pre-commit`},
		{"hooks as a link", "", `mkdir h; echo x > h/pre-commit; ln -s ../h .git/hooks`, `test ! -e .git/hooks`},
		{"hooks that come by a rename", "", `mkdir h; echo x > h/pre-commit; mv h .git/hooks`, `test ! -e .git/hooks/pre-commit`},
		{"the configuration of a work tree", "", `printf '[core]\n fsmonitor = x\n' > .git/config.worktree`, `! grep -q fsmonitor .git/config.worktree`},
		{"a configuration that grows", "", `git init -q n; until test -e n/.git/config; do :; done; printf '[core]\n' >> n/.git/config; printf ' fsmonitor = x\n' >> n/.git/config`, `! grep -q fsmonitor n/.git/config`},
		{"a new repository", "", `git init -q n; git -C n config alias.x '!x'`, `! grep -q alias.x n/.git/config`},
		{"a deep one", "", `mkdir -p a/b/c/d/e/f/g/h/i/j; git init -q a/b/c/d/e/f/g/h/i/j/n; git -C a/b/c/d/e/f/g/h/i/j/n config core.fsmonitor x`, `! grep -q fsmonitor a/b/c/d/e/f/g/h/i/j/n/.git/config`},
		{"many directories at once", "", `for i in $(seq 300); do mkdir -p d$i/.git; printf '[core]\n fsmonitor = x\n' > d$i/.git/config; done`, `! grep -rq fsmonitor d*/.git/config`},
		{"one that was prepared elsewhere", "", `git init -q $STATE/p; git -C $STATE/p config core.fsmonitor x; mv $STATE/p n`, `! grep -q fsmonitor n/.git/config`},
		{"a directory that was moved", "mkdir -p d/e", `mv d d2; git init -q d2/e/n; git -C d2/e/n config core.fsmonitor x`, `! grep -q fsmonitor d2/e/n/.git/config`},
		{"a bare one, step by step", "", `mkdir b; printf '[core]\n fsmonitor = x\n bare = false\n worktree = ..\n' > b/config; mkdir b/refs; mkdir b/objects; echo 'ref: refs/heads/main' > b/HEAD`, `! grep -q fsmonitor b/config`},
		{"a module", "", `git init -q --bare .git/modules/m; git -C .git/modules/m config core.fsmonitor x`, `! grep -q fsmonitor .git/modules/m/config`},
		{"the common directory of a linked work tree", "", `git worktree add -q w2; echo /e > .git/worktrees/w2/commondir`, `! grep -qx /e .git/worktrees/w2/commondir`},
		{"a .git file that leads out", "", `git init -q $STATE/e; git -C $STATE/e config core.fsmonitor x; mkdir n; echo "gitdir: $STATE/e/.git" > n/.git`, `test ! -e n/.git`},
		{"a .git link that leads out", "", `git init -q $STATE/e; mkdir n; ln -s $STATE/e/.git n/.git`, `test ! -L n/.git`},
		{"a link to a repository outside", "", `git init -q $STATE/e; ln -s $STATE/e n`, `test ! -L n`},
		{"other letters", "", `mkdir -p n/.GIT; printf '[core]\n fsmonitor = x\n' > n/.GIT/config`, `! grep -q fsmonitor n/.GIT/config`},
		{"an address of old form", "", `mkdir .git/remotes; echo 'URL: ext::x' > .git/remotes/origin`, `test ! -e .git/remotes/origin`},
		{"Mercurial", "", `mkdir -p n/.hg; printf '[hooks]\nupdate = x\n' > n/.hg/hgrc`, `test ! -e n/.hg/hgrc`},
		{"Mercurial's shared one", "", `mkdir -p n/.hg; echo $STATE/.hg > n/.hg/sharedpath`, `test ! -e n/.hg/sharedpath`},
		{"Mercurial's own", "", `mkdir -p n/.hg; echo x > n/.hg/hgrc-not-shared`, `test ! -e n/.hg/hgrc-not-shared`},
		{"Jujutsu", "", `mkdir -p n/.jj/repo; echo x > n/.jj/repo/config.toml`, `test ! -e n/.jj/repo/config.toml`},
		{"Jujutsu's workspace", "", `mkdir -p n/.jj; echo x > n/.jj/workspace-config.toml`, `test ! -e n/.jj/workspace-config.toml`},
		{"Jujutsu's repository elsewhere", "", `mkdir -p $STATE/r n/.jj; echo $STATE/r > n/.jj/repo`, `test ! -e n/.jj/repo`},
		{"an included file that was absent", `git config include.path ../.gitconfig`, `printf '[core]\n fsmonitor = x\n' > .gitconfig`, `! grep -q fsmonitor .gitconfig`},
		{"one in a directory that was absent", `git config includeIf.onbranch:no.path ../a/b/c`, `mkdir -p a/b; printf '[core]\n fsmonitor = x\n' > a/b/c`, `! grep -q fsmonitor a/b/c`},
		{"one that an included file includes", `git config include.path ../one; printf '[include] path = "tw"o ; x\n' > one`, `printf '[core]\n fsmonitor = x\n' > two`, `! grep -q fsmonitor two`},
		{"one of the user's own configuration", `git config --global include.path "$PWD/shared"`, `printf '[core]\n fsmonitor = x\n' > shared`, `! grep -q fsmonitor shared`},
		{"that of a tool", `git config include.path branchless/config`, `mkdir .git/branchless; printf '[alias]\n x = !x\n' > .git/branchless/config`, `! grep -q '!x' .git/branchless/config`},
		{"hooks in the work tree", `git config core.hooksPath .husky/_`, `mkdir -p .husky/_; echo x > .husky/_/pre-commit`, `test ! -e .husky/_/pre-commit`},
		{"a filter in the work tree", `git config filter.f.clean './tools/clean.sh %f'`, `mkdir tools; echo x > tools/clean.sh`, `test ! -e tools/clean.sh`},
		{"a monitor that changes", `mkdir tools; echo old > tools/m; chmod 755 tools/m; git config core.fsmonitor tools/m`, `echo new > tools/m`, `grep -qx old tools/m && test -x tools/m`},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlace(t, row.before)
			p.begin(t)
			p.sh(t, row.command)
			p.sh(t, `until `+row.gone+` 2> /dev/null; do sleep 0.01; done`)
			if note := p.q.End(); !strings.Contains(note, "quarantine: ") {
				t.Errorf("the report: %q", note)
			}
		})
	}
}

// TestLiveMapped: what is written through a memory map is reported by no event.
func TestLiveMapped(t *testing.T) {
	p := newPlace(t, "")
	p.begin(t)
	p.sh(t, `mkdir -p n/.git; printf '[user]\n\tname = aaaaaaaaaaaaaaaaaaaaa\n' > n/.git/config`)
	fd, err := unix.Open(p.world+"/n/.git/config", unix.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := "[core]\n\tfsmonitor = x\n#"
	mapped, err := unix.Mmap(fd, 0, len(text), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped)
	unix.Close(fd)
	copy(mapped, text)
	p.sh(t, `while grep -q fsmonitor n/.git/config; do sleep 0.01; done`)
}

// TestLiveKeepsWork: what is unfinished for a moment is not taken from those who work.
func TestLiveKeepsWork(t *testing.T) {
	p := newPlace(t,
		`git init -q --bare ../r; git remote add origin ../r; for i in 1 2 3; do git commit -q --allow-empty -m $i; done`)
	for range 5 {
		p.begin(t)
		p.sh(t, `for i in 1 2 3; do git worktree add -q w$i; git -C w$i commit -q --allow-empty -m w; git -C w$i status > /dev/null; done
			git init -q n; git -C n config user.name a; git -C n commit -q --allow-empty -m n; git clone -q n c 2> /dev/null; git -C c status > /dev/null
			git -c protocol.file.allow=always -C c submodule --quiet add ../n s; git -C c commit -qm s; git init -q --bare b; git -C n push -q ../b main:x 2> /dev/null || git -C n push -q ../b HEAD:x
			git -C n commit -q --allow-empty -m m; git -C n rebase -q --exec 'true' HEAD~1
			test "$(git config core.symlinks)" != false; for i in 1 2 3; do git worktree remove --force w$i; git branch -qD w$i; done; rm -rf n c b`)
		if note := p.q.End(); note != "" {
			t.Fatalf("the report: %s", note)
		}
	}
}

// TestClosed: what git reads or runs by the user's configuration is read-only for commands.
func TestClosed(t *testing.T) {
	p := newPlace(t, `touch .gitconfig one two three hook.sh data; mkdir -p .husky/_ sub inner .hg .jj/repo/store; ln -s sub/real linked; touch sub/real; cp hook.sh .hg/hgrc; cp hook.sh .jj/repo/config.toml
		git config include.path ../.gitconfig; printf '[include]path=one\n[includeIf "gitdir:/x \\"y"] # z\n path = two\n' > .gitconfig; printf '[Include]\n\tPATH = "th"ree\n' > two
		git config --global core.hooksPath .husky/_; git config --global core.attributesFile "$PWD/data"; git config core.sshCommand "ssh -F x"; git config diff.x.textconv 'sh hook.sh'
		git config include.path linked --add; git config include.path absent --add; git config alias.y '!sh sub/real2'; touch sub/real2; git init -q inner`)
	closed := p.begin(t)
	for _, rel := range []string{".git/config", ".gitconfig", "one", "two", "three", "hook.sh", ".husky/_", "inner/.husky/_", ".git/absent", ".hg/hgrc", ".jj/repo/config.toml", "inner/.git/config"} {
		if !strings.Contains(closed, filepath.Join(p.world, rel)+"\n") {
			t.Errorf("%s is not closed", rel)
		}
	}
	for _, rel := range []string{"data", "sub/real2", ".husky"} {
		if strings.Contains(closed, filepath.Join(p.world, rel)+"\n") {
			t.Errorf("%s is closed", rel)
		}
	}
}

// TestRecover: what a command left whose program died is examined by whoever opens the
// directory, one around it or one in it.
func TestRecover(t *testing.T) {
	const plant = `mkdir .git/rebase-merge; echo 'exec x' > .git/rebase-merge/git-rebase-todo`
	for _, row := range []struct{ name, opened string }{{"the directory", "."}, {"one above", ".."}, {"one below", "./d"}} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlace(t, "mkdir d")
			p.begin(t)
			p.sh(t, plant)
			if got := Unexamined(p.state + "/runs"); len(got) != 0 {
				t.Errorf("while it runs: %v", got)
			}
			died(p.q)
			if got := Unexamined(p.state + "/runs"); len(got) != 1 || got[0].World != p.world {
				t.Errorf("unexamined: %v", got)
			}
			if note := Recover(p.state+"/runs", p.state, p.home); note != "" {
				t.Errorf("of another directory: %s", note)
			}
			if note := Recover(p.state+"/runs", p.state, filepath.Join(p.world, row.opened)); !strings.Contains(note, "quarantine: .git/rebase-merge/git-rebase-todo") {
				t.Errorf("the report: %q", note)
			}
			p.sh(t, `test ! -e .git/rebase-merge/git-rebase-todo`)
			if got := Unexamined(p.state + "/runs"); len(got) != 0 {
				t.Errorf("afterwards: %v", got)
			}
			p.open(t)
			if p.begin(t); !strings.Contains(p.q.End(), "quarantine: ") {
				t.Error("the task does not learn of it")
			}
		})
	}
	t.Run("another directory of the same name", func(t *testing.T) {
		p := newPlace(t, "")
		p.begin(t)
		died(p.q)
		p.sh(t, `mv "$PWD" ../old; mkdir ../w; cd ../w; git init -q .; git config alias.x y`)
		if note := Recover(p.state+"/runs", p.state, p.world); note != "" {
			t.Errorf("the report: %s", note)
		}
		p.sh(t, `git config alias.x`)
	})
	t.Run("a directory that was moved", func(t *testing.T) {
		p := newPlace(t, "")
		p.begin(t)
		p.sh(t, plant)
		died(p.q)
		p.sh(t, `mv "$PWD" ../moved`)
		if note := Recover(p.state+"/runs", p.state, filepath.Dir(p.world)+"/moved"); !strings.Contains(note, "quarantine: .git/rebase-merge/git-rebase-todo") {
			t.Errorf("the report: %q", note)
		}
	})
	t.Run("a copied home", func(t *testing.T) {
		p := newPlace(t, "")
		p.begin(t)
		p.sh(t, plant+`; cp -r $STATE $STATE.copy`)
		if note := Recover(p.state+".copy/runs", p.state+".copy", p.world); note != "" {
			t.Errorf("the report: %s", note)
		}
		p.sh(t, `test -e .git/rebase-merge/git-rebase-todo`)
	})
}

// died lets a Quarantine end as its process would.
func died(q *Quarantine) {
	q.mu.Lock()
	w := q.watcher
	q.running, q.watcher = 0, nil
	q.run.Close()
	q.mu.Unlock()
	if w != nil {
		w.end()
	}
	runtime.KeepAlive(q)
}

// BenchmarkWindow measures how long a file stays that is taken out: alone, and while a command
// makes as many other files as it can.
func BenchmarkWindow(b *testing.B) {
	for _, row := range []struct{ name, noise string }{
		{"alone", ""},
		{"busy", `while :; do mkdir -p n/a/b; echo x > n/a/b/c; rm -rf n; done`},
		{"flooded with repositories", `while :; do mkdir -p n/.git/hooks; echo x > n/.git/config; echo x > n/.git/hooks/x; rm -rf n; done`},
	} {
		b.Run(row.name, func(b *testing.B) {
			world := b.TempDir()
			run := func(text string) *exec.Cmd {
				cmd := exec.Command("sh", "-c", text)
				cmd.Dir = world
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + world}
				return cmd
			}
			if err := run(`git init -q . && for i in $(seq 1000); do echo d$i/a/b; done | xargs mkdir -p`).Run(); err != nil {
				b.Fatal(err)
			}
			q, err := Open(Options{Dir: b.TempDir(), World: world})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := q.Begin(); err != nil {
				b.Fatal(err)
			}
			defer q.End()
			if row.noise != "" {
				noise := run(row.noise)
				if err := noise.Start(); err != nil {
					b.Fatal(err)
				}
				defer noise.Wait()
				defer noise.Process.Kill()
			}
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if err := os.WriteFile(world+"/.git/commondir", []byte("../d1\n"), 0o600); err != nil {
					b.Fatal(err)
				}
				for exists(world + "/.git/commondir") {
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			for _, at := range []float64{0.5, 0.99, 1} {
				b.ReportMetric(float64(took[int(at*float64(len(took)-1))].Microseconds())/1000,
					fmt.Sprintf("ms/p%.0f", at*100))
			}
		})
	}
}

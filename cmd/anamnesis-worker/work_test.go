//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// due lets the scheduled jobs begin now.
func (f *fleet) due() {
	f.t.Helper()
	_, err := f.db.Exec(context.Background(),
		"UPDATE river_job SET state = 'available', scheduled_at = now() WHERE state IN ('scheduled', 'retryable')")
	if err != nil {
		f.t.Fatal(err)
	}
}

// fault returns what a task's job says last.
func (f *fleet) fault(name string) (state, text string) {
	f.t.Helper()
	err := f.db.QueryRow(context.Background(),
		"SELECT state::text, coalesce(errors[array_upper(errors, 1)]->>'error', '') FROM river_job WHERE args->>'task' = $1",
		name).Scan(&state, &text)
	if err != nil {
		f.t.Fatal(err)
	}
	return state, text
}

// TestWaits: a task that asks leaves its slot to the next, and goes on with the answer that a user left in the bucket.
func TestWaits(t *testing.T) {
	f := newFleet(t, `
turns:
  - choose:
      - when: {on: any, contains: red or blue}
        calls: [{name: AskUser, arguments: {question: "Which colour?"}}]
      - reply: Done.
  - expect: [{on: any, contains: Green}]
    reply: Green it is.
`)
	f.submit("asks", "Paint it red or blue.")
	f.submit("next", "Go.", "--priority", "2")
	w := f.start()
	f.until("the next task ended", func() bool { return f.count("completed") == 1 && f.count("scheduled") == 1 })
	f.output(program, "answer", "--remote", f.bucket, "asks", "Green")
	f.due()
	f.until("the answered task ended", func() bool { return f.count("completed") == 2 })
	if _, err := os.Stat(filepath.Join(f.base, w.machine, "work", "asks")); err == nil {
		t.Error("the directory of a task that is done was left over")
	}
	w.drain()
}

// TestQuota: a task whose provider names a time leaves its slot until then, and is released in the bucket.
func TestQuota(t *testing.T) {
	f := newFleet(t, `
turns:
  - reply: Done.
    fault: {status: 429, retry_after: 1h}
`)
	f.submit("quota", "Go.")
	w := f.start()
	f.until("the task waits", func() bool { return f.count("scheduled") == 1 })
	var at time.Time
	if err := f.db.QueryRow(t.Context(), "SELECT scheduled_at FROM river_job").Scan(&at); err != nil {
		t.Fatal(err)
	}
	if wait := time.Until(at); wait < 50*time.Minute || wait > 61*time.Minute {
		t.Errorf("it waits for %v, want an hour", wait)
	}
	w.drain()
}

// TestDone: the job of a task that a user has brought to its end elsewhere ends, too.
func TestDone(t *testing.T) {
	f := newFleet(t, "turns:\n  - reply: Done.\n")
	f.submit("done", "Go.")
	f.output(program, "run", "--remote", f.bucket, "--task", "done", "--dir", f.repo, "Go.")
	w := f.start()
	f.until("the job ended", func() bool { return f.count("completed") == 1 })
	w.drain()
	if n := f.ends("done"); n != 1 {
		t.Errorf("the task ended %d times", n)
	}
}

// TestSync: a worker exchanges cards before a task and after it, and a remote that is away is one line each time: the
// job goes on.
func TestSync(t *testing.T) {
	f := newFleet(t, "turns:\n  - reply: Done.\n")
	cards := f.base + "/cards.git"
	f.write("card.md",
		"---\ntype: knowledge_card\ntopic: the gate\nsource_task: t\nid: g1\n---\n- **Issue**: it is shut\n")
	f.output("git", "init", "-q", "--bare", "-b", "main", cards)
	f.output(program, "kb", "add", f.base+"/card.md")
	f.output(program, "kb", "sync", cards)
	for _, tt := range []struct {
		task, remote, taken string
		said                int
	}{{"synced", cards, "g1 ", 0}, {"alone", "/nosuch", "", 2}} {
		base := fmt.Sprintf("%s/machine%d/home/knowledge_base", f.base, f.started+1)
		f.output("git", "init", "-q", "-b", "main", base)
		f.output("git", "-C", base, "remote", "add", "origin", tt.remote)
		f.submit(tt.task, "Go.")
		w := f.start()
		f.until("the job ended", func() bool { return f.count("available")+f.count("running") == 0 })
		w.drain()
		if n := f.ends(tt.task); n != 1 {
			t.Errorf("%s: the task ended %d times", tt.task, n)
		}
		if out, _ := f.command(w.machine, program, "kb", "list").Output(); !strings.Contains(string(out), tt.taken) {
			t.Errorf("%s: the cards are %q", tt.task, out)
		}
		if said := strings.Count("\n"+w.log.String(), "\nanamnesis: sync with origin: "); said != tt.said {
			t.Errorf("%s: %d lines about the sync, want %d", tt.task, said, tt.said)
		}
	}
}

// TestHeld: while another process has the task, its job waits in the queue.
func TestHeld(t *testing.T) {
	f := newFleet(t, `
turns:
  - calls: [{name: Bash, arguments: {command: "until [ -e go ]; do sleep 0.1; done"}}]
  - reply: Done.
`)
	f.submit("held", "Go.")
	other := f.command("user", program, "run", "--remote", f.bucket, "--lease", "4s", "--task", "held", "--dir",
		f.repo, "Go.")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	f.until("the other process has the task", func() bool {
		logs, _ := filepath.Glob(f.bucket + "/tasks/held/log/*")
		return len(logs) > 0
	})
	w := f.start()
	f.until("the job waits", func() bool {
		var n int
		_ = f.db.QueryRow(context.Background(),
			"SELECT count(*) FROM river_job WHERE state <> 'running' AND metadata ? 'snoozes'").Scan(&n)
		return n == 1
	})
	f.write("repo/go", "")
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	f.due()
	f.until("the job ended", func() bool { return f.count("completed") == 1 })
	w.drain()
	if n := f.ends("held"); n != 1 {
		t.Errorf("the task ended %d times", n)
	}
}

// TestImpossible: a job that can never succeed is given up with its reason, and one that may is tried again.
func TestImpossible(t *testing.T) {
	f := newFleet(t, "turns:\n  - reply: Done.\n")
	if code, out := f.worker("submit", "--remote", f.bucket, "--repo", f.base+"/absent@main", "--task", "absent", "Go."); code != 0 {
		t.Fatal(code, out)
	}
	if code, out := f.worker("submit", "--remote", f.bucket, "--repo", f.repo+"@nosuch", "--task", "nosuch", "Go."); code != 0 {
		t.Fatal(code, out)
	}
	f.submit("prepare", "Go.", "--prepare", "echo no compiler >&2; false")
	w := f.start()
	for range 3 {
		f.until("the jobs were tried", func() bool { return f.count("available")+f.count("running") == 0 })
		f.due()
	}
	f.until("the jobs were given up", func() bool { return f.count("cancelled") == 2 && f.count("retryable") == 1 })
	w.drain()
	for _, tt := range []struct{ task, state, text string }{
		{"absent", "cancelled", "absent' does not exist"},
		{"nosuch", "cancelled", "couldn't find remote ref nosuch"},
		{"prepare", "retryable", "no compiler"},
	} {
		if state, text := f.fault(tt.task); state != tt.state || !strings.Contains(text, tt.text) {
			t.Errorf("%s is %s: %q", tt.task, state, text)
		}
	}
}

// TestAway: no password of the queue reaches a task's commands.
func TestAway(t *testing.T) {
	f := newFleet(t, "turns:\n  - reply: Done.\n")
	t.Setenv("PGPASSWORD", "hunter2")
	f.submit("secret", "Go.", "--prepare", `test -z "$PGPASSWORD"`)
	w := f.start()
	f.until("the job ended", func() bool { return f.count("completed") == 1 })
	w.drain()
}

// TestRefused: what cannot be used is refused in one line, with the exit code that says why.
func TestRefused(t *testing.T) {
	f := newFleet(t, "turns: []\n")
	for _, sql := range []string{"DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN", "CREATE SCHEMA other"} {
		if _, err := f.db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	submit := []string{"submit", "--remote", f.bucket, "--repo", f.repo + "@main", "Go."}
	work := []string{"work", "--dir", f.base + "/work"}
	guest := postgres.address("testrefused", "guest")
	for _, tt := range []struct {
		name, queue string
		args        []string
		code        int
		text        string
	}{
		{"away", "postgres://127.0.0.1:1/x", submit, 2, "the queue cannot be used"},
		{"away, work", "postgres://127.0.0.1:1/x", work, 2, "the queue cannot be used"},
		{"no address", "nonsense", submit, 2, "the queue cannot be used"},
		{"no database", postgres.address("absent", "owner"), work, 2, `database "absent" does not exist`},
		{"no tables", postgres.address("template1", "owner"), submit, 2, "run 'anamnesis-worker migrate'"},
		{"no tables, work", postgres.address("template1", "owner"), work, 2, "run 'anamnesis-worker migrate'"},
		{"no rights", guest, submit, 3, "grant the rights on River's tables"},
		{"no rights, work", guest, work, 3, "grant the rights on River's tables"},
		{"no user", postgres.address("testrefused", "absent"), work, 3, `role "absent" does not exist`},
		{"no request", f.queue, []string{"submit"}, 2, "accepts 1 arg(s), received 0"},
		{"an empty request", f.queue, append(submit[:5:5], " "), 2, "the request is empty"},
		{"no commit", f.queue, append(submit[:3:3], "--repo", "/srv/app.git", "Go."), 2, "want URL@COMMIT"},
		{"an option for git", f.queue, append(submit[:3:3], "--repo", "--upload-pack=x@main", "Go."), 2, "want URL@COMMIT"},
		{"no bucket", f.queue, append(submit[:1:1], submit[3:]...), 2, "want s3://BUCKET/PREFIX"},
		{"a relative bucket", f.queue, append([]string{"submit", "--remote", "bucket"}, submit[3:]...), 2, "a directory's full path"},
		{"a name", f.queue, append(submit[:5:5], "--task", "../x", "Go."), 2, "want letters"},
		{"a priority", f.queue, append(submit[:5:5], "--priority", "9", "Go."), 2, "priority must be between 1 and 4"},
		{"a time", f.queue, append(submit[:5:5], "--at", "tomorrow", "Go."), 2, "invalid time format"},
		{"slots", f.queue, append(work[:3:3], "--slots", "0"), 2, "invalid number of workers"},
		{"a lease", f.queue, append(work[:3:3], "--lease", "0"), 2, "at least 1s"},
		{"a folder", f.queue, []string{"work", "--dir", "/proc/x"}, 2, "/proc/x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out := f.worker(append([]string{"--queue", tt.queue}, tt.args...)...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if last := lines[len(lines)-1]; code != tt.code || len(lines) != 1 ||
				!strings.HasPrefix(last, "anamnesis-worker: ") || !strings.Contains(last, tt.text) {
				t.Errorf("exit code %d, %q", code, out)
			}
		})
	}
	if n := f.count("available"); n != 0 {
		t.Errorf("%d jobs were added", n)
	}
	f.submit("twice", "Go.")
	if code, out := f.worker("submit", "--remote", f.bucket, "--repo", f.repo+"@main", "--task", "twice", "Go."); code != 0 ||
		!strings.Contains(out, "has task twice already (available); nothing was added") || f.count("available") != 1 {
		t.Errorf("%d %s", code, out)
	}
}

// TestSign: while a worker works on a job, River's rescuer gets signs of it; a job without one is taken from its
// worker, and no other is, however long it runs.
func TestSign(t *testing.T) {
	w := &worker{rescue: time.Minute}
	for age, want := range map[time.Duration]time.Duration{time.Second: -1, time.Hour: time.Nanosecond} {
		at := time.Now().Add(-age)
		if got := w.Timeout(&river.Job[task]{JobRow: &rivertype.JobRow{AttemptedAt: &at}}); got != want {
			t.Errorf("a sign %v ago: %v, want %v", age, got, want)
		}
	}
	f := newFleet(t, `
turns:
  - calls: [{name: Bash, arguments: {command: "until [ -e `+t.TempDir()+`/go ]; do sleep 0.1; done"}}]
  - reply: Done.
`)
	f.submit("long", "Go.")
	f.start("--rescue", "1s")
	attempted := func() (at time.Time) {
		_ = f.db.QueryRow(context.Background(), "SELECT attempted_at FROM river_job WHERE state = 'running'").Scan(&at)
		return at
	}
	f.until("the job runs", func() bool { return !attempted().IsZero() })
	first := attempted()
	f.until("a sign of the worker", func() bool { return attempted().After(first) })
}

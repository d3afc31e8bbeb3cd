//go:build unix

// Command anamnesis-worker distributes tasks to machines. River, a queue in a Postgres database, has a job for each
// task. A worker runs the program anamnesis for the job; the task is stored in a bucket, so any worker can continue it.
// River does the ordering, retries, schedules, leader election and rescue.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/spf13/cobra"
)

var errRefused = errors.New("the queue refuses this user; grant the rights on River's tables")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := &cobra.Command{
		Use: "anamnesis-worker", Short: "Hand tasks out to machines, through a queue in a Postgres database (River)",
		SilenceErrors: true, SilenceUsage: true,
	}
	address := root.PersistentFlags().String("queue", "", "postgres://USER@HOST/DATABASE (default: PGHOST and so on)")
	queue := new(*pgxpool.Pool)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		os.Setenv("PGCONNECT_TIMEOUT", cmp.Or(os.Getenv("PGCONNECT_TIMEOUT"), "10"))
		*queue, err = pgxpool.New(cmd.Context(), *address)
		return queueFault(err)
	}
	root.AddCommand(submitCommand(queue), workCommand(queue), &cobra.Command{
		Use: "migrate", Short: "Make the queue's tables, or bring them up to date", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			migrator, err := rivermigrate.New(riverpgxv5.New(*queue), nil)
			if err == nil {
				_, err = migrator.Migrate(cmd.Context(), rivermigrate.DirectionUp, nil)
			}
			return queueFault(err)
		},
	})
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "anamnesis-worker: %s\n", strings.Join(strings.Fields(err.Error()), " "))
		if errors.Is(err, errRefused) { // the codes are those of docs/reference/files.md
			os.Exit(3)
		}
		os.Exit(2)
	}
}

// queueFault says what to do about an error of the queue.
func queueFault(err error) error {
	fault := new(pgconn.PgError)
	switch errors.As(err, &fault); {
	case err == nil:
		return nil
	case fault.Code == "42501" || strings.HasPrefix(fault.Code, "28"):
		return fmt.Errorf("%w: %w", errRefused, err)
	case strings.HasPrefix(fault.Code, "42"):
		return fmt.Errorf("the queue's tables are missing or old: run 'anamnesis-worker migrate': %w", err)
	}
	return fmt.Errorf("the queue cannot be used: %w", err)
}

// task is a job's arguments.
type task struct {
	Name    string   `json:"task" river:"unique"`
	Request string   `json:"request"`
	Remote  string   `json:"remote"`
	Repo    string   `json:"repo"` // URL@COMMIT
	Prepare string   `json:"prepare,omitempty"`
	Until   []string `json:"until,omitempty"`
}

func (task) Kind() string { return "anamnesis_task" }

var repository = regexp.MustCompile(`^([^-].*)@([A-Za-z0-9][A-Za-z0-9._-]*)$`)
var taskName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

func submitCommand(queue **pgxpool.Pool) *cobra.Command {
	var t task
	o := river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
	cmd := &cobra.Command{
		Use: `submit "REQUEST"`, Short: "Add a task to the queue, and print its name", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Request = strings.TrimSpace(args[0])
			t.Name = cmp.Or(t.Name, "task_"+strings.ToLower(rand.Text()[:10]))
			switch {
			case t.Request == "":
				return errors.New("the request is empty")
			case !strings.Contains(t.Remote, "://") && !filepath.IsAbs(t.Remote):
				return fmt.Errorf("--remote %q: want s3://BUCKET/PREFIX, or a directory's full path", t.Remote)
			case !repository.MatchString(t.Repo):
				return fmt.Errorf("--repo %q: want URL@COMMIT; a branch or a tag without a slash is taken, too", t.Repo)
			case !taskName.MatchString(t.Name):
				return fmt.Errorf("--task %q: want letters, digits, '_' and '-', at most 64", t.Name)
			}
			client, err := river.NewClient(riverpgxv5.New(*queue), &river.Config{})
			if err != nil {
				return err
			}
			added, err := client.Insert(cmd.Context(), t, &o)
			if err != nil {
				return queueFault(err)
			}
			// A client that submits again after a lost answer must not start the task twice.
			if added.UniqueSkippedAsDuplicate {
				cmd.PrintErrf("anamnesis-worker: the queue has task %s already (%s); nothing was added\n",
					t.Name, added.Job.State)
			}
			fmt.Println(t.Name)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&t.Remote, "remote", os.Getenv("ANAMNESIS_REMOTE"), "bucket that keeps the task")
	fl.StringVar(&t.Repo, "repo", "", "git repository and commit that the task begins with: URL@COMMIT")
	fl.StringVar(&t.Prepare, "prepare", "", "command that makes a checkout ready, such as 'npm ci'")
	fl.StringArrayVar(&t.Until, "until", nil, "as for 'anamnesis run' (repeatable)")
	fl.IntVar(&o.Priority, "priority", 1, "1 (first) to 4")
	fl.TimeVar(&o.ScheduledAt, "at", time.Time{}, []string{time.RFC3339}, "not before, such as 2026-11-29T18:00:00Z")
	fl.StringVar(&t.Name, "task", "", "name of the task, which the queue takes once (default: a random one)")
	return cmd
}

type worker struct {
	river.WorkerDefaults[task]
	dir, remote            string
	lease, recheck, rescue time.Duration
}

func workCommand(queue **pgxpool.Pool) *cobra.Command {
	w, slots := &worker{}, 0
	cmd := &cobra.Command{
		Use: "work", Short: "Work on tasks until SIGTERM, which releases them for other workers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.serve(cmd.Context(), *queue, slots) },
	}
	fl := cmd.Flags()
	fl.StringVar(&w.remote, "remote", "", "bucket that keeps the tasks (default: the one that submit named)")
	fl.IntVar(&slots, "slots", 1, "how many tasks this process works on at once")
	fl.StringVar(&w.dir, "dir", "/workspace", "folder of the tasks' directories, best the same on all machines")
	fl.DurationVar(&w.lease, "lease", 2*time.Minute, "as for 'anamnesis run'")
	fl.DurationVar(&w.recheck, "recheck", 10*time.Minute, "when to see whether a task that asks was answered")
	fl.DurationVar(&w.rescue, "rescue", 5*time.Minute, "when to give the task of a silent worker to another one")
	return cmd
}

// serve works until ctx ends.
func (w *worker) serve(ctx context.Context, queue *pgxpool.Pool, slots int) error {
	if min(w.lease, w.recheck, w.rescue) < time.Second {
		return errors.New("--lease, --recheck and --rescue have to be at least 1s")
	}
	self, _ := os.Executable()
	os.Setenv("PATH", filepath.Dir(self)+":"+os.Getenv("PATH"))
	_, err := exec.LookPath("anamnesis")
	if err = cmp.Or(err, os.MkdirAll(w.dir, 0o755)); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	client, err := river.NewClient(riverpgxv5.New(queue), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: slots}}, Workers: workers,
		JobTimeout: -1, RescueStuckJobsAfter: w.rescue,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	for tick := time.NewTicker(w.rescue / 4); ; {
		// River's rescuer goes by the time when an attempt began, but a task may take days: so this worker renews that
		// time, also after ctx has ended, until its jobs are released. A quarter of the rescue time lets three updates
		// fail. Later errors are ignored: while the database is away, no worker rescues.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		_, err := queue.Exec(limited, `UPDATE river_job SET attempted_at = now()
			WHERE state = 'running' AND attempted_by[array_upper(attempted_by, 1)] = $1`, client.ID())
		cancel()
		if client.Stopped() == nil { // not started: the update showed whether this user has the rights
			if err == nil {
				err = client.Start(ctx)
			}
			if err != nil {
				return queueFault(err)
			}
		}
		select {
		case <-client.Stopped():
			return nil
		case <-tick.C:
		}
	}
}

// Timeout returns -1, no time limit, while the job's worker gives signs of life. Without one for the rescue time it
// returns a limit that has passed, which lets the rescuer take the job.
func (w *worker) Timeout(job *river.Job[task]) time.Duration {
	if time.Since(*job.AttemptedAt) < w.rescue {
		return -1
	}
	return time.Nanosecond
}

const (
	// checkout makes a task's directory, once on each machine. It writes the file prepared last, so that a checkout
	// that was cut off is made again. Exit code 66 says that the commit cannot be fetched.
	checkout = `test -e "$1/.git/prepared" && exit
rm -rf "$1" && git clone --quiet --no-checkout -- "$2" "$1" && cd "$1" && git fetch --quiet origin "$3" &&
	git checkout --quiet --detach FETCH_HEAD || exit 66
eval "$4" && touch .git/prepared`
	// exchange syncs the knowledge cards; exit code 2 says that they have no remote. A failed sync is only reported,
	// since the next task repeats it.
	exchange = `said=$(anamnesis kb sync 2>&1) || test $? -eq 2 || echo "$said" | tail -n 1 >&2`
	// patience is the longest announced wait for a provider for which a task keeps its slot.
	patience = 2 * time.Minute
	maxTries = 3 // attempts to clone before the job is given up
)

// Work works on a task until it ends, waits, or the worker is asked to stop.
func (w *worker) Work(ctx context.Context, job *river.Job[task]) (err error) {
	t, remote, dir := job.Args, cmp.Or(w.remote, job.Args.Remote), filepath.Join(w.dir, job.Args.Name)
	defer func() {
		if ctx.Err() != nil {
			err = river.JobSnooze(0) // another worker continues at once
		} else if err == nil || errors.As(err, new(*river.JobCancelError)) {
			os.RemoveAll(dir) // a job that waits or is tried again keeps its checkout on this machine
		}
		slog.Info("this worker leaves a task", "task", t.Name, "error", err)
	}()
	code, err := run(ctx, io.Discard, io.Discard, "anamnesis", "remote", "pull", "--remote", remote, t.Name)
	// Only a task that the bucket does not have may begin: after any other fault the task may exist.
	if code != 0 && (code != 2 || !strings.Contains(err.Error(), "no task of this name")) {
		return err
	}
	begun, from := code == 0, repository.FindStringSubmatch(t.Repo)
	code, err = run(ctx, os.Stderr, os.Stderr, "sh", "-c", checkout, t.Repo, dir, from[1], from[2], t.Prepare)
	// A task that has begun has work in the bucket: it is tried again for as long as the queue repeats a job.
	if err = fmt.Errorf("clone and prepare %s: %w", t.Repo, err); code == 66 && !begun && job.Attempt >= maxTries {
		return river.JobCancel(err)
	} else if code != 0 {
		return err
	}
	args, rest := []string{"run", "--task", t.Name}, []string{"--", t.Request}
	if begun {
		args, rest = []string{"resume"}, []string{t.Name}
	}
	for _, command := range t.Until {
		args = append(args, "--until", command)
	}
	args = append(args, "--remote", remote, "--lease", w.lease.String(), "--dir", dir, "--when-asked", "stop",
		"--output-format", "stream-json")
	run(ctx, os.Stderr, os.Stderr, "sh", "-c", exchange)
	defer run(ctx, os.Stderr, os.Stderr, "sh", "-c", exchange)
	return w.turn(ctx, t.Name, append(args, rest...))
}

// turn runs the program until the task's turn ends or the task waits, and returns what River does with the job.
func (w *worker) turn(ctx context.Context, name string, args []string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// The program waits one lease for a process that died, and on while another process extends the task. After two
	// leases the job goes back to the queue, so that the wait holds no slot.
	taken := time.AfterFunc(2*w.lease, func() { stop(river.JobSnooze(w.lease)) })
	events, out := io.Pipe()
	go func() {
		for in := json.NewDecoder(events); ; {
			var e struct {
				Type, Kind string
				Body       struct{ Wait struct{ Until time.Time } }
			}
			if err := in.Decode(&e); err != nil {
				events.CloseWithError(err)
				return
			} else if e.Type == "start" {
				taken.Stop()
			} else if wait := time.Until(e.Body.Wait.Until); e.Kind == "model.failed" && wait > patience {
				stop(river.JobSnooze(wait))
			}
		}
	}()
	code, err := run(ctx, out, os.Stderr, "anamnesis", args...)
	out.Close()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case code == 3: // another process has the task
		return river.JobSnooze(w.lease)
	case code == 6: // the task asks, or is stuck
		return river.JobSnooze(w.recheck)
	case code == 5 || code == 130: // a limit, or a user stopped it
		return river.JobCancel(err)
	}
	return err
}

// run runs a command, which gets SIGTERM when ctx ends, and returns its exit code, and an error with what it said last.
func run(ctx context.Context, out, log io.Writer, name string, args ...string) (int, error) {
	var said tail
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}                  // Ctrl-C is for this process
	cmd.Env = append(os.Environ(), "PGPASSWORD=", "GIT_TERMINAL_PROMPT=0") // no command of a task sees the queue
	cmd.WaitDelay = 2 * time.Minute                                        // then it is killed, with what it left
	cmd.Stdout, cmd.Stderr = out, io.MultiWriter(log, &said)
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(said)))
	}
	return cmd.ProcessState.ExitCode(), err
}

// tail keeps the end of what is written to it.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append((*t)[max(0, len(*t)-1000):], p...)
	return len(p), nil
}

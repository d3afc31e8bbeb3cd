//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// mainVariable makes the test binary the worker.
const mainVariable = "ANAMNESIS_TEST_WORKER"

// program is the path of anamnesis, and postgres the database server that all tests share.
var (
	program  string
	postgres *server
)

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	base, err := os.MkdirTemp("", "worker")
	if err == nil {
		err = os.Chmod(base, 0o755) // the server runs as another user
	}
	if err == nil {
		program = os.Getenv("ANAMNESIS_BIN")
		if program == "" {
			program = filepath.Join(base, "anamnesis")
			var out []byte
			if out, err = exec.Command("go", "build", "-C", "../..", "-o", program, "./cmd/anamnesis").CombinedOutput(); err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
		}
	}
	if err == nil {
		postgres, err = newServer(filepath.Join(base, "pg"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(base)
	if postgres != nil {
		defer postgres.control("stop", "-m", "immediate")
	}
	return m.Run()
}

// server is a Postgres of the system, with a cluster of its own on a socket.
type server struct {
	bin, dir   string
	credential *syscall.Credential
}

// newServer starts a server; nil where there is none to start.
func newServer(dir string) (*server, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return nil, nil
	}
	s := &server{bin: filepath.Dir(found[0]), dir: dir}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 { // as which it refuses to run
		who, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		s.credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	if err := s.run("initdb", "-U", "owner", "-A", "trust", "--no-sync", "-D", dir+"/data"); err != nil {
		return nil, err
	}
	return s, s.control("start", "-l", dir+"/log", "-o", "-c listen_addresses='' -c fsync=off -k "+dir)
}

func (s *server) control(args ...string) error {
	return s.run("pg_ctl", append([]string{"-w", "-D", s.dir + "/data"}, args...)...)
}

func (s *server) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, &syscall.SysProcAttr{Credential: s.credential}
	log, err := os.CreateTemp("", name) // a pipe would stay open as long as the server runs
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s %v: %w: %s", name, args, err, said)
	}
	return nil
}

// address returns the address of a database for a user.
func (s *server) address(database, user string) string {
	return fmt.Sprintf("postgres:///%s?host=%s&user=%s", database, s.dir, user)
}

// fleet is a queue, a bucket and a repository, each of a test's own.
type fleet struct {
	t                         *testing.T
	db                        *pgxpool.Pool
	queue, base, bucket, repo string
	started                   int
}

var databases sync.Map // names that are in use

// newFleet makes a fleet whose tasks are worked on by a script model, and whose tables exist.
func newFleet(t *testing.T, model string) *fleet {
	t.Helper()
	if postgres == nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatal("no Postgres is installed")
		}
		t.Skip("no Postgres is installed: apt-get install postgresql")
	}
	name := strings.ToLower(t.Name())
	if _, taken := databases.LoadOrStore(name, true); taken {
		t.Fatalf("a second database %s", name)
	}
	base := t.TempDir()
	f := &fleet{t: t, base: base, queue: postgres.address(name, "owner"), bucket: base + "/bucket",
		repo: base + "/repo"}
	if err := postgres.run("createdb", "-h", postgres.dir, "-U", "owner", name); err != nil {
		t.Fatal(err)
	}
	f.write("model.yaml", model)
	f.write("repo/README", "read me\n")
	f.write("bucket/.keep", "")
	f.output("git", "-C", f.repo, "init", "-q", "-b", "main")
	f.output("git", "-C", f.repo, "add", ".")
	f.output("git", "-C", f.repo, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "one")
	if code, out := f.worker("migrate"); code != 0 {
		t.Fatalf("migrate: %d %s", code, out)
	}
	pool, err := pgxpool.New(t.Context(), f.queue)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f.db = pool
	return f
}

func (f *fleet) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.base, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// command makes a command on a machine: a home and a folder of directories of its own.
func (f *fleet) command(machine, name string, args ...string) *exec.Cmd {
	home := filepath.Join(f.base, machine, "home")
	if _, err := os.Stat(home); err != nil {
		f.write(machine+"/home/config.yaml", "approval: auto\nsandbox: 'off'\n")
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Join(f.base, machine)
	cmd.Env = append(os.Environ(), "ANAMNESIS_HOME="+home, "HOME="+cmd.Dir,
		"ANAMNESIS_MODEL=script:"+f.base+"/model.yaml",
		"PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	return cmd
}

// output runs a command on the user's machine and returns what it prints.
func (f *fleet) output(name string, args ...string) string {
	f.t.Helper()
	out, err := f.command("user", name, args...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// worker runs the worker on the user's machine until it ends.
func (f *fleet) worker(args ...string) (code int, out string) {
	cmd := f.command("user", os.Args[0], append([]string{"--queue", f.queue}, args...)...)
	cmd.Env = append(cmd.Env, mainVariable+"=1")
	said, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(said)
}

// submit adds a task.
func (f *fleet) submit(name, request string, args ...string) {
	f.t.Helper()
	args = append([]string{"submit", "--remote", f.bucket, "--repo", f.repo + "@main", "--task", name}, args...)
	if code, out := f.worker(append(args, request)...); code != 0 || out != name+"\n" {
		f.t.Fatalf("submit %s: %d %s", name, code, out)
	}
}

// running is a worker that works on a machine of its own.
type running struct {
	f       *fleet
	machine string
	cmd     *exec.Cmd
	log     bytes.Buffer
}

// start starts a worker with short times.
func (f *fleet) start(args ...string) *running {
	f.t.Helper()
	f.started++
	r := &running{f: f, machine: fmt.Sprintf("machine%d", f.started)}
	r.cmd = f.command(r.machine, os.Args[0], append([]string{"work", "--queue", f.queue, "--remote", f.bucket,
		"--dir", filepath.Join(f.base, r.machine, "work"), "--lease", "4s", "--rescue", "8s"}, args...)...)
	r.cmd.Env = append(r.cmd.Env, mainVariable+"=1")
	r.cmd.Stdout, r.cmd.Stderr = &r.log, &r.log
	if err := r.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			r.kill()
		}
		if f.t.Failed() {
			f.t.Logf("%s: %s", r.machine, r.log.String())
		}
	})
	return r
}

// drain ends the worker by SIGTERM.
func (r *running) drain() {
	r.f.t.Helper()
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if err := r.cmd.Wait(); err != nil {
		r.f.t.Errorf("%s after SIGTERM: %v", r.machine, err)
	}
}

// kill ends the machine: the worker and all that it began, without a word.
func (r *running) kill() {
	pids := []int{r.cmd.Process.Pid}
	_ = syscall.Kill(pids[0], syscall.SIGSTOP) // so that it begins no more
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children(pids[i])...)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = r.cmd.Wait()
}

func children(pid int) (pids []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for _, field := range strings.Fields(string(data)) {
			child, _ := strconv.Atoi(field)
			pids = append(pids, child)
		}
	}
	return pids
}

// count returns how many jobs are in a state. While the server is away it is none.
func (f *fleet) count(state string) (n int) {
	_ = f.db.QueryRow(context.Background(), "SELECT count(*) FROM river_job WHERE state::text = $1", state).Scan(&n)
	return n
}

// until waits for a condition.
func (f *fleet) until(what string, met func() bool) {
	f.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(5 * time.Minute); !met(); {
		select {
		case <-tick.C:
		case <-over:
			rows, _ := f.db.Query(context.Background(),
				"SELECT row_to_json(river_job)::text FROM river_job WHERE state <> 'completed'")
			for rows != nil && rows.Next() {
				var row string
				_ = rows.Scan(&row)
				f.t.Log(row)
			}
			f.t.Fatalf("%s did not happen", what)
		}
	}
}

// ends returns how often a task's turns ended as done, by the bucket.
func (f *fleet) ends(name string) (done int) {
	f.t.Helper()
	f.output(program, "remote", "pull", "--remote", f.bucket, name)
	out := f.output(program, "ops", "cat", "--json", "--kind", "turn.ended", "--dir", f.base+"/user/home/tasks/"+name)
	for in := json.NewDecoder(strings.NewReader(out)); in.More(); {
		var o struct{ Body struct{ Reason string } }
		if err := in.Decode(&o); err != nil {
			f.t.Fatal(err)
		}
		if o.Body.Reason == "done" {
			done++
		}
	}
	return done
}

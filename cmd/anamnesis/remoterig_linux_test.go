package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
)

// rigTask is the task of every rig.
const rigTask = "t"

// rigLease is long enough for a loaded machine to send in time, and short enough to wait for.
const rigLease = 3 * time.Second

// rig is a task that machines continue one after another, the bucket that keeps it, and what its commands do outside
// of all directories: each appends a line to one file, with its label and the directory it runs in.
type rig struct {
	testing.TB
	rng     *rand.Rand
	top     string
	effects string // directory of the effects
	remote  string
	server  *url.URL // of the bucket; nil: a directory
	sealed  string   // the key; empty: none
	secret  string   // a value that the task's vault gets
	script  string
	procs   []*process // in the order of their start
	// proxied, if not nil, gets each machine's proxy before its program starts.
	proxied func(*faultProxy)
}

// newRig makes a rig on a bucket of a kind: a directory, or S3 behind a proxy for each machine.
func newRig(t testing.TB, rng *rand.Rand, s3, sealed bool) *rig {
	t.Helper()
	r := &rig{TB: t, rng: rng, top: t.TempDir()}
	r.effects = filepath.Join(r.top, "effects")
	r.remote = filepath.Join(r.top, "bucket")
	if err := errors.Join(os.Mkdir(r.effects, 0o700), os.Mkdir(r.remote, 0o700)); err != nil {
		t.Fatal(err)
	}
	if s3 {
		r.server = s3Server(t)
		r.remote = fmt.Sprintf("s3://team/%s-%d", filepath.Base(filepath.Dir(r.top)), rng.Uint64())
	}
	if sealed {
		r.sealed = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
	}
	const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := []byte("ghp_")
	for range 36 {
		b = append(b, alnum[rng.IntN(len(alnum))])
	}
	r.secret = string(b)
	r.script = filepath.Join(r.top, "words.yaml")
	return r
}

// s3Variable names another S3 server than the one in memory, such as versitygw, with a bucket "team".
const s3Variable = "ANAMNESIS_TEST_S3"

func s3Server(t testing.TB) *url.URL {
	t.Helper()
	address := os.Getenv(s3Variable)
	if address == "" {
		backend := s3mem.New()
		if err := backend.CreateBucket("team"); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(gofakes3.New(backend).Server())
		t.Cleanup(server.Close)
		address = server.URL
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// bucket opens the rig's bucket as the programs see it, without faults.
func (r *rig) bucket() bucket.Bucket {
	r.Helper()
	b, err := r.opened(true)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// opened opens the bucket with its key or without.
func (r *rig) opened(key bool) (bucket.Bucket, error) {
	var k []byte
	if r.sealed != "" && key {
		var err error
		if k, err = bucket.ParseKey(r.sealed); err != nil {
			return nil, err
		}
	}
	return bucket.Open(r.remote, k, func(name string) string {
		if name == "AWS_ENDPOINT_URL" && r.server != nil {
			return r.server.String()
		}
		return map[string]string{"AWS_REGION": "us-east-1"}[name]
	})
}

// logObject is what an object of a log says of itself.
type logObject struct {
	N        uint64
	Holder   string
	Released bool
}

// log returns what the objects of the task's log say of themselves.
func (r *rig) log() (out []logObject) {
	r.Helper()
	b := r.bucket()
	names, err := b.List(r.Context(), "tasks/"+rigTask+"/log/", "")
	if err != nil {
		r.Fatal(err)
	}
	for _, name := range names {
		data, err := b.Get(r.Context(), name)
		if err != nil {
			r.Fatal(err)
		}
		in, a := tar.NewReader(bytes.NewReader(r.unzip(data))), logObject{}
		if _, err := in.Next(); err != nil {
			r.Fatal(err)
		}
		if err := json.NewDecoder(in).Decode(&a); err != nil {
			r.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// unzip returns an object of a log without its compression.
func (r *rig) unzip(data []byte) []byte {
	r.Helper()
	in, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(in)
	}
	if err != nil {
		r.Fatal(err)
	}
	return data
}

// machine is a home and a directory.
type machine struct{ home, dir string }

func (m machine) taskHome() taskdir.Home {
	return taskdir.Home{User: filepath.Join(m.home, "user"), State: m.home}
}

// newMachine makes a home, and a directory that is absent, empty, or a checkout with files of its own.
func (r *rig) newMachine() machine {
	r.Helper()
	top, err := os.MkdirTemp(r.top, "machine")
	m := machine{home: filepath.Join(top, "home"), dir: filepath.Join(top, "work")}
	err = errors.Join(err, os.MkdirAll(filepath.Join(m.home, "user"), 0o700))
	switch r.rng.IntN(3) {
	case 0:
		err = errors.Join(err, os.Mkdir(m.dir, 0o700))
	case 1:
		for name, text := range map[string]string{"README": "of another checkout\n", ".git/HEAD": "ref: refs/heads/main\n", "deps/x.log": "ignored\n", ".gitignore": "*.log\n"} {
			path := filepath.Join(m.dir, name)
			err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
		}
	}
	if err != nil {
		r.Fatal(err)
	}
	return m
}

// output is what a program has printed up to now.
type output struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}

// process is the program on a machine.
type process struct {
	machine
	cmd   *exec.Cmd
	out   output
	proxy *faultProxy // nil: the bucket is a directory
	ended chan struct{}
	err   error
	// holder is its name in the log, or that of an earlier process of its home if it never held the task; known once
	// it has ended.
	holder string
}

// start starts the program: the first time to begin the task, later to continue it.
func (r *rig) start(m machine, faults int, args ...string) *process {
	r.Helper()
	p := &process{machine: m, ended: make(chan struct{})}
	common := []string{
		"--remote", r.remote, "--lease", rigLease.String(), "--dir", m.dir, "--model", "script:" + r.script,
		"--approval", "auto", "--grace", "1s",
	}
	p.cmd = exec.CommandContext(r.Context(), os.Args[0], append(args, common...)...)
	p.cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+m.home,
		"HOME="+filepath.Join(m.home, "user"),
		"AWS_REGION=us-east-1", "ANAMNESIS_REMOTE_KEY="+r.sealed)
	if os.Getenv("AWS_ACCESS_KEY_ID") == "" {
		p.cmd.Env = append(p.cmd.Env, "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret")
	}
	if r.server != nil {
		p.proxy = &faultProxy{to: r.server, rng: rand.New(rand.NewPCG(r.rng.Uint64(), 0)), percent: faults}
		if r.proxied != nil {
			r.proxied(p.proxy)
		}
		server := httptest.NewServer(p.proxy)
		r.Cleanup(server.Close)
		p.cmd.Env = append(p.cmd.Env, "AWS_ENDPOINT_URL="+server.URL)
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = &p.out, &p.out, m.home
	if r.rng.IntN(2) == 0 && namespaces() {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		}
	}
	if err := p.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	r.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	r.procs = append(r.procs, p)
	return p
}

// run starts the task.
func (r *rig) run(m machine, faults int) *process {
	r.Helper()
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		r.Fatal(err)
	}
	return r.start(m, faults, "run", "--task", rigTask, "--no-final-pass", "--writable", r.effects, "Do it.")
}

// namespaces reports whether the program can be started in namespaces of its own.
var namespaces = sync.OnceValue(func() bool {
	return exec.Command("unshare", "--user", "--map-root-user", "--mount", "--uts", "true").Run() == nil
})

// signal sends a signal to the program.
func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// stop stops the program as SIGSTOP does, but not while it holds the lock that all of a user's homes on one system
// share: machines share none.
func (p *process) stop() {
	for {
		p.signal(syscall.SIGSTOP)
		for {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
			if _, state, ok := bytes.Cut(stat, []byte(") ")); err != nil || ok && bytes.ContainsAny(state[:1], "TZ") {
				break
			}
		}
		gate, err := os.Open(fmt.Sprintf("/tmp/anamnesis-%d/gate", os.Getuid()))
		if err != nil {
			return // no task has run yet
		}
		err = syscall.Flock(int(gate.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		gate.Close()
		if err == nil {
			return
		}
		p.signal(syscall.SIGCONT)
	}
}

// code is the exit code of an ended program; -1: a signal ended it.
func (p *process) code() int { return p.cmd.ProcessState.ExitCode() }

// wait waits until the program has ended.
func (r *rig) wait(p *process) {
	r.Helper()
	select {
	case <-p.ended:
	case <-time.After(waitLimit):
		p.signal(syscall.SIGQUIT)
		<-p.ended
		r.Fatalf("a program did not end within %v:\n%s", waitLimit, tail(p.out.String()))
	}
	if c, err := replica.ReadCursor(p.taskHome(), rigTask); err != nil {
		r.Error(err)
	} else if c != nil {
		p.holder = c.Own
	}
}

// quiet waits until no process works in a directory any more.
func (r *rig) quiet(dir string) {
	r.Helper()
	r.poll(func() bool {
		procs, err := filepath.Glob("/proc/[0-9]*/cwd")
		if err != nil || len(procs) == 0 {
			r.Fatalf("no processes: %v", err)
		}
		for _, p := range procs {
			if at, err := os.Readlink(p); err == nil && at == dir {
				return false
			}
		}
		return true
	})
}

// poll waits for something another process does.
func (r *rig) poll(done func() bool) {
	r.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(waitLimit); !done(); <-tick.C {
		if time.Now().After(deadline) {
			r.Fatalf("did not come about within %v", waitLimit)
		}
	}
}

// effect is a line that a command wrote outside of all directories.
type effect struct {
	what  string // "call" when it begins, "tick" while it runs
	label string
	dir   string
}

// ledger reads the effects, in order.
func (r *rig) ledger() (out []effect) {
	r.Helper()
	data, err := os.ReadFile(filepath.Join(r.effects, "ledger"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && strings.HasSuffix(line, "\n") {
			out = append(out, effect{f[0], f[1], f[2]})
		} else {
			r.Errorf("the ledger has the line %q", line)
		}
	}
	return out
}

// faultProxy stands between one machine and the bucket, and does what networks and servers do.
type faultProxy struct {
	to      *url.URL
	percent int // of requests that get a fault

	mu      sync.Mutex
	rng     *rand.Rand
	cut     bool           // nothing passes
	creates int            // of objects of the log
	counts  map[string]int // requests by method and kind of object
	sent    int64          // bytes of requests' bodies
	delay   time.Duration  // added to each request
	// at is called before and after each creation of an object of the log; true: the connection is closed.
	at func(create int, acted bool) (drop bool)
}

// pass cuts the machine off, or lets it through again.
func (p *faultProxy) pass(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = !yes
}

// watch sets at, and counts from here.
func (p *faultProxy) watch(at func(create int, acted bool) (drop bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.creates = at, 0
}

// faults are the names of what ServeHTTP does to a request.
var faults = []string{"delay", "lost before", "lost after", "cut body", "503", "429", "409", "412 after", "500 after"}

func (p *faultProxy) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the program was killed
	}
	p.mu.Lock()
	create, n, fault := q.Method == http.MethodPut && strings.Contains(q.URL.Path, "/log/"), 0, ""
	if create {
		p.creates++
		n = p.creates
	}
	if p.rng.IntN(100) < p.percent {
		fault = faults[p.rng.IntN(len(faults))]
	}
	if p.counts == nil {
		p.counts = make(map[string]int)
	}
	kind := "other"
	for _, k := range []string{"log", "parts", "index", "check", "alive", "inbox"} {
		if strings.Contains(q.URL.Path+"?"+q.URL.RawQuery, "/"+k+"/") {
			kind = k
		}
	}
	p.counts[q.Method+" "+kind]++
	p.sent += int64(len(body))
	cut, at, delay := p.cut, p.at, p.delay
	p.mu.Unlock()
	if fault == "delay" {
		delay += 50 * time.Millisecond
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-q.Context().Done():
			return
		}
	}
	drop := create && at != nil && at(n, false)
	switch {
	case cut, drop, fault == "lost before":
		hangUp(w)
		return
	case fault == "503", fault == "429", fault == "409":
		code := map[string]int{"503": 503, "429": 429, "409": 409}[fault]
		name := map[string]string{"503": "SlowDown", "429": "TooManyRequests",
			"409": "ConditionalRequestConflict"}[fault]
		status(code, "Content-Type", "application/xml",
			"<Error><Code>"+name+"</Code><Message>a fault of the test</Message></Error>")(w)
		return
	}
	u := *q.URL
	u.Scheme, u.Host = p.to.Scheme, p.to.Host
	out, err := http.NewRequestWithContext(context.WithoutCancel(q.Context()), q.Method, u.String(),
		bytes.NewReader(body))
	if err != nil {
		hangUp(w)
		return
	}
	out.Header, out.Host = q.Header.Clone(), q.Host
	answer, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		hangUp(w)
		return
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	drop = create && at != nil && at(n, true)
	switch {
	case err != nil, drop, fault == "lost after":
		hangUp(w)
		return
	case fault == "412 after" && create: // as for the second try of who was served
		status(412, "Content-Type", "application/xml", "<Error><Code>PreconditionFailed</Code></Error>")(w)
		return
	case fault == "500 after":
		status(500, "Content-Type", "application/xml", "<Error><Code>InternalError</Code></Error>")(w)
		return
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	if fault == "cut body" && len(data) > 1 {
		_, _ = w.Write(data[:len(data)/2])
		if err := http.NewResponseController(w).Flush(); err == nil {
			hangUp(w)
		}
		return
	}
	_, _ = w.Write(data)
}

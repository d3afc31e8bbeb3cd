package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"anamnesis/cmd/internal/exit"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// templates reads the documents of a guide's YAML blocks. A field that their struct lacks is an error.
func templates[T any](t *testing.T, page string) (docs []T) {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range yamlBlock.FindAllSubmatch(text, -1) {
		for doc := range strings.SplitSeq(string(block[1]), "---\n") {
			var d T
			if err := yaml.Load([]byte(doc), &d, yaml.WithKnownFields(), yaml.WithUniqueKeys()); err != nil {
				t.Fatalf("%s: %v", page, err)
			}
			docs = append(docs, d)
		}
	}
	return docs
}

// resource has the fields of Kubernetes that the guide uses, where they are there.
type resource struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Data       map[string]string
	Spec       struct {
		jobSpec                 `yaml:",inline"`
		Schedule                string
		ConcurrencyPolicy       string                 `yaml:"concurrencyPolicy"`
		StartingDeadlineSeconds int                    `yaml:"startingDeadlineSeconds"`
		JobTemplate             struct{ Spec jobSpec } `yaml:"jobTemplate"`
	}
}

type jobSpec struct {
	CompletionMode           string `yaml:"completionMode"`
	Completions, Parallelism int
	BackoffLimit             int    `yaml:"backoffLimit"`
	BackoffLimitPerIndex     int    `yaml:"backoffLimitPerIndex"`
	PodReplacementPolicy     string `yaml:"podReplacementPolicy"`
	PodFailurePolicy         struct {
		Rules []struct {
			Action          string
			OnPodConditions []struct{ Type string } `yaml:"onPodConditions"`
			OnExitCodes     struct {
				Operator string
				Values   []int
			} `yaml:"onExitCodes"`
		}
	} `yaml:"podFailurePolicy"`
	Template struct {
		Spec struct {
			RestartPolicy                 string `yaml:"restartPolicy"`
			ServiceAccountName            string `yaml:"serviceAccountName"`
			TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
			Containers                    []struct {
				Name, Image string
				Command     []string
				Env         []struct{ Name, Value string }
				EnvFrom     []struct {
					SecretRef struct{ Name string } `yaml:"secretRef"`
				} `yaml:"envFrom"`
				VolumeMounts []struct {
					Name      string
					MountPath string `yaml:"mountPath"`
				} `yaml:"volumeMounts"`
			}
			Volumes []struct {
				Name      string
				ConfigMap struct{ Name string } `yaml:"configMap"`
				EmptyDir  struct{}              `yaml:"emptyDir"`
			}
		}
	}
}

// stage is where a template's commands run instead of a cluster's machines.
type stage struct {
	t          *testing.T
	base, repo string
	machines   int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, base: t.TempDir()}
	s.repo = s.path("repo")
	s.write("repo/README", "read me\n")
	s.write("bucket/.keep", "")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."},
		{"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "one"}} {
		if out, err := exec.Command("git", append([]string{"-C", s.repo}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v: %s", err, out)
		}
	}
	return s
}

func (s *stage) path(name string) string { return filepath.Join(s.base, name) }

func (s *stage) write(name, text string) {
	s.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(s.path(name)), 0o755), os.WriteFile(s.path(name), []byte(text), 0o700)); err != nil {
		s.t.Fatal(err)
	}
}

// model writes a script model: it writes a file, waits, and records that it ran a command.
func (s *stage) model(wait string) {
	s.write("model.yaml", `
turns:
  - calls: [{name: WriteFile, arguments: {path: a.txt, content: "one\n"}}]
  - calls: [{name: Bash, arguments: {command: "cat a.txt >>`+s.path("ledger")+`; touch done.txt"}}]
    `+wait+`
  - reply: Done.
`)
}

// machine makes a command on a new machine, with a home and files of its own. The places that a template names become
// the machine's.
func (s *stage) machine(command []string, files map[string]string, env ...string) (*exec.Cmd, *bytes.Buffer) {
	s.t.Helper()
	s.machines++
	home := fmt.Sprint("machine", s.machines)
	places := strings.NewReplacer("/workspace", s.path(home+"/workspace"), "/etc/task", s.path(home+"/etc"),
		"go test ./...", "test -e done.txt")
	for name, text := range files {
		s.write(home+"/etc/"+name, places.Replace(text))
	}
	s.write(home+"/home/config.yaml", "sandbox: 'off'\n")
	for i := range command {
		command[i] = places.Replace(command[i])
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = s.path(home)
	cmd.Env = slices.Concat(os.Environ(), env,
		[]string{"ANAMNESIS_HOME=" + s.path(home+"/home"), "ANAMNESIS_MODEL=script:" + s.path("model.yaml"),
			"ANAMNESIS_REMOTE=" + s.path("bucket"), "REPO=" + s.repo, "COMMIT=main"})
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	s.t.Cleanup(func() {
		if cmd.Process != nil && cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
		}
	})
	return cmd, out
}

// ledger returns how often the model's command ran.
func (s *stage) ledger() int {
	data, _ := os.ReadFile(s.path("ledger"))
	return bytes.Count(data, []byte("\n"))
}

// appears waits for a file.
func (s *stage) appears(pattern string) {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); <-tick.C {
		if found, _ := filepath.Glob(s.path(pattern)); len(found) > 0 {
			return
		}
	}
	s.t.Fatalf("%s did not appear within %v", pattern, waitLimit)
}

// TestTemplateKubernetes runs the pods of the guide's Job and CronJob: two at once, one that is evicted, and its
// successors.
func TestTemplateKubernetes(t *testing.T) {
	t.Parallel()
	heavy(t)
	docs := templates[resource](t, "remote-kubernetes.md")
	if len(docs) != 3 || docs[0].Kind != "ConfigMap" || docs[1].Kind != "Job" || docs[2].Kind != "CronJob" {
		t.Fatalf("%d documents", len(docs))
	}
	job, nightly := docs[1].Spec.jobSpec, docs[2].Spec.JobTemplate.Spec
	for _, j := range []jobSpec{job, nightly} {
		pod := j.Template.Spec
		if pod.RestartPolicy != "Never" || pod.TerminationGracePeriodSeconds <= 35 ||
			j.PodReplacementPolicy != "Failed" {
			t.Errorf("%+v", j)
		}
		for _, r := range j.PodFailurePolicy.Rules {
			if slices.Contains(r.OnExitCodes.Values, 3) || slices.Contains(r.OnExitCodes.Values, 143) ||
				slices.Contains(r.OnExitCodes.Values, 2) {
				t.Errorf("exit codes %v end a task that another pod works on, or goes on with", r.OnExitCodes.Values)
			}
		}
	}
	requests := strings.Count(docs[0].Data["requests"], "\n")
	if job.CompletionMode != "Indexed" || job.Completions != requests || job.BackoffLimitPerIndex == 0 {
		t.Errorf("%d requests, %+v", requests, job)
	}
	s := newStage(t)
	pod := func(j jobSpec, env ...string) (*exec.Cmd, *bytes.Buffer) {
		c := j.Template.Spec.Containers[0]
		for _, v := range c.Env {
			env = append(env, v.Name+"="+v.Value)
		}
		return s.machine(slices.Clone(c.Command), docs[0].Data, env...)
	}

	// Two pods of one index that begin at once: both find no task and call run.
	s.model("")
	real, err := exec.LookPath("anamnesis")
	if err != nil {
		t.Fatal(err)
	}
	s.write("shim/anamnesis", `#!/bin/sh
if [ "$1" = run ]; then
	touch "`+s.path("arrived")+`-$$"
	until [ -e "$(ls -d `+s.path("arrived")+`-* | sed -n 2p)" ]; do sleep 0.05; done
fi
exec `+real+` "$@"
`)
	shim := "PATH=" + s.path("shim") + ":" + os.Getenv("PATH")
	first, out1 := pod(job, "JOB_COMPLETION_INDEX=1", shim)
	second, out2 := pod(job, "JOB_COMPLETION_INDEX=1", shim)
	if err := errors.Join(first.Start(), second.Start()); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	_ = second.Wait()
	codes := []int{first.ProcessState.ExitCode(), second.ProcessState.ExitCode()}
	slices.Sort(codes)
	began := codes[1] == exit.Refused || codes[1] == exit.Usage // usage: the name was taken already
	if codes[0] != exit.Done || !began || s.ledger() != 1 {
		t.Errorf("exit codes %v, %d commands\n%s\n%s", codes, s.ledger(), out1, out2)
	}

	// A pod that is evicted is followed by one that goes on, and by one that finds the task done.
	for _, tt := range []struct {
		name, task string
		job        jobSpec
		env        string
	}{
		{"index 0", "fix-0", job, "JOB_COMPLETION_INDEX=0"},
		{"nightly", "nightly-*", nightly, "X=y"},
	} {
		before := s.ledger()
		s.model("fault: {delay: 1h}")
		evicted, out := pod(tt.job, tt.env)
		if err := evicted.Start(); err != nil {
			t.Fatal(err)
		}
		s.appears("machine*/workspace/" + tt.task + "/a.txt")
		_ = evicted.Process.Signal(syscall.SIGTERM)
		_ = evicted.Wait()
		if code := evicted.ProcessState.ExitCode(); code != 143 || s.ledger() != before {
			t.Errorf("%s: evicted with exit code %d\n%s", tt.name, code, out)
		}
		s.model("")
		for range 2 {
			next, out := pod(tt.job, tt.env)
			if err := next.Run(); err != nil || s.ledger() != before+1 {
				t.Errorf("%s: %v, %d commands\n%s", tt.name, err, s.ledger()-before, out)
			}
		}
	}
}

// workflow has the fields of GitHub Actions that the guide uses.
type workflow struct {
	Name string
	On   struct {
		Dispatch struct {
			Inputs map[string]struct {
				Description, Type string
				Required          bool
			}
		} `yaml:"workflow_dispatch"`
	}
	Permissions map[string]string
	Concurrency struct {
		Group  string
		Cancel bool `yaml:"cancel-in-progress"`
	}
	Env  map[string]string
	Jobs map[string]struct {
		Needs, If string
		RunsOn    string `yaml:"runs-on"`
		Timeout   int    `yaml:"timeout-minutes"`
		Strategy  struct {
			FailFast    *bool `yaml:"fail-fast"`
			MaxParallel int   `yaml:"max-parallel"`
			Matrix      struct{ Part []int }
		}
		Steps []struct {
			Name, Uses, Run string
			With            map[string]string
		}
	}
}

// TestTemplateActions runs the steps of the guide's workflow: the first job is ended by its time, the second goes on,
// the third finds the task done.
func TestTemplateActions(t *testing.T) {
	t.Parallel()
	heavy(t)
	docs := templates[workflow](t, "remote-actions.md")
	if len(docs) != 1 {
		t.Fatalf("%d documents", len(docs))
	}
	w := docs[0]
	work := w.Jobs["work"]
	if c := work.Strategy; c.MaxParallel != 1 || c.FailFast == nil || *c.FailFast || work.Timeout != 360 ||
		w.Concurrency.Cancel || w.Permissions["id-token"] != "write" {
		t.Errorf("%+v", w)
	}
	steps := make(map[string]string)
	for _, job := range w.Jobs {
		for _, step := range job.Steps {
			if strings.Contains(step.Run, "${{") {
				t.Errorf("step %s: what a user typed would be executed: %s", step.Name, step.Run)
			}
			steps[step.Name] = step.Run
		}
	}
	s := newStage(t)
	part := func(step, limit string) (string, error) {
		cmd, out := s.machine([]string{"bash", "-e", "-c", steps[step]}, nil, "TASK=long", "REQUEST=Write it.",
			"PART_TIME="+limit,
			"ANAMNESIS_APPROVAL="+w.Env["ANAMNESIS_APPROVAL"], "GITHUB_STEP_SUMMARY="+s.path("summary"))
		dir := s.path(fmt.Sprint("checkout", s.machines))
		if said, err := exec.Command("git", "clone", "-q", s.repo, dir).CombinedOutput(); err != nil {
			t.Fatalf("git clone: %v: %s", err, said)
		}
		cmd.Dir = dir
		err := cmd.Run()
		return out.String(), err
	}
	s.model("fault: {delay: 1h}")
	if out, err := part("work", "5s"); err != nil || s.ledger() != 0 {
		t.Fatalf("the first part: %v, %d commands\n%s", err, s.ledger(), out)
	}
	if out, err := part("report", ""); err == nil {
		t.Errorf("a task that is not done is reported as done\n%s", out)
	}
	s.model("")
	for range 2 {
		if out, err := part("work", "5m"); err != nil || s.ledger() != 1 {
			t.Errorf("the next part: %v, %d commands\n%s", err, s.ledger(), out)
		}
	}
	if out, err := part("report", ""); err != nil || !strings.Contains(out, "Write it.") {
		t.Errorf("the report: %v\n%s", err, out)
	}
}

// Package settings reads the user's and a project's config.yaml and the environment, and
// reports the value of each setting that applies, with its origin.
package settings

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"anamnesis/anamnesis/attention"
	"anamnesis/cmd/internal/notify"
	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/feature/hook"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/model/named"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/spelling"
)

// ProjectFile is a project's configuration: beneath the directory, or the nearest one above it up to
// the root of its git repository.
const ProjectFile = ".anamnesis/config.yaml"

const maxFileBytes = 64 << 10

// OriginDefault is the Origin of a value that is set nowhere.
const OriginDefault = "default"

type key struct {
	name    string
	standin string // another environment variable, with priority over the program's own
	initial string // the default; empty: see about
	about   string
	check   func(string) error
	// tightens reports whether next is at least as strict as now, which may be empty.
	// nil: a project may set the value freely. same: any other value needs an approval.
	tightens func(next, now string) bool
}

// keys lists the settings, in the order in which they are shown.
func keys() []key {
	same := func(next, now string) bool { return next == now }
	text := func(string) error { return nil }
	return []key{
		{name: "model", about: "model name, or script:FILE for a recording", check: text, tightens: same},
		{name: "reflect_model", about: "model that is asked when the agent repeats itself",
			check: text, tightens: same},
		{name: "base_url", standin: "OPENAI_BASE_URL", about: "address of an OpenAI-compatible server",
			check: text, tightens: same},
		{name: "key_env", initial: "OPENAI_API_KEY", about: "environment variable that holds the API key",
			check: variable, tightens: same},
		{name: "approval", initial: "ask", about: "ask, edits, auto or deny",
			check: parses(approval.ParseMode), tightens: inOrder("deny", "ask", "edits", "auto")},
		{name: "sandbox", initial: "world", about: "world, read-only or off",
			check: parses(guard.ParseConfinement), tightens: inOrder("read-only", "world", "off")},
		{name: "eas", about: "effective attention span in tokens", check: positive[int](strconv.Atoi),
			tightens: lower(strconv.Atoi)},
		{name: "max_steps", about: "steps a turn may take",
			check: positive[int](strconv.Atoi), tightens: lower(number)},
		{name: "max_tokens", about: "tokens a task may use",
			check: positive[int](strconv.Atoi), tightens: lower(number)},
		{name: "max_cost", about: "US dollars a task may cost", check: positive(number), tightens: lower(number)},
		{name: "max_time", about: "how long a process may work on a task, such as 30m",
			check: positive(time.ParseDuration), tightens: lower(time.ParseDuration)},
		{name: "patience", about: "how long a failing provider is waited for (default: 24h, 10m in a session)",
			check: positive(time.ParseDuration), tightens: lower(time.ParseDuration)},
		{name: "keep_ignored", check: globs, tightens: same,
			about: "names of small ignored files that snapshots hold, such as .env* *.db; none: no file"},
		{name: "recall", initial: "lessons", about: "cards that tasks are shown: lessons or " + taskdir.RecallReviewed,
			check: oneOf("lessons", taskdir.RecallReviewed), tightens: same},
		{name: "remote", check: text, tightens: same,
			about: "bucket that keeps tasks beside this machine, such as s3://team/agents"},
		{name: "theme", initial: "auto", about: "colours: auto, dark, light or none",
			check: oneOf("auto", "dark", "light", "none")},
	}
}

func Env(key string) string { return "ANAMNESIS_" + strings.ToUpper(key) }

func number(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

func parses[V any](parse func(string) (V, error)) func(string) error {
	return func(s string) error {
		_, err := parse(s)
		return err
	}
}

func positive[N cmp.Ordered](parse func(string) (N, error)) func(string) error {
	return func(s string) error {
		var zero N
		// NaN is not above zero, and not below.
		if n, err := parse(s); err != nil || !(n > zero) || fmt.Sprint(n) == "+Inf" {
			if _, is := any(zero).(time.Duration); is {
				return fmt.Errorf("%q: want a time above zero, such as 30m", s)
			}
			return fmt.Errorf("%q: want a value above zero", s)
		}
		return nil
	}
}

func lower[N cmp.Ordered](parse func(string) (N, error)) func(next, now string) bool {
	return func(next, now string) bool {
		n, err := parse(next)
		limit, unset := parse(now)
		return err == nil && (unset != nil || n <= limit) // a limit where there is none is stricter, too
	}
}

// variable refuses a key in the place of its variable's name, and does not repeat it.
func variable(s string) error {
	if strings.Trim(strings.ToUpper(s), "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return errors.New("want the name of the variable that holds the key, such as OPENROUTER_API_KEY, not the key")
	}
	return nil
}

func globs(s string) error {
	for p := range strings.FieldsSeq(s) {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("%q: %w", p, err)
		}
	}
	return nil
}

func oneOf(names ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(names, s) {
			return fmt.Errorf("%q: want %s", s, strings.Join(names, ", "))
		}
		return nil
	}
}

func inOrder(names ...string) func(next, now string) bool {
	return func(next, now string) bool {
		i, j := slices.Index(names, next), slices.Index(names, now)
		return i >= 0 && i <= j
	}
}

type Value struct {
	Key    string `json:"key"`
	Text   string `json:"value"`
	Origin string `json:"origin"`
	// Ignored is the project's value if it needs an approval.
	Ignored string `json:"ignored,omitempty"`
	// Bounded: without an approval, the project's value counts only where it is below the model's own.
	Bounded bool   `json:"bounded,omitempty"`
	About   string `json:"about"`
}

type Settings struct {
	Values  []Value
	Project bool // the project has a file of settings, or rows of the EAS table
	Changed bool // the file, or a program that its hooks run, is not as it was when the user approved it
	// Missing are the approvals that the project's files need and the user has not given.
	Missing  []consent.Approval
	Notify   []string // the user's notifiers
	Hooks    []hook.Hook
	UserFile string
	File     string // the project's, whether it exists or not
}

// Load reads the settings of a directory. A missing directory has no file; opening the task
// reports it.
func Load(h taskdir.Home, dir string, getenv func(string) string) (*Settings, error) {
	s := &Settings{UserFile: filepath.Join(h.Config, "config.yaml")}
	user, err := readFile(s.UserFile, true)
	if err != nil {
		return nil, err
	}
	s.Notify = user.notify
	var project file
	approved := false
	real, err := session.RealDir(dir)
	// The user's own configuration can lie in a folder .anamnesis of dir: then it is no project's.
	if d := holder(real); err == nil && filepath.Join(d, ProjectFile) != s.UserFile {
		if s.File = filepath.Join(d, ProjectFile); d == real {
			s.File = filepath.Join(dir, ProjectFile)
		}
		if project, err = readFile(filepath.Join(d, ProjectFile), false); err != nil {
			return nil, err
		}
		needs := consent.Approval{Kind: "config", Name: "config.yaml", Dir: d, Hash: project.hash}
		needs = hook.Approval(needs, project.hooks, consent.OpenTrust(h.Approvals()))
		if approved, err = s.approved(h, needs); err != nil {
			return nil, err
		}
	}
	for _, k := range keys() {
		v := Value{Key: k.name, Text: k.initial, Origin: OriginDefault, About: k.about}
		if text, ok := user.values[k.name]; ok {
			v.Text, v.Origin = text, s.UserFile
		}
		if text, ok := project.values[k.name]; ok {
			if approved || k.tightens == nil || k.tightens(text, v.Text) {
				v.Bounded = k.name == "eas" && v.Text == "" && !approved
				v.Text, v.Origin = text, s.File
			} else {
				v.Ignored = text
			}
		}
		for _, name := range []string{k.standin, Env(k.name)} { // the last one set wins
			text := getenv(name)
			if name == "" || text == "" {
				continue
			}
			if err := k.check(text); err != nil {
				return nil, session.Usagef("$%s: %v; correct it or unset it", name, err)
			}
			v.Text, v.Origin, v.Bounded, v.Ignored = text, "$"+name, false, ""
		}
		s.Values = append(s.Values, v)
	}
	s.addHooks(user.hooks, project.hooks, approved)
	return s, s.rows(h, dir)
}

// addHooks adds the hooks to the settings, a project's if its file is approved.
func (s *Settings) addHooks(user, project []hook.Hook, approved bool) {
	v := Value{Key: hook.Key, Origin: s.UserFile, About: "commands that run at events"}
	if approved {
		user = append(slices.Clip(user), project...)
	} else {
		v.Ignored = hook.Texts(project)
	}
	if s.Hooks, v.Text = user, hook.Texts(user); len(project) > 0 {
		v.Origin = s.File
	}
	if v.Text+v.Ignored != "" {
		s.Values = append(s.Values, v)
	}
}

// holder returns the directory that holds the project's file: the nearest one from dir up to the root
// of its repository, or dir if none does.
func holder(dir string) string {
	for _, d := range slices.Backward(agent.ProjectDirs(dir)) {
		if _, err := os.Lstat(filepath.Join(d, ProjectFile)); err == nil {
			return d
		}
	}
	return dir
}

// rows adds a project's rows of the EAS table. A fault in them is reported where the table is read.
func (s *Settings) rows(h taskdir.Home, dir string) (err error) {
	file, needs, err := session.ProjectEAS(dir)
	if err != nil || needs.Hash == "" || session.EASProjectFile(needs.Dir) == h.EASOverlay() {
		return nil
	}
	table, err := attention.LoadTable(nil, file)
	if err != nil {
		return nil
	}
	var texts []string
	for _, r := range table.Rows() {
		texts = append(texts, fmt.Sprintf("%s: %d of %d tokens", r.Pattern, r.EAS, r.Window))
	}
	approved, err := s.approved(h, needs)
	s.Values = append(s.Values, Value{Key: "eas.yaml", Text: strings.Join(texts, ", "), Origin: file.Name,
		Bounded: !approved, About: "rows of the EAS table"})
	return err
}

// approved reports whether the user approved a project's file; without a hash there is no file.
func (s *Settings) approved(h taskdir.Home, needs consent.Approval) (bool, error) {
	if needs.Hash == "" {
		return false, nil
	}
	s.Project = true
	given, err := consent.OpenTrust(h.Approvals()).List()
	ok := slices.ContainsFunc(given, func(a consent.Approval) bool { return a.Covers(needs) })
	if !ok {
		s.Missing = append(s.Missing, needs)
		s.Changed = s.Changed || slices.ContainsFunc(given, func(a consent.Approval) bool {
			return needs.Kind == "config" && a.Kind == needs.Kind && a.Dir == needs.Dir
		})
	}
	return ok, err
}

// Warning describes ignored values of the project's file; empty if there are none.
func (s *Settings) Warning() string {
	var names []string
	for _, v := range s.Values {
		if v.Ignored != "" {
			names = append(names, v.Key)
		}
	}
	if len(names) == 0 {
		return ""
	}
	before := "before you approve it"
	if s.Changed {
		before = "any more: that file, or a program that its hooks run, was changed since you approved it"
	}
	return fmt.Sprintf("%s sets %s, which does not count %s; 'anamnesis config approve' shows it", s.File,
		strings.Join(names, ", "), before)
}

func (s *Settings) value(name string) Value {
	return s.Values[slices.IndexFunc(s.Values, func(v Value) bool { return v.Key == name })]
}

// Text returns the value of a key, empty if it is set nowhere.
func (s *Settings) Text(name string) string {
	if v := s.value(name); v.Origin != OriginDefault {
		return v.Text
	}
	return ""
}

// KeyEnv returns the name of the variable with the API key.
func (s *Settings) KeyEnv() string { return s.value("key_env").Text }

// Theme returns the terminal's colours: auto, dark, light or none.
func (s *Settings) Theme() string { return s.value("theme").Text }

// Limits fills in limits of a run that its flags leave open.
func (s *Settings) Limits(set *session.Settings) {
	fill(&set.Limits.Steps, s.Text("max_steps"), strconv.Atoi)
	fill(&set.Limits.Tokens, s.Text("max_tokens"), strconv.Atoi)
	fill(&set.Limits.USD, s.Text("max_cost"), number)
	fill(&set.Limits.Time, s.Text("max_time"), time.ParseDuration)
	fill(&set.Patience, s.Text("patience"), time.ParseDuration)
}

// Resumed fills in limits for a task that is continued: those that it has of its own come first.
func (s *Settings) Resumed(set *session.Settings) {
	own := session.Settings{Patience: set.Patience}
	s.Limits(&own)
	set.Patience, set.Fallback, set.Hooks = own.Patience, own.Limits, s.Hooks
}

// Request fills in what a new task's flags leave open. An environment variable wins over the
// task's agent, and the agent over a file.
func (s *Settings) Request(r *session.Request) {
	s.Limits(&r.Settings)
	r.Hooks = s.Hooks
	if r.Remote.Address == "" {
		r.Remote.Address, r.Remote.Project = s.Text("remote"), s.value("remote").Origin == s.File
	}
	// The user learns of the question, unless there is only the bell of a terminal that is not there.
	if r.WhenAsked == "" && slices.ContainsFunc(s.Notify, func(to string) bool { return to != notify.Bell }) {
		r.WhenAsked = string(question.Wait)
	}
	if text := s.Text("eas"); text != "" && r.EAS == 0 {
		fill(&r.EAS, text, strconv.Atoi)
		v := s.value("eas")
		r.EASFrom, r.EASLower = filepath.Base(v.Origin), v.Bounded
	}
	for _, f := range []struct {
		name          string
		given, behind *string
	}{
		{"model", &r.Model, &r.Default.Model}, {"approval", &r.Approval, &r.Default.Approval},
		{"sandbox", &r.Sandbox, &r.Default.Sandbox},
		{"reflect_model", &r.ReflectModel, nil}, {"base_url", &r.BaseURL, nil},
	} {
		text, origin := s.Text(f.name), s.value(f.name).Origin
		switch {
		case text == "" || *f.given != "":
		case f.behind != nil && !strings.HasPrefix(origin, "$"):
			*f.behind = text
		default:
			*f.given = text
		}
	}
}

func fill[N comparable](to *N, text string, parse func(string) (N, error)) {
	var zero N
	if *to == zero && text != "" {
		*to, _ = parse(text) // Load has checked it
	}
}

// file is the content of a configuration file; empty if there is none.
type file struct {
	values map[string]string
	notify []string
	hooks  []hook.Hook
	hash   string // of its bytes
}

// readFile reads a configuration file. Only the user's own may say how models are asked and what notifies
// the user: commands that it names run.
func readFile(path string, user bool) (f file, err error) {
	data, err := durable.ReadFile(path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, session.Usagef("configuration %s: %v; make it a readable file or remove it", path, plain(err))
	}
	var nodes map[string]yaml.Node
	known := keys()
	var names []string
	for _, k := range known {
		names = append(names, k.name)
	}
	if user {
		names = append(names, named.TuningKey, notify.Key)
	}
	names = append(names, hook.Key)
	remedy := "the keys are " + strings.Join(names, ", ")
	if err := userfile.Load(path, data, &nodes, remedy); err != nil {
		return f, session.Usagef("%v", err)
	}
	f.values = make(map[string]string)
	byLine := slices.SortedFunc(maps.Keys(nodes), func(a, b string) int { return nodes[a].Line - nodes[b].Line })
	for _, name := range byLine {
		node, structured := nodes[name], true
		switch {
		case name == hook.Key:
			f.hooks, err = hook.Parse(&node)
		case name != named.TuningKey && name != notify.Key:
			structured = false
		case !user: // a repository could bring it along
			return f, session.Usagef("%s:%d: %s can be set in your own config.yaml only: its commands run", path,
				node.Line, name)
		case name == notify.Key:
			f.notify, err = notify.Parse(&node)
		default:
			if _, err = named.ParseTuning(&node); err != nil {
				err = fmt.Errorf("%w; docs/guides/providers.md has the form", err)
			}
		}
		if err != nil {
			return f, session.Usagef("%s:%d: %s: %v", path, node.Line, name, err)
		}
		if structured {
			continue
		}
		i := slices.IndexFunc(known, func(k key) bool { return k.name == name })
		if i < 0 {
			if near := spelling.Nearest(name, names); near != "" {
				remedy = "did you mean " + near + "? " + remedy
			}
			return f, session.Usagef("%s:%d: unknown key %q; %s", path, node.Line, name, remedy)
		}
		if node.Kind != yaml.ScalarNode || node.Value == "" {
			return f, session.Usagef("%s:%d: %s has no single value; want %s", path,
				node.Line, name, known[i].about)
		}
		if err := known[i].check(node.Value); err != nil {
			return f, session.Usagef("%s:%d: %s: %v; correct it or remove the line", path, node.Line, name, err)
		}
		f.values[name] = node.Value
	}
	sum := sha256.Sum256(data)
	f.hash = hex.EncodeToString(sum[:])
	return f, nil
}

// plain returns an error without the call and the path.
func plain(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return of.Err
	}
	return err
}

package settings

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// place is a home and a project, with configuration files and an environment.
type place struct {
	home taskdir.Home
	dir  string
	env  map[string]string
}

func newPlace(t *testing.T, user, project string, env map[string]string) *place {
	t.Helper()
	home, dir := t.TempDir(), t.TempDir()
	p := &place{taskdir.Home{State: home, Data: home, Config: home}, dir, env}
	write(t, filepath.Join(home, "config.yaml"), user)
	write(t, filepath.Join(dir, ProjectFile), project)
	return p
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if text == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *place) load(t *testing.T) (*Settings, error) {
	t.Helper()
	return Load(p.home, p.dir, func(name string) string { return p.env[name] })
}

// TestPrecedence: the environment wins over the project, and that over the user; what
// a project's file loosens counts after an approval of exactly its content.
func TestPrecedence(t *testing.T) {
	for _, c := range []struct {
		name, user, project, env string
		key                      string
		before, after            string // an approval
	}{
		{"user", "model: a", "", "", "model", "a", "a"},
		{"a larger span", "eas: 900", "eas: 901", "", "eas", "900", "901"},
		{"a smaller span", "eas: 900", "eas: 899", "", "eas", "899", "899"},
		{"project over user", "model: a", "model: b", "", "model", "a", "b"},
		{"project without user", "", "model: b", "", "model", "", "b"},
		{"the same model", "model: a", "model: a", "", "model", "a", "a"},
		{"reflection", "reflect_model: a", "reflect_model: b", "", "reflect_model", "a", "b"},
		{"environment over project", "model: a", "model: b", "c", "model", "c", "c"},
		{"a recording needs approval", "model: a", "model: script:x", "", "model", "a", "script:x"},
		{"address", "base_url: http://a", "base_url: http://b", "", "base_url", "http://a", "http://b"},
		{"key", "", "key_env: OTHER", "", "key_env", "OPENAI_API_KEY", "OTHER"},
		{"stricter approval", "approval: edits", "approval: ask", "", "approval", "ask", "ask"},
		{"looser approval", "approval: ask", "approval: auto", "", "approval", "ask", "auto"},
		{"looser than the default", "", "approval: edits", "", "approval", "ask", "edits"},
		{"stricter sandbox", "", "sandbox: read-only", "", "sandbox", "read-only", "read-only"},
		{"looser sandbox", "sandbox: read-only", "sandbox: world", "", "sandbox", "read-only", "world"},
		{"a first limit", "", "max_cost: 3", "", "max_cost", "3", "3"},
		{"lower limit", "max_time: 1h", "max_time: 10m", "", "max_time", "10m", "10m"},
		{"bucket", "remote: /mnt/ours", "remote: s3://theirs", "", "remote", "/mnt/ours", "s3://theirs"},
		{"bucket of the environment", "", "", "/mnt/ours", "remote", "/mnt/ours", "/mnt/ours"},
		{"higher limit", "max_tokens: 1000", "max_tokens: 1001", "", "max_tokens", "1000", "1001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, c.user, c.project, map[string]string{Env(c.key): c.env})
			s, err := p.load(t)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.value(c.key); got.Text != c.before || (got.Ignored != "") != (c.before != c.after) {
				t.Errorf("%+v, want %s before an approval", got, c.before)
			}
			if (s.Warning() != "") != (c.before != c.after) {
				t.Errorf("warning %q", s.Warning())
			}
			if !s.Project {
				return
			}
			if err := consent.OpenTrust(p.home.Approvals()).Approve(s.Missing[0]); err != nil {
				t.Fatal(err)
			}
			if s, err = p.load(t); err != nil || s.value(c.key).Text != c.after {
				t.Errorf("%+v (%v), want %s after an approval", s.value(c.key), err, c.after)
			}
			var r session.Request
			if s.Request(&r); r.Remote.Project != (c.key == "remote") || r.Remote.Project != (r.Remote.Address != "") {
				t.Errorf("a bucket of the project's: %+v", r.Remote)
			}
			write(t, filepath.Join(p.dir, ProjectFile), c.project+"\n# another content\n")
			if s, err = p.load(t); err != nil || s.value(c.key).Text != c.before {
				t.Errorf("%+v (%v), want %s when the file was changed", s.value(c.key), err, c.before)
			}
		})
	}
}

// TestRequest: a file's value stands behind the agent's, a variable's before it, and a
// flag's before both.
func TestRequest(t *testing.T) {
	p := newPlace(t, "model: file\napproval: edits\nmax_steps: 7\neas: 9000", "", map[string]string{"ANAMNESIS_APPROVAL": "deny", "OPENAI_BASE_URL": "http://x"})
	s, err := p.load(t)
	if err != nil {
		t.Fatal(err)
	}
	r := session.Request{}
	r.Limits.Steps = 3
	s.Request(&r)
	if r.Model != "" || r.Default.Model != "file" || r.Approval != "deny" || r.Limits.Steps != 3 || r.EAS != 9000 || r.BaseURL != "http://x" || !strings.HasSuffix(r.EASFrom, "config.yaml") {
		t.Errorf("%+v", r)
	}
}

// TestFaults: a fault of a file names the file, the line, the cause and the remedy.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"model: a\nmodle: b\n", `:2: unknown key "modle"; did you mean model? the keys are model, reflect_model, base_url, key_env, approval, sandbox, eas, max_steps, max_tokens, max_cost, max_time, patience, keep_ignored, recall, remote, theme`},
		{"model: a\nmodel: b\n", `:2: key "model" is given twice`},
		{"\nmax_cost: -1\n", `:2: max_cost: "-1": want a value above zero`},
		{"patience: 5\n", `:1: patience: "5": want a time above zero, such as 30m`},
		{"max_cost: .inf\n", `:1: max_cost: ".inf": want a value above zero`},
		{"approval: yes\n", `:1: approval: approval mode "yes": want ask, edits, auto or deny`},
		{"keep_ignored: .env* conf[\n", `:1: keep_ignored: "conf[": syntax error in pattern`},
		{"model: a\nnotify: {a: b}\n", `:2: notify: want bell, desktop, a command, or a list of these`},
		{"notfy: bell\n", `:1: unknown key "notfy"; did you mean notify?`},
		{"key_env: sk-or-123\n", `:1: key_env: want the name of the variable that holds the key, such as OPENROUTER_API_KEY, not the key; correct it`},
		{"model: [a]\n", `:1: model has no single value`},
		{"model: {\n", `: not YAML: `},
		{"- model\n", `:1: a list where a group of keys with values is wanted`},
	} {
		p := newPlace(t, c.text, "", nil)
		if _, err := p.load(t); err == nil ||
			!strings.Contains(err.Error(), filepath.Join(p.home.Config, "config.yaml")) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	p := newPlace(t, "", "", map[string]string{"ANAMNESIS_EAS": "many"})
	if _, err := p.load(t); err == nil || !strings.Contains(err.Error(), `$ANAMNESIS_EAS: "many"`) {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(p.home.Config, "config.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.load(t); err == nil ||
		!strings.Contains(err.Error(), "not a regular file; make it a readable file or remove it") {
		t.Error(err)
	}
}

// TestNotify: only the user's own file names notifiers, and says how models are asked: commands there run.
func TestNotify(t *testing.T) {
	p := newPlace(t, "notify: [bell, 'mail me']", "", map[string]string{"ANAMNESIS_NOTIFY": "other"})
	s, err := p.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(s.Notify, "|") != "bell|mail me" {
		t.Errorf("%q", s.Notify)
	}
	for text, want := range map[string]string{"notify: bell": "", "notify: [bell, desktop]": "wait", "": ""} {
		if s, err = newPlace(t, text, "", nil).load(t); err != nil {
			t.Fatal(err)
		}
		var r session.Request
		if s.Request(&r); r.WhenAsked != want {
			t.Errorf("%q: a question without a terminal: %q, want %q", text, r.WhenAsked, want)
		}
	}
	for _, key := range []string{"notify: bell", "models: []"} {
		p := newPlace(t, "", "\n"+key, nil)
		name, _, _ := strings.Cut(key, ":")
		want := ProjectFile + ":2: " + name + " can be set in your own config.yaml only: its commands run"
		if _, err := p.load(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestWelcome: keys and servers that were found are named with the lines that use them.
func TestWelcome(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte(`{"data":[{"id":"m1"},{"id":"m2"},{"id":"m3"},{"id":"m4"},{"id":"m5"},{"id":"m6"},{"id":"m7"},{"id":"m8"},{"id":"m9"},{"id":"m10"}]}`))
	}))
	defer srv.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	env := map[string]string{"DEEPSEEK_API_KEY": "k"}
	none := &Settings{UserFile: "/c.yaml", Values: []Value{{Key: "model"}}}
	text := none.Welcome(Offers(t.Context(), func(n string) string { return env[n] },
		[]Server{{"Ollama", gone.URL}, {"vLLM", srv.URL}}), "")
	for _, want := range []string{"$DEEPSEEK_API_KEY is set", "key_env: DEEPSEEK_API_KEY", "2  vLLM at " + srv.URL + ": m1", "3  vLLM at " + srv.URL + ": m2\n       model: m2\n", ": m9 (1 more are not listed)", "base_url: " + srv.URL + "/v1", "anamnesis demo", "/c.yaml"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "Ollama") {
		t.Errorf("names a server that does not answer:\n%s", text)
	}
	if text := none.Welcome(nil, ""); !strings.HasPrefix(text, "No model is configured.\nNeither an API key nor a local server was found") {
		t.Error(text)
	}
	none.Values[0].Text, none.Values[0].Origin = "m0", ".anamnesis/config.yaml"
	for flag, want := range map[string]string{"": "No server is known for m0, the model of .anamnesis/config.yaml.\nNeither", "m1": "No server is known for m1, the model of --model.\nNeither"} {
		if text := none.Welcome(nil, flag); !strings.HasPrefix(text, want) {
			t.Error(text)
		}
	}
}

// TestSaveOffer: an offer that is taken becomes a configuration file, once; a name that is
// no model's is refused and writes nothing.
func TestSaveOffer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "config.yaml")
	o := Offers(t.Context(), func(n string) string { return map[string]string{"DEEPSEEK_API_KEY": "k"}[n] }, nil)[0]
	if err := o.Save(path, "a b"); err == nil {
		t.Error("a name with a space was taken")
	}
	if err := o.Save(path, "chat"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := "model: chat\nbase_url: https://api.deepseek.com/v1\nkey_env: DEEPSEEK_API_KEY\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if err := o.Save(path, "other"); err == nil || !strings.Contains(err.Error(), "left as it is") {
		t.Errorf("a file that exists: %v", err)
	}
}

// TestReader: passes over sessions of other agents ask the model of the user's file, at the
// address in the file, for its max_cost; what a project's .env may hold does not count.
func TestReader(t *testing.T) {
	for _, c := range []struct {
		user, want, fault string
		spent             float64
	}{
		{"", "", "", 0},
		{"model: a\nbase_url: http://file/v1\nkey_env: MINE", "a", "", 9},
		{"max_cost: 2", "", "", 0},
		{"model: gpt-5\nbase_url: http://file/v1\nkey_env: MINE\nmax_cost: 2", "gpt-5", "", 1.9},
		{"model: gpt-5\nbase_url: http://file/v1\nkey_env: MINE\nmax_cost: 2", "", "cost $2.00, and max_cost is $2.00", 2},
		{"model: a\nbase_url: http://file/v1\nkey_env: MINE\nmax_cost: 2", "", "no price is known for a", 0},
	} {
		p := newPlace(t, c.user, "", nil)
		asked := map[string]bool{}
		m, eas, err := Reader(func(name string) string {
			asked[name] = true
			return map[string]string{"ANAMNESIS_HOME": p.home.State, "ANAMNESIS_MODEL": "b", "ANAMNESIS_MAX_COST": "100", "OPENAI_BASE_URL": "http://env/v1", "MINE": "key"}[name]
		})(t.Context(), c.spent)
		if (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) ||
			(m != nil) != (c.want != "") || m != nil && (m.Name() != c.want || eas == 0 || !asked["MINE"]) ||
			asked["OPENAI_BASE_URL"] {
			t.Errorf("%q: %v, EAS %d, %v", c.user, m, eas, err)
		}
	}
	p := newPlace(t, "modle: a", "", nil)
	if m, _, err := Reader(func(name string) string { return map[string]string{"ANAMNESIS_HOME": p.home.State}[name] })(t.Context(), 0); m != nil || err == nil {
		t.Errorf("%v, %v", m, err)
	}
}

// TestNearest: the project's file is the nearest one from the directory up to the root of its
// repository, and an approval of it counts in each directory below.
func TestNearest(t *testing.T) {
	p := newPlace(t, "max_steps: 9", "max_steps: 7\napproval: auto", nil)
	root := p.dir
	inner, other := filepath.Join(root, "a", "b"), filepath.Join(root, "a", "c")
	write(t, filepath.Join(other, ProjectFile), "max_steps: 5")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	steps := func(dir, want, origin string) *Settings {
		t.Helper()
		p.dir = dir
		s, err := p.load(t)
		if err != nil {
			t.Fatal(err)
		}
		if v := s.value("max_steps"); v.Text != want || v.Origin != origin {
			t.Errorf("in %s: %s from %s", dir, v.Text, v.Origin)
		}
		return s
	}
	mine := filepath.Join(p.home.Config, "config.yaml")
	steps(inner, "9", mine) // it is not in a repository
	if err := os.MkdirAll(filepath.Join(root, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := steps(inner, "7", filepath.Join(root, ProjectFile))
	if s.Text("approval") != "" || len(s.Missing) != 1 || !strings.Contains(s.Warning(), root) {
		t.Errorf("it loosens without an approval: %+v", s)
	}
	if err := consent.OpenTrust(p.home.Approvals()).Approve(s.Missing[0]); err != nil {
		t.Fatal(err)
	}
	if s := steps(root, "7", filepath.Join(root, ProjectFile)); s.Text("approval") != "auto" {
		t.Error("an approval in a directory below does not count")
	}
	steps(other, "5", filepath.Join(other, ProjectFile))
	if err := os.MkdirAll(filepath.Join(root, "a", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	steps(inner, "9", mine) // a repository of its own
}

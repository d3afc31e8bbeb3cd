package guard

import (
	"slices"
	"strings"
	"testing"
)

func TestEnviron(t *testing.T) {
	dropped := []string{
		"OPENAI_API_KEY=k", "OPENAI_BASE_URL=u", "ANTHROPIC_API_KEY=k", "AWS_SECRET_ACCESS_KEY=k", "AWS_PROFILE=p",
		"GITHUB_TOKEN=t", "GH_TOKEN=t", "NPM_TOKEN=t", "my_api_key=k", "DB_PASSWORD=p", "MYSQL_PWD=p", "CLIENT_SECRET_FILE=f",
		"STRIPE_KEY=k", "MY_SSHKEY=k", "githubToken=t", "MYAPIKEY=k", "SSH_AUTH_SOCK=/s", "BASH_ENV=/evil", "ENV=/evil", "BASH_FUNC_ls%%=() { evil; }", "PROMPT_COMMAND=x",
		"DATABASE_URL=postgres://user:pass@host/db", "https_proxy=http://u:p@proxy:3128", "TOKEN=t",
		"GOOGLE_APPLICATION_CREDENTIALS=/f", "HF_HOME=/h", "AZURE_X=1",
		"GITHUB_TOKEN_RO=t", "STRIPE_API_KEY_LIVE=k", "API_KEY_2=k", "PASS=p", "DBPASS=p", "JWT=j", "COOKIE=c", "SLACK_WEBHOOK_URL=u", "TOKEN_FILE=f",
		"DB_URL=postgres://h/db?user=u&password=hunter", "CONN=Server=x;Password=hunter;", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_VALUE_0=Authorization: Basic dTpwYXNzd29yZDEyMw==",
		"SHELLOPTS=xtrace", "PS4=$(evil)", "INNOCENT=ghp_" + strings.Repeat("a1B2c3D4e5", 4)[:36],
	}
	kept := []string{
		"PATH=/bin", "HOME=/home/u", "LANG=C", "GOFLAGS=-mod=mod", "OLDPWD=/x", "TOKENIZER=bpe", "KEYBOARD=us", "MONKEY=1", "PROXY_BYPASS=h", "GIT_CONFIG_GLOBAL=/g", "GIT_CONFIG_KEY_0=http.extraheader", "COMPASS=n", "PASSENV=a", "ARGS=--password-file=x", "PWD=/x", "OPTS=-Dtoken=",
		"http_proxy=http://proxy:3128", "URL=https://example.org/a:b@c", "EMPTY=", "ANAMNESIS_HOME=/state",
	}
	got := Environ(append(slices.Concat(dropped, kept), "PAGER=less", "TERM=xterm", "ANAMNESIS_SUPERVISOR=1",
		"ANAMNESIS_RUN=7", "=x", "bare"))
	for _, kv := range kept {
		if !slices.Contains(got, kv) {
			t.Errorf("%s was dropped", kv)
		}
	}
	for _, kv := range dropped {
		if slices.Contains(got, kv) {
			t.Errorf("%s was kept", kv)
		}
	}
	for _, want := range []string{"PAGER=cat", "GIT_PAGER=cat", "TERM=dumb", "GIT_TERMINAL_PROMPT=0"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not set", want)
		}
	}
	seen := map[string]bool{}
	for _, kv := range got {
		name, _, _ := strings.Cut(kv, "=")
		if seen[name] || name == "" || name == "ANAMNESIS_SUPERVISOR" || name == "ANAMNESIS_RUN" {
			t.Errorf("%q is set twice or should not be", name)
		}
		seen[name] = true
	}
}

// TestVariable: of a variable that is set twice the last value counts, and setting it leaves one.
func TestVariable(t *testing.T) {
	env := []string{"A=1", "AB=2", "A=3=4"}
	if a, none := Variable(env, "A"), Variable(env, "B"); a != "3=4" || none != "" {
		t.Errorf("A is %q, B %q", a, none)
	}
	if got := SetVariable(env, "A", "5"); !slices.Equal(got, []string{"AB=2", "A=5"}) {
		t.Errorf("set: %q", got)
	}
}

package guard

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/redact"
)

// secretVariable matches the names, in upper case, that are kept from commands beside those whose values are redacted
// ([redact.SecretName]).
//
// Also dropped are variables whose value has the form of a known secret, is a URL with a
// password (DATABASE_URL, a proxy with credentials) or contains a password
// (Server=x;Password=y), and variables that run code before the command does (BASH_ENV, ENV,
// exported shell functions).
var secretVariable = shell.Pattern(`^(MYSQL_PWD|NETRC|SSH_AUTH_SOCK|SSH_ASKPASS|GIT_ASKPASS|GPG_AGENT_INFO|` +
	`KUBECONFIG|DOCKER_AUTH_CONFIG|BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|PS4)$|` +
	`^(OPENAI|ANTHROPIC|AWS|AZURE|GEMINI|MISTRAL|DEEPSEEK|MOONSHOT|KIMI|OPENROUTER|GROQ|COHERE|HF|HUGGINGFACE|TAVILY|` +
	`BRAVE|VAULT|BASH_FUNC)_|(_KEYS?|SSHKEY|TOKENS?|_PAT|_PWD|_PASS|_AUTH|_COOKIE|_DSN|_CREDS)$|` +
	`(^|_)(TOKENS|COOKIES?|WEBHOOK)(_|$)|` +
	`API_?KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|PRIVATE_KEY|ACCESS_KEY|ACCESS_TOKEN|AUTH_TOKEN|API_TOKEN`)

// passwordValue matches a value with a password in it: in an address, or as password=….
var passwordValue = shell.Pattern(`[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@|` +
	`(?i:\b(?:password|passwd|pwd|secret|token|api_?key)=[^&;\s])`)

// gitConfigCount begins the variable with the number of git's configuration variables.
const gitConfigCount = "GIT_CONFIG_COUNT="

// fixed are variables of every command: no pager, no colours, no editor and no question that
// waits for a user.
const fixed = "PAGER=cat GIT_PAGER=cat MANPAGER=cat SYSTEMD_PAGER=cat LESS=FRX " +
	"TERM=dumb NO_COLOR=1 GIT_EDITOR=true GIT_TERMINAL_PROMPT=0 DEBIAN_FRONTEND=noninteractive " +
	"PIP_NO_INPUT=1 NPM_CONFIG_YES=true"

// Environ returns a command's environment, made from the program's own: the variables without
// secrets, plus those that keep a command from waiting for a user.
func Environ(env []string) (kept []string) {
	known, gitValue := redact.New(nil, nil), false
	holdsSecret := func(value string) bool { // in the form of a provider's key, say
		_, found := known.Text(value)
		return len(found) > 0
	}
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" {
			continue
		}
		switch {
		case strings.Contains(" "+fixed, " "+name+"="), name == supervisorMark, name == RunVariable:
		case secretName(name), passwordValue().MatchString(value), holdsSecret(value):
			gitValue = gitValue || strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
		default:
			kept = append(kept, kv)
		}
	}
	if gitValue { // git fails if one of the counted variables is missing
		kept = slices.DeleteFunc(kept, func(kv string) bool { return strings.HasPrefix(kv, gitConfigCount) })
	}
	return append(kept, strings.Fields(fixed)...)
}

func secretName(name string) bool {
	upper := strings.ToUpper(name)
	return upper != "OLDPWD" && (redact.SecretName(upper) || secretVariable().MatchString(upper))
}

// Variable returns the value of a variable of an environment, the last one; empty if it is not set.
func Variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// SetVariable returns an environment in which a variable has a value. It may change env.
func SetVariable(env []string, name, value string) []string {
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	return append(env, name+"="+value)
}

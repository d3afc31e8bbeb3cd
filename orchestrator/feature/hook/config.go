// Package hook runs commands of the user at events of a task. Configuration, input and output have
// the form of Claude Code's hooks: JSON on standard input, exit code 2 or JSON on standard output
// for a decision.
//
// A user's hook runs with the user's rights, as the commands of notify do. A project's runs after
// an approval of its configuration and of the project's programs that it names, in the sandbox of
// a project's programs. A hook that fails decides nothing: the failure is recorded and shown.
package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"anamnesis/knowledge_base/userfile"
	"anamnesis/orchestrator/guard/consent"
)

// Key is the key of config.yaml that names the hooks.
const Key = "hooks"

// The events.
const (
	preToolUse   = "PreToolUse"
	postToolUse  = "PostToolUse"
	postFailure  = "PostToolUseFailure"
	promptSubmit = "UserPromptSubmit"
	notification = "Notification"
	stop         = "Stop"
	subagentStop = "SubagentStop"
)

func events() []string {
	return []string{preToolUse, postToolUse, postFailure, promptSubmit, notification, stop, subagentStop}
}

// Times of a hook.
const (
	defaultTimeout = time.Minute
	maxTimeout     = time.Hour
)

// Hook is a command that runs at an event.
type Hook struct {
	Event, Matcher, Command string
	Timeout                 time.Duration
	Project                 string // the directory that brings it; empty: the user's own

	match *regexp.Regexp
	// approved reports whether what a project's hook runs is as the user approved it.
	approved func() bool
}

// Texts describes hooks to the user.
func Texts(hooks []Hook) string {
	var texts []string
	for _, h := range hooks {
		matcher := "(" + h.Matcher + ")"
		texts = append(texts, h.Event+strings.TrimSuffix(matcher, "()")+": "+h.Command)
	}
	return strings.Join(texts, "; ")
}

// form is the value of Key. Other keys of Claude Code are refused: they would change what a hook does.
type form map[string][]struct {
	Matcher string `yaml:"matcher"`
	Hooks   []struct {
		Type    string  `yaml:"type"`
		Command string  `yaml:"command"`
		Timeout float64 `yaml:"timeout"`
	} `yaml:"hooks"`
}

// Parse reads the value of Key.
func Parse(node *yaml.Node) (all []Hook, err error) {
	var f form
	if err := node.Load(&f, yaml.WithKnownFields()); err != nil {
		line, cause := userfile.YAML(err)
		const want = "EVENT: [{matcher: TOOL, hooks: [{type: command, command: …, timeout: SECONDS}]}]"
		return nil, fmt.Errorf("line %d: %s; want %s", line, cause, want)
	}
	for _, event := range events() { // a map has no order
		for _, g := range f[event] {
			h := Hook{Event: event, Matcher: g.Matcher}
			if h.match, err = regexp.Compile("^(?:" + g.Matcher + ")$"); g.Matcher == "*" || g.Matcher == "" {
				h.match, h.Matcher = regexp.MustCompile(""), ""
			} else if err != nil {
				return nil, fmt.Errorf("%s: the matcher %q is no regular expression: %w", event, g.Matcher, err)
			}
			for _, c := range g.Hooks {
				h.Command, h.Timeout = strings.TrimSpace(c.Command), time.Duration(c.Timeout*float64(time.Second))
				switch {
				case c.Type != "command" && c.Type != "":
					return nil, fmt.Errorf("%s: type %q: only command is known", event, c.Type)
				case h.Command == "":
					return nil, fmt.Errorf("%s: a hook has no command", event)
				case c.Timeout < 0 || h.Timeout > maxTimeout:
					return nil, fmt.Errorf("%s: timeout %v: want 1 to %.0f seconds", event, c.Timeout,
						maxTimeout.Seconds())
				case h.Timeout == 0:
					h.Timeout = defaultTimeout
				}
				all = append(all, h)
			}
		}
		delete(f, event)
	}
	for event := range f {
		return nil, fmt.Errorf("%s is no event; the events are %s", event, strings.Join(events(), ", "))
	}
	return all, nil
}

// Approval returns the approval that a project's configuration needs, and marks its hooks as the project's: a is the
// approval of its file alone.
// It covers the project's programs that the hooks name, too, which are compared again whenever a
// hook runs.
func Approval(a consent.Approval, hooks []Hook, trust *consent.Trust) consent.Approval {
	if len(hooks) == 0 {
		return a
	}
	stamp := func() consent.Approval {
		h, now := sha256.New(), a
		fmt.Fprintln(h, a.Hash)
		for _, hook := range hooks {
			argv := []string{"sh", "-c", hook.Command}
			if err := consent.HashPrograms(h, a.Dir, argv, os.Getenv("PATH")); err != nil {
				fmt.Fprintln(h, err) // one that cannot be read is not the one that was approved
			}
		}
		now.Hash = hex.EncodeToString(h.Sum(nil))
		return now
	}
	first := stamp()
	for i := range hooks {
		hooks[i].Project = a.Dir
		hooks[i].approved = func() bool {
			now := stamp()
			ok, err := trust.Approved(now)
			return ok && err == nil && now.Hash == first.Hash
		}
	}
	return first
}

func matching(all []Hook, event string, names ...string) (out []Hook) {
	for _, h := range all {
		if h.Event == event && slices.ContainsFunc(names, h.match.MatchString) {
			out = append(out, h)
		}
	}
	return out
}

//go:build unix

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"anamnesis/opstream/redact"
	"anamnesis/orchestrator"
)

// secrets are the values this process knows to be secret: the API key, the
// variables whose names say so, and those that were named. They are never
// recorded, shown or sent.
func (a *app) secrets(names []string) []redact.Secret {
	known := redact.FromEnviron(os.Environ())
	for _, name := range append([]string{"OPENAI_API_KEY"}, names...) {
		if value := a.getenv(name); value != "" {
			known = append(known, redact.Secret{Kind: name, Value: value})
		}
	}
	return known
}

// tellUnset warns of the variables whose values a task keeps out of its record
// and which this process cannot look for.
func (a *app) tellUnset(task string, names []string) {
	var unset []string
	for _, name := range names {
		if len(a.getenv(name)) < redact.MinKnownBytes {
			unset = append(unset, name)
		}
	}
	if len(unset) > 0 {
		fmt.Fprintf(a.stderr, "anamnesis: warning: task %s keeps the value of %s out of its record (--redact), and it is not set here: what holds the value would be recorded as it is; set it to the same value\n",
			task, strings.Join(unset, ", "))
	}
}

// unknownTo gives the names that are not among those a task has recorded.
func unknownTo(st *orchestrator.State, names []string) []string {
	var more []string
	for _, name := range names {
		if !slices.Contains(st.Redact, name) && !slices.Contains(more, name) {
			more = append(more, name)
		}
	}
	return more
}

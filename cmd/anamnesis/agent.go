//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"

	assets "anamnesis"
	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/settings"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// version is recorded in every stream the program writes.
const version = "0.1.0"

// service returns the program's state in this process's home, for verbs.
func (a *app) service() (*session.Service, error) { return a.serviceKeyed("") }

// serviceKeyed returns a service whose API key is in another variable of the environment.
func (a *app) serviceKeyed(keyEnv string) (*session.Service, error) {
	if a.copies != nil {
		return a.copies, nil
	}
	return session.New(session.Options{Getenv: a.getenv, Version: version, EAS: assets.EAS, KeyEnv: keyEnv,
		Reader: settings.Reader(a.getenv), Store: a.store, By: a.by, Note: a.notef})
}

// home returns where this process keeps its files.
func (a *app) home() (taskdir.Home, error) {
	s, err := a.service()
	if err != nil {
		return taskdir.Home{}, err
	}
	return s.Home, nil
}

// chooseModel returns a model for a verb, and announces a recording. Empty arguments are
// replaced by the settings.
func (a *app) chooseModel(ctx context.Context, name, baseURL string) (*session.Model, error) {
	svc, set, err := a.configured(".")
	if err != nil {
		return nil, err
	}
	m, err := svc.ChooseModel(ctx, cmp.Or(name, set.Text("model")), cmp.Or(baseURL, set.Text("base_url")), "")
	if err == nil && m.Banner != "" {
		fmt.Fprintln(a.stderr, m.Banner)
	}
	return m, err
}

// tty returns this process's terminal.
func (a *app) tty() *console.Console {
	if a.console == nil {
		a.console = &console.Console{In: a.stdin, Out: a.stdout, Err: a.stderr, Getenv: a.getenv}
	}
	return a.console
}

func (a *app) interactive() bool { return a.tty().Interactive() }
func (a *app) width() int        { return a.tty().Width() }

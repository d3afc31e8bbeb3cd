package search

import (
	"context"
	"errors"
	"maps"
	"slices"

	"anamnesis/orchestrator/tool"
)

// GrepBeside is Grep with a given rg program, "" for none, from a number of
// files on; wait makes it hear all that the program says before it reads.
func GrepBeside(o *Options, rg string, from int, wait bool) tool.Tool {
	find := func(*tool.Env) (string, error) {
		if rg == "" {
			return "", errors.New("none")
		}
		return rg, nil
	}
	return grep{o.orDefaults(), accelerator{find: find, from: from, wait: wait}}
}

// Holding is what a rg program says about files of a directory, sorted.
func Holding(ctx context.Context, rg, dir string, anyCase bool, any, names []string) ([]string, error) {
	holds, err := lookup{rg: rg, world: dir, want: texts{any, anyCase}}.holding(ctx, names)
	return slices.Sorted(maps.Keys(holds)), err
}

// Required is what a match of an expression holds.
func Required(expr string) (any []string, anyCase bool) {
	want := required(expr)
	return want.any, want.anyCase
}

// FindRipgrep is the program that Grep would use.
func FindRipgrep(env *tool.Env) (string, error) { return findRipgrep(env) }

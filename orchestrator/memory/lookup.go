package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"anamnesis/knowledge_base/recalled"
	"anamnesis/worldstate"
)

const (
	// lookUpTime bounds the search of a repository for what cards name; afterwards no symbol is said to be missing.
	lookUpTime = 500 * time.Millisecond
	// settleTime is how long after a lesson its files may have been committed.
	settleTime = 7 * 24 * time.Hour
)

// LookUp sets what each card names and a directory, of the project repo, does not have. Symbols are looked up for
// the project's own cards.
func LookUp(ctx context.Context, hits []recalled.Hit, dir, repo string) {
	ctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	for i, h := range hits {
		gone := func(symbols []string) []string { return removed(ctx, dir, h.Card.Created, symbols) }
		if repo == "" || h.Card.Scope.Repo != repo {
			gone = nil
		}
		hits[i].Missing = recalled.Missing(h.Card, dir, gone)
	}
}

// removed returns those of some symbols whose last word the repository around dir had when the files of a lesson of a
// time were committed, and that no file has now, but for those that git ignores. A symbol that it never had is a
// library's. Without a repository, or where ctx ends first, nothing is known.
func removed(ctx context.Context, dir string, at time.Time, symbols []string) []string {
	top, _, _ := worldstate.Identity(dir)
	if len(symbols) == 0 {
		return nil
	}
	git := worldstate.GitCommand{Top: top}
	// absent returns the symbols that no line of a search has.
	absent := func(symbols []string, where ...string) []string {
		args := []string{"grep", "-I", "-h", "-o", "-w", "-F", "--no-color", "--no-textconv"}
		for _, s := range symbols {
			args = append(args, "-e", lastWord(s))
		}
		out, err := git.Run(ctx, append(args, where...)...)
		if err != nil && !strings.Contains(err.Error(), "exit status 1:") { // with 1 no line matched
			return nil // it may have missed some
		}
		seen := strings.Split(out, "\n")
		return slices.DeleteFunc(slices.Clone(symbols),
			func(s string) bool { return slices.Contains(seen, lastWord(s)) })
	}
	gone := absent(symbols, "--untracked")
	commit, err := git.Run(ctx, "rev-list", "-1", "--before="+at.Add(settleTime).UTC().Format(time.RFC3339), "HEAD")
	if len(gone) == 0 || err != nil || commit == "" {
		return nil
	}
	never := absent(gone, commit)
	if ctx.Err() != nil {
		return nil
	}
	return slices.DeleteFunc(gone, func(s string) bool { return slices.Contains(never, s) })
}

// lastWord returns the name at the end of a symbol such as pkg.Type.Method.
func lastWord(symbol string) string { return symbol[strings.LastIndexByte(symbol, '.')+1:] }

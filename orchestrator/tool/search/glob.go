package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"anamnesis/orchestrator/tool"
)

// Glob is the tool that finds files by name, newest first.
func Glob() tool.Tool { return glob{MaxFiles} }

type glob struct{ maxFiles int }

func (g glob) Spec() tool.Spec {
	return tool.Spec{
		Name: "Glob",
		Description: "Find files by a glob pattern over their paths, newest first. * and ? match within a name, ** " +
			"matches any number of directories, {a,b} and [a-z] work as in a shell: \"**/*.go\", " +
			"\"src/**/test_*.py\". A pattern without a slash matches names at any depth. Ignored files are excluded.",
		Schema: tool.Params(
			tool.Required("pattern", tool.Text("The glob pattern, relative to path.")),
			tool.Optional("path", tool.String("Directory to search, default the working directory.")),
			tool.Optional("include_ignored", tool.Bool("Include files that .gitignore excludes.")),
			tool.Optional("head_limit",
				tool.Int(fmt.Sprintf("Maximum number of results, default %d.", DefaultLimit), 1, MaxHeadLimit)),
			tool.Optional("offset", tool.Int("Number of results to skip.", 0, MaxFiles)),
		),
		ReadOnly: true,
	}
}

func (g glob) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Pattern        string `json:"pattern"`
		Path           string `json:"path"`
		IncludeIgnored bool   `json:"include_ignored"`
		HeadLimit      int    `json:"head_limit"`
		Offset         int    `json:"offset"`
	}](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	a.HeadLimit = cmp.Or(a.HeadLimit, DefaultLimit)
	match, err := matcher(a.Pattern)
	if err != nil {
		return tool.Errorf("Glob: %v.", err), nil
	}
	rel, limited, cancel, refused := start(ctx, env, "Glob", a.Path)
	if refused != nil {
		return *refused, nil
	}
	defer cancel()
	w := &walker{root: env.Root, from: rel, match: match, maxFiles: g.maxFiles, ignored: a.IncludeIgnored}
	notes, err := w.ending(ctx, w.walk(limited))
	if err != nil {
		return failed(ctx, "Glob", err)
	}
	newestFirst(w.found)
	part, note := pageOf(w.found, a.Offset, a.HeadLimit)
	if note != "" { // first, because it says where to go on
		notes = append([]string{note}, notes...)
	}
	var b strings.Builder
	for _, f := range part {
		b.WriteString(f.rel + "\n")
	}
	if len(w.found) == 0 {
		b.WriteString("No file matches.\n")
	}
	r := tool.Result{Text: withNotes(b.String(), notes), Display: fmt.Sprintf("%d files", len(w.found))}
	return r, nil
}

// failed separates a walk's failure: for the model, or internal.
func failed(ctx context.Context, verb string, err error) (tool.Result, error) {
	if ctx.Err() != nil {
		return tool.Result{}, err
	}
	return tool.Errorf("%s: %v.", verb, err), nil
}

func below(dir, rel string) string {
	if dir == "." {
		return rel
	}
	if rel == dir {
		return path.Base(rel)
	}
	return strings.TrimPrefix(rel, dir+"/")
}

// matcher returns the function of a glob pattern. A pattern without a slash matches the last
// name of a path.
func matcher(pattern string) (func(string) bool, error) {
	pattern = strings.TrimPrefix(pattern, "./")
	switch {
	case !doublestar.ValidatePattern(pattern):
		return nil, fmt.Errorf("pattern %q is malformed: a bracket or brace is not closed", pattern)
	case strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "../") || strings.Contains(pattern, "/../"):
		return nil, fmt.Errorf("pattern %q must be relative; give the directory as path", pattern)
	case !strings.Contains(pattern, "/"):
		pattern = "**/" + pattern
	}
	return func(rel string) bool { return doublestar.MatchUnvalidated(pattern, rel) }, nil
}

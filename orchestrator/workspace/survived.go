package workspace

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/worldstate"
	"anamnesis/worldstate/ignore"
)

const (
	maxIgnoreFile = 1 << 20  // bytes of one ignore file
	maxReflogRead = 64 << 10 // bytes of one reflog, from its end
	maxGitLogs    = 200      // branches whose reflogs are read
)

// survived lists what is not part of a world, and so outlives every jump, if it changed since
// a step had ended. It is detected by time stamps and reflogs and only ever read.
type survived struct {
	Ignored []string // Ignored roots and files that changed, sorted
	same    []string // Ignored roots whose top did not change
	Git     []string // moves of HEAD and of branches, in words
	Partial bool     // the search reached its limit
}

// SurvivedSince examines what no snapshot holds.
func SurvivedSince(dir string, since time.Time) survived {
	var s survived
	gitDir, common, chain := worldstate.GitAround(dir)
	if gitDir != "" {
		s.Git = gitMoves(gitDir, common, since)
	}
	left := notice.MaxSurvivedLooked
	s.walk(dir, "", chain, since, &left)
	// First the top of each, then deeper levels.
	for _, p := range s.same {
		if changedBeneath(filepath.Join(dir, filepath.FromSlash(p)), since, &left) {
			s.Ignored = append(s.Ignored, p)
		}
	}
	s.Partial = left < 0
	slices.Sort(s.Ignored)
	return s
}

// walk looks for ignored entries in a directory that is not ignored.
func (s *survived) walk(root, rel string, chain ignore.Chain, since time.Time, left *int) {
	full := filepath.Join(root, filepath.FromSlash(rel))
	if data, err := durable.ReadTail(filepath.Join(full, ".gitignore"), maxIgnoreFile); err == nil {
		chain = chain.With(ignore.Parse(rel, "", data))
	}
	entries, err := os.ReadDir(full)
	if err != nil {
		return // unreadable paths are reported elsewhere
	}
	for _, e := range entries {
		if *left--; *left < 0 {
			return
		}
		p := path.Join(rel, e.Name())
		switch {
		case e.Name() == ".git" || e.Name() == ".anamnesis":
		case chain.Ignored(p, e.IsDir()):
			if changedSince(filepath.Join(full, e.Name()), e.IsDir(), since, left) {
				s.Ignored = append(s.Ignored, p)
			} else if e.IsDir() {
				s.same = append(s.same, p)
			}
		case e.IsDir():
			s.walk(root, p, chain, since, left)
		}
	}
}

// changedSince reports whether an ignored file, or a directory or a direct entry of it, has a
// later time stamp.
func changedSince(name string, isDir bool, since time.Time, left *int) bool {
	info, err := os.Lstat(name)
	if err != nil {
		return false
	}
	if info.ModTime().After(since) {
		return true
	}
	if !isDir {
		return false
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if *left--; *left < 0 {
			return false
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(since) {
			return true
		}
	}
	return false
}

// changedBeneath reports whether anything beneath a directory has a later time
// stamp.
func changedBeneath(name string, since time.Time, left *int) bool {
	found := false
	_ = filepath.WalkDir(name, func(_ string, e os.DirEntry, err error) error {
		if err != nil {
			return nil // unreadable paths are reported elsewhere
		}
		if *left--; *left < 0 {
			return filepath.SkipAll
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(since) {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// gitMoves reads from the reflogs how HEAD and branches moved since. Git writes whole seconds:
// a move in the second in which the step ended counts as the step's own, as a commit at its
// end does.
func gitMoves(gitDir, common string, since time.Time) []string {
	var out []string
	if m := reflogMove(filepath.Join(gitDir, "logs", "HEAD"), since); m != "" {
		out = append(out, "HEAD "+m)
	}
	heads := filepath.Join(common, "logs", "refs", "heads")
	read := 0
	_ = filepath.WalkDir(heads, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if read++; read > maxGitLogs {
			return filepath.SkipAll
		}
		if m := reflogMove(name, since); m != "" {
			if branch, err := filepath.Rel(heads, name); err == nil {
				out = append(out, "branch "+filepath.ToSlash(branch)+" "+m)
			}
		}
		return nil
	})
	return out
}

// reflogMove describes how one reference moved since; empty: not at all.
func reflogMove(name string, since time.Time) string {
	data, err := durable.ReadTail(name, maxReflogRead)
	if err != nil {
		return ""
	}
	from, to, n, last := "", "", 0, ""
	for line := range bytes.Lines(data) {
		head, message, _ := strings.Cut(strings.TrimRight(string(line), "\n"), "\t")
		fields := strings.Fields(head)
		if len(fields) < 4 || len(fields[0]) < 40 {
			continue
		}
		seconds, err := strconv.ParseInt(fields[len(fields)-2], 10, 64)
		if err != nil || seconds <= since.Unix() {
			continue
		}
		if n++; n == 1 {
			from = fields[0]
		}
		to, last = fields[1], message
	}
	switch {
	case n == 0 || from == to:
		return ""
	case strings.Trim(from, "0") == "":
		return fmt.Sprintf("was created at %.8s (%s)", to, quote.OneLine(last, notice.MaxDelivered))
	}
	return fmt.Sprintf("moved from %.8s to %.8s (%s)", from, to, quote.OneLine(last, notice.MaxDelivered))
}

// IgnoredGone returns the ignored paths that steps removed, as their last operations say, and
// that do not exist.
func IgnoredGone(dir string, ops []op.Op) (gone []string) {
	for _, o := range ops {
		if b, ok := o.Body.(*op.WorldSaved); ok {
			for _, path := range b.IgnoredGone {
				if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(path))); err != nil {
					gone = append(gone, path)
				}
			}
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}

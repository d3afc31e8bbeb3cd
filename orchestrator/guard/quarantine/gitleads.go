package quarantine

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// configPlace is what decides, beside its text, whether a configuration of git is inert.
type configPlace struct {
	dir     string // the git directory that contains it
	world   string
	own     []string        // the program's directories, where commands may have a repository with hooks
	trusted map[string]bool // settings of another author; see configLines
	led     string          // where those led; see configLeads
}

// trusts reports whether another author wrote a line, and it still leads where it led.
func (p configPlace) trusts(section, sub string, m []string, line string) bool {
	to := leadEntry(settingName(section, sub, m[1]), strings.TrimSpace(m[2]), p.dir)
	return p.trusted[configLine(section, sub, line)] && strings.Contains(p.led, to)
}

// configLeads returns where a configuration leads git: an entry for each setting that names a
// path.
func configLeads(text, dir string) string {
	var out strings.Builder
	eachSetting(text, func(section, sub string, m []string) {
		out.WriteString(leadEntry(settingName(section, sub, m[1]), strings.TrimSpace(m[2]), dir))
	})
	return out.String()
}

func leadEntry(name, value, dir string) string {
	if to := leadsByConfig(name, value, dir); to != "" {
		return fmt.Sprintf("%s %q %q\n", name, value, to)
	}
	return ""
}

// leadsByConfig returns the path, without links, to which a setting of a git directory leads
// git; empty if none.
func leadsByConfig(name, value, dir string) string {
	switch name {
	case "core.worktree":
	case "remote.*.url", "remote.*.pushurl", "remote.pushdefault", "submodule.*.url", "branch.*.remote",
		"branch.*.pushremote":
		dir = filepath.Dir(dir) // the work tree, which git is in when it reads a path
		if path, ok := strings.CutPrefix(value, "file://"); ok {
			var err error
			if value, err = url.PathUnescape(path); err != nil {
				value = path
			}
		}
		if strings.Contains(value, "://") || !strings.Contains(value, "/") {
			return ""
		}
	default:
		return ""
	}
	return FollowLinks(resolve(value, dir))
}

// resolve returns a path, relative to a directory, as an absolute one. Links are resolved before
// "..".
func resolve(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return dir + "/" + path
}

// inOwn reports whether a path, or a relative one from any parent directory, is in one of the
// program's directories.
func (p configPlace) inOwn(to, value string) bool {
	if to == "" || WithinAny(to, p.own) {
		return to != ""
	}
	rest, up := filepath.Clean(value), false
	for strings.HasPrefix(rest, "../") {
		rest, up = rest[3:], true
	}
	for dir := p.dir; up && dir != "/"; dir = filepath.Dir(dir) { // the work tree may be anywhere
		if WithinAny(FollowLinks(filepath.Dir(dir)+"/"+rest), p.own) {
			return true
		}
	}
	return false
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// maxLinks is how many links the kernel follows in one path.
const maxLinks = 40

// FollowLinks resolves all links of an absolute path, component by component. Names that do
// not exist are kept; empty: a cycle of links.
func FollowLinks(path string) string {
	real, rest, links := "/", strings.Split(path, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		to, err := os.Readlink(next)
		if err != nil {
			real = next
			continue
		}
		if links++; links > maxLinks {
			return ""
		}
		if filepath.IsAbs(to) {
			real = "/"
		}
		rest = slices.Concat(strings.Split(to, "/"), rest)
	}
	return real
}

func isConfig(rel string) bool {
	base := strings.ToLower(filepath.Base(rel))
	return base == "config" || base == "config.worktree"
}

// gitStateDirs are the directories of a git directory whose files git runs, or which determine
// what it runs: its hooks, the state of an interrupted operation, and addresses of remotes in
// their old form.
var gitStateDirs = []string{"hooks", "rebase-merge", "rebase-apply", "sequencer", "remotes", "branches"}

// gitRunDirs are those of gitStateDirs of which git runs something at once, not only when the
// user continues an operation.
var gitRunDirs = []string{"hooks", "remotes", "branches"}

func isStateFile(rel string) bool {
	return slices.Contains(gitStateDirs, strings.ToLower(filepath.Base(filepath.Dir(rel))))
}

// inertStates are the files of an interrupted operation that name no program, beside numbered ones.
const inertStates = `abort-safety allow_rerere_autoupdate amend amend-type applying author-script autostash
cdate_is_adate current-fixups current-commit dirtyindex drop_redundant_commits end final-commit
git-rebase-todo.backup.lock gpg_sign_opt head head-name ignore_date info interactive keep keep_redundant_commits last
message message-fixup message-squash messageid msg msgnum next no-reschedule-failed-exec onto orig-head
original-commit patch patch-merge-index quiet quoted-cr rebased-patches rebasing refs-to-delete
reschedule-failed-exec rewritten rewritten-list rewritten-pending scissors sign signoff squash-onto stopped-sha
strategy_opts threeway trailer update-refs utf8 verbose write-backup`

// The lines of such files that name no program.
var (
	inertStrategy = shell.Pattern(`^\s*(recursive|ort|resolve|octopus|ours|subtree)?\s*$`)
	inertOption   = shell.Pattern(`^\s*(\[options\]|(strategy)\s*=\s*(recursive|ort|resolve|octopus|ours|subtree)|` +
		`(no-commit|edit|allow-empty|allow-empty-message|drop-redundant-commits|keep-redundant-commits|signoff|` +
		`record-origin|allow-ff|mainline|gpg-sign|strategy-option|allow-rerere-auto|default-msg-cleanup)` +
		`\s*=\s*[A-Za-z0-9=:+ _-]*)?\s*$`)
	inertApply = shell.Pattern(`^\s*('(-C[0-9]+|-p[0-9]+|--reject|--ignore-whitespace|--ignore-space-change|` +
		`--whitespace=[a-z-]+|--(directory|exclude|include)=[^']*)'\s*)*$`)
)

// inertState reports whether a file of an interrupted operation, or of gitStateDirs, makes git
// run nothing. Its earlier content counts as the user's.
func inertState(base, text, before string) bool {
	old := strings.Split(before, "\n")
	lines := func(inert func(string) bool) bool {
		return !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			return !inert(line) && !slices.Contains(old, line)
		})
	}
	switch base {
	case "git-rebase-todo", "git-rebase-todo.backup", "done", "todo", "dropped":
		return lines(func(line string) bool { return !runsInRebase(line) })
	case "strategy":
		return inertStrategy().MatchString(text)
	case "opts":
		return lines(inertOption().MatchString)
	case "apply-opt":
		return inertApply().MatchString(text)
	}
	return shell.InList(inertStates, base) || base != "" && strings.Trim(base, "0123456789") == ""
}

// runsInRebase reports whether a line of a rebase's list runs a program.
func runsInRebase(line string) bool {
	word, _, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(line), "\t", " "), " ")
	return word == "x" || word == "exec"
}

// Within reports whether a path is dir or beneath it.
func Within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && filepath.IsLocal(rel)
}

// WithinAny reports whether a path is one of the directories or beneath one.
func WithinAny(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return Within(path, dir) })
}

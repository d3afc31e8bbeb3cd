// Package autorun recognises the files that other programs run, or load, by themselves: who writes one
// decides what runs outside the sandbox later. programs is the list.
package autorun

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/guard/quarantine"
)

// File is a file that another program runs by itself.
type File struct {
	Path string // as it was named
	By   string // the program, and when
}

func (f File) String() string { return f.Path + " (" + f.By + ")" }

// By returns which program runs a file by itself, from its path alone; empty if none is known. Upper
// and lower case count as equal: some file systems do not tell them apart. whole also finds a
// directory with a dot that holds such files: who moves one there moves them.
func By(name string, whole bool) string {
	name = "/" + strings.ToLower(path.Clean(filepath.ToSlash(name)))
	for form, by := range rules() {
		form = "/" + strings.ToLower(form)
		dir, base := path.Split(form)
		if base == "" && strings.Contains(name+"/", dir) {
			return by
		}
		if base != "" && strings.HasSuffix(path.Dir(name)+"/", dir) {
			if ok, _ := path.Match(base, path.Base(name)); ok {
				return by
			}
		}
		holds := strings.TrimSuffix(dir, "/")
		if whole && holds != "" && strings.HasPrefix(path.Base(holds), ".") && strings.HasSuffix(name, holds) {
			return by
		}
	}
	return ""
}

// Named returns the file that a path in a directory is, by its name, where its links lead, or
// because one in the list is a link to it. The zero File: none.
func Named(dir, name string) File {
	if by := By(within(dir, name), false); by != "" {
		return File{name, by}
	}
	full := name
	if !filepath.IsAbs(full) {
		full = filepath.Join(dir, name)
	}
	real, world := quarantine.FollowLinks(full), quarantine.FollowLinks(dir)
	if rel, err := filepath.Rel(world, real); err == nil && rel != "." {
		if by := By(rel, false); by != "" {
			return File{name, by}
		}
	}
	target, _ := os.Stat(real)
	for form, by := range rules() {
		at := filepath.Join(world, filepath.FromSlash(form))
		if strings.HasSuffix(form, "/") {
			if there := quarantine.FollowLinks(at); there != at && strings.HasPrefix(real, there+"/") {
				return File{name, by}
			}
			continue
		}
		// A hard link cannot be followed: the files are compared.
		info, err := os.Stat(at)
		if quarantine.FollowLinks(at) == real || err == nil && target != nil && os.SameFile(info, target) {
			return File{name, by}
		}
	}
	return File{}
}

// within returns a path relative to dir if it is an absolute one beneath it: the directories above
// do not count.
func within(dir, name string) string {
	if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsAbs(name) && filepath.IsLocal(rel) {
		return rel
	}
	return name
}

// writers are programs that write, move or link the files that their arguments name.
const writers = "cp mv ln install tee dd rsync tar bsdtar unzip cpio truncate touch sponge patch sed gsed perl awk " +
	"gawk chmod rename curl wget scp sftp ed ex git hg jj sort"

// Written lists the files that a command line writes, as far as its words show it. A word of a
// writer that is known only when it runs counts as one, as do the directories around such files.
func Written(dir, line string) (out []File) {
	commands, _ := shell.Parse(line)
	base := "" // where cd has led
	look := func(w shell.Word) {
		text := w.Text
		_, value, ok := strings.Cut(text, "=")
		if ok && (strings.HasPrefix(text, "-") || strings.HasPrefix(text, "of=")) {
			text = value
		}
		f := File{text, "a file that is known only when the command runs"}
		if !w.Dynamic {
			at := path.Join(base, text)
			if path.IsAbs(text) {
				at = text
			}
			names := []string{within(dir, text), within(dir, at)}
			i := slices.IndexFunc(names, func(n string) bool { return By(n, true) != "" })
			switch {
			case i >= 0:
				f.By = By(names[i], true)
			case text != "" && !strings.HasPrefix(text, "-"):
				f.By = Named(dir, at).By
			default:
				f.By = ""
			}
		}
		if f.By != "" && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	for _, s := range commands {
		for _, r := range s.Redirects {
			if r.Writes() && !strings.HasPrefix(r.Op, "<<") {
				look(r.File)
			}
		}
		program := s.Program()
		if (program == "cd" || program == "pushd") && len(s.Args()) == 1 && !s.Args()[0].Dynamic {
			base = path.Join(base, s.Args()[0].Text)
		}
		if !shell.InList(writers, program) || readOnly(s) {
			continue
		}
		if s.Via == "xargs" {
			look(shell.Word{Text: program, Dynamic: true}) // it reads the words
		}
		for _, w := range s.Args() {
			look(w)
		}
	}
	return out
}

// readOnly reports whether a command of writers only reads: git status, sed without -i.
func readOnly(s shell.Simple) bool {
	args := s.Args()
	switch s.Program() {
	case "git", "hg", "jj":
		i := slices.IndexFunc(args, func(w shell.Word) bool { return !strings.HasPrefix(w.Text, "-") })
		return i >= 0 && shell.InList("status diff log show add commit blame grep ls-files check-ignore cat push "+
			"fetch branch tag", args[i].Text)
	case "sed", "gsed", "perl":
		return !slices.ContainsFunc(args, func(w shell.Word) bool {
			return strings.HasPrefix(w.Text, "--in-place") ||
				strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "i")
		})
	case "awk", "gawk":
		return !slices.ContainsFunc(args, func(w shell.Word) bool {
			return strings.Contains(w.Text, "inplace") || strings.Contains(w.Text, ">")
		})
	case "sort":
		return !slices.ContainsFunc(args, func(w shell.Word) bool {
			return strings.HasPrefix(w.Text, "-o") || strings.HasPrefix(w.Text, "--output")
		})
	}
	return false
}

// Marks are the times and sizes of the listed files at the top of a directory.
type Marks map[string]string

// Mark reads them. It does not look below the top, nor into patterns.
func Mark(dir string) Marks {
	out := Marks{}
	for form := range rules() {
		at := filepath.Join(dir, filepath.FromSlash(form))
		found := []string{at}
		if strings.HasSuffix(form, "/") {
			found, _ = filepath.Glob(filepath.Join(at, "*"))
		}
		for _, file := range found[:min(len(found), maxMarked)] {
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				rel, _ := filepath.Rel(dir, file)
				out[rel] = fmt.Sprint(info.ModTime().UnixNano(), info.Size(), info.Mode())
			}
		}
	}
	return out
}

// maxMarked bounds the files of one listed directory.
const maxMarked = 100

// Changed lists the files that are new or other than before, and those among paths, sorted.
func (m Marks) Changed(dir string, paths []string) []File {
	for name, mark := range Mark(dir) {
		if m[name] != mark {
			paths = append(paths, name)
		}
	}
	slices.Sort(paths)
	var out []File
	for _, name := range slices.Compact(paths) {
		if by := By(name, false); by != "" {
			out = append(out, File{name, by})
		}
	}
	return out
}

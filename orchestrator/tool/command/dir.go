//go:build unix

package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
)

// ProjectDir is where a project keeps its tools, in its own root.
const ProjectDir = ".anamnesis/tools"

// maxFiles bounds the tools of one folder.
const maxFiles = 200

// trustKind is the kind of an approval of a project's tool.
const trustKind = "command-tool"

// Folder is where files of tools stand.
type Folder struct {
	Path string
	// Project is the directory whose own folder it is: its tools are offered
	// when they were approved. Empty for the person's.
	Project string
}

// File is one file of a folder.
type File struct {
	Path string
	Tool string // the name it is to have
	Text string // what stands in it
	Err  error  // why it is no tool

	folder Folder
	tool   *remembered
	hash   string
}

// Read gives a folder's files, sorted by name. A folder that is not there has
// none. Files that are no tools are among them, with the reason.
func (f Folder) Read() ([]File, error) {
	entries, err := os.ReadDir(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read tools: %w", err)
	}
	var out []File
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".yaml")
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		if len(out) == maxFiles {
			return out, fmt.Errorf("read tools: %s has more than %d files", f.Path, maxFiles)
		}
		file := File{Path: filepath.Join(f.Path, e.Name()), Tool: name, folder: f}
		if err := file.read(); errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		} else if err != nil {
			file.Err = err
		}
		out = append(out, file)
	}
	return out, nil
}

func (f *File) read() error {
	info, err := os.Stat(f.Path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a file")
	}
	in, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err != nil {
		return err
	}
	if len(data) > maxFileBytes {
		return fmt.Errorf("more than %d bytes", maxFileBytes)
	}
	f.Text = string(data)
	if f.tool, err = parse(f.Tool, data); err != nil {
		return err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n%s\n", f.folder.Project, f.Tool, data)
	if f.folder.Project != "" {
		if err := guard.HashPrograms(h, f.folder.Project, f.tool.Command, os.Getenv("PATH")); err != nil {
			return err
		}
	}
	f.hash = hex.EncodeToString(h.Sum(nil))
	if f.folder.Project != "" {
		again := File{Path: f.Path, Tool: f.Tool, folder: f.folder}
		want := f.hash
		f.tool.unchanged = func() bool {
			now := again
			return now.read() == nil && now.hash == want
		}
	}
	return nil
}

func (f *File) approval() guard.Approval {
	return guard.Approval{Kind: trustKind, Name: f.Tool, Dir: f.folder.Project, Hash: f.hash}
}

// Allow reports whether the tool may be used: it is the person's own, or was
// approved as it is now, or the person says yes; see guard.Trust.Allow.
func (f *File) Allow(ctx context.Context, trust *guard.Trust, ask func(ctx context.Context, question string) bool) (bool, error) {
	if f.folder.Project == "" {
		return true, nil
	}
	return trust.Allow(ctx, f.approval(), ask, func() string {
		return fmt.Sprintf("%s makes a tool of a command:\n%s\nApprove it?", f.Path, tool.Visible(f.Text))
	})
}

// Approve records that a person approved the tool as it is.
func (f *File) Approve(trust *guard.Trust) error {
	a := f.approval()
	a.At = time.Now().UTC()
	return trust.Approve(a)
}

// Source offers the tools of some folders. It is a tool.Source; Tools belongs to
// one goroutine.
type Source struct {
	Folders []Folder
	Trust   *guard.Trust
	// Ask puts a question to the person; nil: nobody is there.
	Ask func(ctx context.Context, question string) bool

	version uint64
	offered []string          // hashes of the tools offered
	said    map[string]string // what was said of each file
	refused map[string]bool   // hashes the person said no to
}

// Tools implements tool.Source.
func (s *Source) Tools(ctx context.Context) tool.Offer {
	var out tool.Offer
	var hashes []string
	now := make(map[string]string)
	tell := func(path, text string) {
		now[path] = text
		if s.said[path] != text {
			out.News = append(out.News, text)
		}
	}
	for _, folder := range s.Folders {
		files, err := folder.Read()
		if err != nil {
			tell(folder.Path, err.Error()+".")
		}
		for _, f := range files {
			if f.Err != nil {
				tell(f.Path, fmt.Sprintf("%s is no tool: %v.", f.Path, f.Err))
				continue
			}
			if ok, err := s.allow(ctx, &f); err != nil {
				tell(f.Path, fmt.Sprintf("The tool %s is left out: %v.", f.Tool, err))
				continue
			} else if !ok {
				tell(f.Path, fmt.Sprintf("The tool %s is left out: 'anamnesis tools approve %s' shows it as it is now and asks; nobody approved that (%s).", f.Tool, f.Tool, f.Path))
				continue
			}
			hashes = append(hashes, f.hash)
			out.Tools = append(out.Tools, f.tool)
		}
	}
	if !slices.Equal(hashes, s.offered) {
		s.version++
	}
	s.offered, s.said = hashes, now
	out.Version = s.version
	return out
}

// allow asks about one content once.
func (s *Source) allow(ctx context.Context, f *File) (bool, error) {
	ask := s.Ask
	if s.refused[f.hash] {
		ask = nil
	}
	ok, err := f.Allow(ctx, s.Trust, ask)
	if !ok && err == nil {
		if s.refused == nil {
			s.refused = make(map[string]bool)
		}
		s.refused[f.hash] = true
	}
	return ok, err
}

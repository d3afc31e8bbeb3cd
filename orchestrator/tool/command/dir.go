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

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/tool"
)

// ProjectDir is where a project keeps its tools.
const ProjectDir = ".anamnesis/tools"

// maxFiles bounds the tools of one folder.
const maxFiles = 200

// confinedMark is part of the hash of a project's tool, which runs in its own sandbox:
// approvals from before there was one must be renewed.
const confinedMark = "in a sandbox, 1\n"

// trustKind is the kind of an approval of a project's tool.
const trustKind = "command-tool"

// Folder is a folder of tool files.
type Folder struct {
	Path string
	// Project is the directory whose folder it is: its tools need approval. Empty for the
	// user's.
	Project string
}

// File is one file of a folder.
type File struct {
	Path string
	Tool string // the tool's name
	Text string // its content
	Err  error  // why it is not a tool
	// Grants are the permissions beyond its sandbox that Approve grants a project's tool.
	Grants guard.Grants

	folder Folder
	tool   *remembered
	hash   string
}

// Read returns a folder's files, sorted by name. A missing folder has none. Files that are not
// tools are included, with the reason.
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
	data, err := durable.ReadFile(f.Path, maxFileBytes)
	if err != nil {
		return err
	}
	f.Text = string(data)
	if f.tool, err = parse(f.Tool, data); err != nil {
		return err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n%s\n", f.folder.Project, f.Tool, data)
	if f.folder.Project != "" {
		if f.tool.Sandbox != "" {
			return remedy.With(errors.New("sandbox: a project's tool runs in the sandbox"), remedy.GrantTool, "")
		}
		io.WriteString(h, confinedMark)
		if err := consent.HashPrograms(h, f.folder.Project, f.tool.Command, os.Getenv("PATH")); err != nil {
			return err
		}
	}
	f.hash = hex.EncodeToString(h.Sum(nil))
	return nil
}

// Project reports whether a project brings the file.
func (f *File) Project() bool { return f.folder.Project != "" }

func (f *File) approval() consent.Approval {
	return consent.Approval{Kind: trustKind, Name: f.Tool, Dir: f.folder.Project, Hash: f.hash}
}

// grants are the permissions that approving the file grants: those requested with the approval,
// and the network if the file needs it.
func (f *File) grants() *guard.Grants {
	g := f.Grants
	g.Network = g.Network || f.tool.Network
	return &g
}

// Beyond describes the confinement of a project's tool and its grants, for the user who is to
// approve it.
func (f *File) Beyond() string { return f.grants().Beyond(nil) }

// approve makes a project's tool check its approval at each call: for the content that was
// offered, with the present grants.
func (f *File) approve(trust *consent.Trust) {
	if f.folder.Project == "" {
		return
	}
	again := File{Path: f.Path, Tool: f.Tool, folder: f.folder}
	want := f.hash
	f.tool.place = f.approval().Place()
	f.tool.granted = func() (guard.Grants, bool) {
		now := again
		if now.read() != nil || now.hash != want {
			return guard.Grants{}, false
		}
		g, ok, err := trust.Granted(now.approval())
		return g, ok && err == nil
	}
}

// Allow reports whether the tool may be used: it is the user's own, its present content was
// approved, or the user says yes; see consent.Trust.Allow.
func (f *File) Allow(ctx context.Context, trust *consent.Trust, ask func(ctx context.Context, question string) bool) (bool, error) {
	if f.folder.Project == "" {
		return true, nil
	}
	a := f.approval()
	a.Grants = f.grants()
	return trust.Allow(ctx, a, ask, func() string {
		return fmt.Sprintf("%s makes a tool of a command:\n%s\n%s\nAn approval from the command line can give it more.\nApprove it?", f.Path, tool.Visible(f.Text), f.Beyond())
	})
}

// Revoke removes the approval of a project's tool.
func (f *File) Revoke(trust *consent.Trust) error { return trust.Revoke(f.approval()) }

// Granted returns an approved tool's grants.
func (f *File) Granted(trust *consent.Trust) (guard.Grants, error) {
	g, _, err := trust.Granted(f.approval())
	return g, err
}

// Approve records that a user approved the tool's present content.
func (f *File) Approve(trust *consent.Trust) error {
	a := f.approval()
	a.Grants = f.grants()
	return trust.Approve(a)
}

// Source offers the tools of some folders. It is a tool.Source; Tools belongs to one
// goroutine.
type Source struct {
	Folders []Folder
	Trust   *consent.Trust
	// Ask puts a question to the user; nil: there is no user.
	Ask func(ctx context.Context, question string) bool

	version uint64
	offered []string          // hashes of the tools offered
	said    map[string]string // the last news of each file
	refused map[string]bool   // hashes the user said no to
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
				tell(f.Path, fmt.Sprintf("%s is not a tool: %v.", f.Path, f.Err))
				continue
			}
			if ok, err := s.allow(ctx, &f); err != nil {
				tell(f.Path, fmt.Sprintf("The tool %s is left out: %v.", f.Tool, err))
				continue
			} else if !ok {
				tell(f.Path, fmt.Sprintf("The tool %s is left out: no user has approved it as it is now (%s).", f.Tool, f.Path))
				continue
			}
			f.approve(s.Trust)
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

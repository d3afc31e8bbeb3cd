package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/oklog/ulid/v2"

	"anamnesis/orchestrator/tool"
)

// tempPrefix begins the name of a file that is being written. It is left behind only if the
// program is killed in the middle of a write.
const tempPrefix = ".anamnesis-tmp-"

// WriteFile is the tool that writes a whole file or appends to it. The file is replaced
// atomically: readers see the old or the new content.
func WriteFile() tool.Tool { return writeFile{} }

type writeFile struct{}

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Mode    string `json:"mode"`
}

func (writeFile) Spec() tool.Spec {
	return tool.Spec{
		Name: "WriteFile",
		Description: "Write a text file: replaces its content, or appends to it. Creates missing directories and " +
			"keeps the file's permissions. To change part of a file, use StrReplaceFile.",
		Schema: tool.Params(
			tool.Required("path", tool.Text("Path of the file, relative to the working directory.")),
			tool.Required("content",
				tool.String("The exact content, including the final newline if the file should have one.")),
			tool.Optional("mode", tool.OneOf("overwrite (default) or append.", "overwrite", "append")),
		),
		Edits: true,
	}
}

func (writeFile) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[writeArgs](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	t, err := locateWritable(env, a.Path, tool.Created)
	if err != nil {
		return result("WriteFile", err), nil
	}
	defer t.close()
	data := []byte(a.Content)
	if a.Mode == "append" && t.info != nil {
		old, err := t.readAll()
		if err != nil {
			return result("WriteFile", err), nil
		}
		data = append(old, data...)
	}
	existed := t.info != nil
	if err := t.replace(data); err != nil {
		return result("WriteFile", err), nil
	}
	verb := map[bool]string{true: "replaced", false: "created"}[existed]
	if existed && a.Mode == "append" {
		verb = "appended to"
	}
	r := tool.Textf("%s %s; bytes_written: %d; existed: %v; size: %d", verb, t.rel, len(a.Content), existed, len(data))
	r.Text += t.linkNote()
	r.Writes = []string{t.rel}
	r.Display = fmt.Sprintf("%s %s, %d bytes", verb, t.rel, len(a.Content))
	return r, nil
}

func locateWritable(env *tool.Env, name string, parents tool.Parents) (*target, error) {
	rel, err := env.Resolve(name)
	if err != nil {
		return nil, err
	}
	if reason := tool.Protected(rel); reason != "" {
		return nil, &tool.PathError{Path: name, Reason: reason}
	}
	t, err := locate(env, name, parents)
	if err != nil {
		return nil, err
	}
	// The path may lead elsewhere by now.
	if reason := tool.Protected(t.rel); reason != "" {
		t.close()
		return nil, &tool.PathError{Path: name, Reason: reason}
	}
	if t.info != nil && t.info.Mode().Perm()&0o222 == 0 {
		t.close()
		return nil, &tool.PathError{Path: name, Reason: "is read-only; make it writable with chmod first if it " +
			"should be changed"}
	}
	return t, nil
}

// replace replaces the file's content atomically: a new, synced file takes its name. Mode and,
// if possible, owner stay. The file must be unchanged since it was located.
func (t *target) replace(data []byte) (err error) {
	temp := tempPrefix + ulid.Make().String()
	// What replaces a file is readable by its owner only until it has the mode of the old one, which may be private.
	perm := fs.FileMode(0o666)
	if t.info != nil {
		perm = 0o600
	}
	f, err := t.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return t.fault(err)
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = t.dir.Remove(temp) // report the first error
			err = t.fault(err)
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if t.info != nil {
		// The owner comes before the mode: the kernel clears the set-user-id bits when the owner changes.
		st, ok := t.info.Sys().(*syscall.Stat_t)
		if ok && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
			_ = f.Chown(int(st.Uid), int(st.Gid)) // if that fails, the new owner stays, as with any editor
		}
		const kept = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
		if err := f.Chmod(t.info.Mode() & kept); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	// As late as possible: what another program writes between this check and the rename is lost.
	if err := t.unchanged(); err != nil {
		return err
	}
	return t.dir.Rename(temp, t.base)
}

// unchanged checks that the file is as it was when it was located.
func (t *target) unchanged() error {
	now, err := t.dir.Lstat(t.base)
	switch {
	case t.info == nil && errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && t.info != nil && os.SameFile(now, t.info) && now.Mode() == t.info.Mode() &&
		now.Size() == t.info.Size() && now.ModTime().Equal(t.info.ModTime()):
		return nil
	}
	return errors.New("was changed by something else meanwhile; nothing was written, read it again")
}

// linkNote reports a broken hard link: only this name changed.
func (t *target) linkNote() string {
	if t.info == nil {
		return ""
	}
	if n := tool.Links(t.info); n > 1 {
		return fmt.Sprintf("; it had %d names (hard links), the others keep the old content", n)
	}
	return ""
}

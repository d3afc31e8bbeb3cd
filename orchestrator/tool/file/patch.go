package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/tool"
)

// PatchFile is the tool that applies a patch to one or several files, completely or not at
// all. It does not change bytes that the patch keeps or does not name. allowSecrets is as for
// ReadFile.
func PatchFile(allowSecrets []string) tool.Tool { return patchFile{allowSecrets} }

type patchFile struct{ allowSecrets []string }

type patchArgs struct {
	Patch string `json:"patch"`
}

func (patchFile) Spec() tool.Spec {
	return tool.Spec{
		Name: "PatchFile",
		Description: "Apply a patch to one or more files, between *** Begin Patch and *** End Patch: *** Update " +
			"File: NAME (then perhaps *** Move to: NAME), *** Add File: NAME, *** Delete File: NAME. A line of a " +
			"change begins with a space if it stays, - or +. Changes of one file are separated by @@, or @@ and a " +
			"whole line of the file above. The lines that stay or go must occur only once there; otherwise add " +
			"surrounding lines. If one change fails, no file is changed.",
		Schema: tool.Params(
			tool.Required("patch", tool.Text("The patch. Paths are relative to the working directory."))),
		Edits: true,
	}
}

func (f patchFile) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[patchArgs](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	changes, err := parsePatch(a.Patch)
	if err != nil {
		return tool.Errorf("PatchFile was not run: %v. Nothing was written.", err), nil
	}
	var all []*planned
	defer func() {
		for _, p := range all {
			p.close()
		}
	}()
	named := make(map[string]bool)
	for _, c := range changes {
		p, err := f.plan(env, c)
		if p != nil { // also one that failed: it has the file's directory open
			all = append(all, p)
		}
		if err == nil {
			err = p.unique(named)
		}
		if err != nil {
			return tool.Errorf("PatchFile: %v. Nothing was written.", err), nil
		}
	}
	// All changes fit. One that fails now may have been made in part, and is undone with those before it.
	for i, p := range all {
		if err := p.write(); err != nil {
			return tool.Errorf("PatchFile: %v. %s", err, undo(env, all[:i+1])), nil
		}
	}
	return patched(all), nil
}

func patched(all []*planned) tool.Result {
	var lines []string
	var r tool.Result
	for _, p := range all {
		verb, rel := "patched", p.target.rel
		switch {
		case p.kind == add:
			verb = "created"
		case p.kind == remove:
			verb = "deleted"
		case p.dest != nil:
			verb, rel = "moved", p.target.rel+" to "+p.dest.rel
			r.Writes = append(r.Writes, p.dest.rel)
		}
		r.Reads, r.Writes = append(r.Reads, p.target.rel), append(r.Writes, p.target.rel)
		lines = append(lines,
			fmt.Sprintf("%s %s; hunks: %d; size: %d%s", verb, rel, len(p.hunks), len(p.after), p.target.linkNote()))
	}
	r.Text = strings.Join(lines, "\n")
	r.Display = quote.Number(len(all), "file")
	return r
}

// planned is a change and what is needed to make it.
type planned struct {
	change
	target *target
	dest   *target // where it is moved to, or nil
	before string
	after  string
	begun  bool
}

func (p *planned) close() {
	for _, t := range []*target{p.target, p.dest} {
		if t != nil {
			t.close()
		}
	}
}

// plan locates a change's files and computes their new content. A renamed file of secrets must
// still look like one, and no error quotes its lines.
func (f patchFile) plan(env *tool.Env, c change) (*planned, error) {
	t, err := locateWritable(env, c.path, tool.Parents(c.kind == add))
	if err != nil {
		return nil, err
	}
	p := &planned{change: c, target: t}
	secret := tool.SecretFile(t.rel, f.allowSecrets)
	if t.info != nil {
		data, err := t.readAll()
		if err != nil {
			return p, err
		}
		p.before = string(data)
	}
	if p.after, err = c.apply(t.rel, p.before, t.info != nil, secret); err != nil {
		return p, err
	}
	if c.to != "" {
		if p.dest, err = locateWritable(env, c.to, tool.Created); err != nil {
			return p, err
		}
		if p.dest.info != nil {
			return p, p.dest.errorf("exists already, so nothing can be moved there")
		}
		if secret && !tool.SecretFile(p.dest.rel, nil) {
			return p, t.errorf("looks like a file of secrets and is not given a name that does not; a user can allow " +
				"it (setting allow-secrets)")
		}
	}
	return p, nil
}

// apply returns a file's content after a change of its hunks. The error about a secret file does not quote it.
func (c change) apply(rel, before string, exists, secret bool) (string, error) {
	refuse := func(reason string) (string, error) { return "", &tool.PathError{Path: rel, Reason: reason} }
	switch {
	case c.kind == add && exists:
		return refuse("exists already; change it with Update File, or delete it first")
	case c.kind != add && !exists:
		return "", missing(rel)
	}
	doc, err := readDocument(before).patch(c.hunks)
	text := doc.text()
	switch {
	case err != nil && secret:
		return refuse("the patch does not fit, and the file " + tool.SecretRefusal)
	case err != nil:
		return refuse(err.Error())
	case len(text) > MaxEditBytes:
		return refuse(fmt.Sprintf("would become %d bytes, at most %d are allowed", len(text), MaxEditBytes))
	}
	return text, nil
}

// unique rejects a patch that names a file twice.
func (p *planned) unique(named map[string]bool) error {
	for _, t := range []*target{p.target, p.dest} {
		if t == nil {
			continue
		}
		if named[t.rel] {
			return t.errorf("is named twice in the patch; put its hunks together")
		}
		named[t.rel] = true
	}
	return nil
}

func (p *planned) write() error {
	p.begun = true
	switch {
	case p.kind == remove:
		return p.target.remove()
	// A move writes the new file before it removes the old one: a crash in between leaves both.
	case p.dest != nil:
		if err := p.dest.replace([]byte(p.after)); err != nil {
			return err
		}
		if err := p.dest.dir.Chmod(p.dest.base, p.target.info.Mode().Perm()); err != nil {
			return p.dest.fault(err)
		}
		return p.target.remove()
	}
	return p.target.replace([]byte(p.after))
}

// remove deletes the file, which must be unchanged since it was located.
func (t *target) remove() error {
	if err := t.unchanged(); err != nil {
		return t.fault(err)
	}
	if err := t.dir.Remove(t.base); err != nil {
		return t.fault(err)
	}
	return nil
}

// undo restores the old content of the files that were written, the last one first, and
// reports the outcome.
func undo(env *tool.Env, all []*planned) string {
	var errs []error
	for i := len(all) - 1; i >= 0; i-- {
		p := all[i]
		if !p.begun {
			continue
		}
		if p.dest != nil {
			errs = append(errs, backTo(env, p.dest.rel, nil, "", p.after))
		}
		errs = append(errs, backTo(env, p.target.rel, p.target.info, p.before, p.after))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Sprintf(
			"What had been written could not all be taken back: %v. Look at the files before you go on.", err)
	}
	return "What had been written was taken back."
}

// backTo restores a file unless another process has changed it since. was is nil if there was
// none.
func backTo(env *tool.Env, rel string, was fs.FileInfo, before, ours string) error {
	existed := was != nil
	t, err := locateWritable(env, rel, tool.Parents(existed))
	if err != nil {
		return err
	}
	defer t.close()
	if t.info != nil {
		now, err := t.readAll()
		if err != nil {
			return err
		}
		if string(now) != ours {
			if existed && string(now) == before {
				return nil // it had not been written
			}
			return &tool.PathError{Path: rel, Reason: "was changed by something else meanwhile"}
		}
	}
	switch {
	case existed:
		if err := t.replace([]byte(before)); err != nil {
			return err
		}
		return t.dir.Chmod(t.base, was.Mode().Perm())
	case t.info != nil:
		return t.remove()
	}
	return nil
}

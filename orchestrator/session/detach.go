package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"anamnesis/opstream"
	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/taskdir"
)

// resumeDetached resumes a copy of a task that a bucket keeps, without the bucket. If that fails, there is no copy.
func (s *Service) resumeDetached(ctx context.Context, task, message string, set Settings, c Client) (*Session, error) {
	kept, err := replica.ReadCursor(s.Home, task)
	if err == nil && kept == nil {
		err = remedy.With(Usagef("task %s is not kept in a bucket", task), remedy.Resume, task)
	}
	if err != nil {
		return nil, err
	}
	id, err := s.detach(ctx, task, message)
	if err != nil {
		return nil, fmt.Errorf("copy task %s: %w", task, err)
	}
	set.Remote = Remote{arrived: kept.Last.Holder != kept.Own}
	resumed, err := s.Resume(ctx, id, message, set, c)
	if err != nil {
		return nil, JoinClose(err, os.RemoveAll(s.Home.Task(id)))
	}
	resumed.Opening = append(resumed.Opening,
		fmt.Sprintf("task %s is a copy of %s that no bucket keeps; %s stays as it is, and what others do in it is not in the copy", id, task, task))
	return resumed, nil
}

// detach copies this home's copy of a task under a new name, which it returns. The task appears whole, or not at all.
func (s *Service) detach(ctx context.Context, task, message string) (id string, err error) {
	lock, err := replica.Lock(s.Home, task)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	st, err := taskdir.ReadState(s.Home, task)
	if err != nil {
		return "", err
	}
	if _, err := continues(st, message); err != nil {
		return "", err
	}
	making := ".copy-" + task // no task has such a name
	dir := s.Home.Task(making)
	remove := func() error { return errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+".part")) }
	if err := remove(); err != nil { // of a process that was killed
		return "", err
	}
	defer remove()
	got, err := opstream.Salvage(ctx, s.Home.Task(task), dir)
	if err == nil && got.Why != "" {
		err = remedy.With(fmt.Errorf("%w: %s", opstream.ErrCorrupt, got.Why), remedy.Salvage, task)
	}
	if err != nil {
		return "", err
	}
	vault, err := os.ReadFile(s.Home.Vault(task))
	if err == nil {
		err = durable.WriteFile(durable.OS{}, s.Home.Vault(making), vault)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.CopyFS(filepath.Join(dir, taskdir.BundlesName), os.DirFS(filepath.Join(s.Home.Task(task), taskdir.BundlesName)))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if id, err = taskdir.NewTaskID(s.Home, st.Said.First, ""); err != nil {
		return "", err
	}
	l, err := s.openIdle(making, st)
	if err == nil {
		err = l.Record(ctx, &op.TaskResumed{Program: s.Program(), Task: id, Notice: fmt.Sprintf(
			"[TASK] From here on this is %s, a copy of task %s without its bucket. What others do in %s is not known here.", id, task, task)})
		err = JoinClose(err, l.Journal.Close())
	}
	if err == nil {
		err = unix.Rename(dir, s.Home.Task(id)) // in place of the empty directory that reserves the name
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(s.Home.Task(id)))
	}
	return id, durable.Sync(filepath.Dir(dir))
}

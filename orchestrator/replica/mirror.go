package replica

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// mirrorsName is the folder of a home with the mirrors of buckets.
const mirrorsName = "remotes"

// maxMirrored is how many tasks are copied at once.
const maxMirrored = 8

// MirrorHome returns the home, below h, that has the copies of a bucket's tasks.
func MirrorHome(b bucket.Bucket, h taskdir.Home) taskdir.Home {
	sum := sha256.Sum256([]byte(b.String()))
	h.State = filepath.Join(h.State, mirrorsName, hex.EncodeToString(sum[:8]))
	h.Remote = b.String()
	below := h
	h.Standing = func(task string, st *state.State) string { return standing(below, task, st) }
	return h
}

// Mirror brings the copies in a MirrorHome up to date: the whole of each task whose name begins with task, or of
// the one whose subagent it is; if there are none, the records of all tasks. It returns why tasks could not be copied.
func Mirror(ctx context.Context, b bucket.Bucket, h taskdir.Home, task string) (failed []error, err error) {
	all, err := Tasks(ctx, b)
	if err != nil {
		return nil, err
	}
	names := []string{task}
	if !slices.Contains(all, task) {
		names = slices.DeleteFunc(slices.Clone(all), func(name string) bool {
			return task == "" || !strings.HasPrefix(name, task) && !strings.HasPrefix(task, name+".")
		})
	}
	records := len(names) == 0
	if records {
		names, err = all, prune(h, all)
	}
	failed = make([]error, len(names))
	var group errgroup.Group
	group.SetLimit(maxMirrored)
	for i, name := range names {
		group.Go(func() error {
			if failed[i] = mirrorTask(ctx, b, h, name, records); records && errors.Is(failed[i], ErrNoTask) {
				failed[i] = nil // its holder died before its first object, or a user made the name
			}
			return nil
		})
	}
	_ = group.Wait()
	failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	if err = cmp.Or(ctx.Err(), err); err == nil && len(failed) == len(names) && len(failed) > 0 {
		err = failed[0]
	}
	return failed, err
}

func mirrorTask(ctx context.Context, b bucket.Bucket, h taskdir.Home, task string, records bool) error {
	if err := os.MkdirAll(filepath.Dir(h.Task(task)), 0o700); err != nil {
		return err
	}
	lock, err := durable.Lock(h.Task(task) + ".lock") // another process may read the bucket, too
	if err != nil {
		return err
	}
	defer lock.Close()
	dir, had := h.Task(task), h.HasTask(task)
	_, err = pullTask(ctx, b, h, task, records)
	if had && errors.Is(err, ErrDamaged) { // the copy may be of an earlier task of this name; else it stays
		earlier := dir + ".copy.lock" // no task has such a name
		if renamed := errors.Join(os.RemoveAll(earlier), os.Rename(dir, earlier)); renamed != nil {
			return renamed
		}
		if _, err = pullTask(ctx, b, h, task, records); err != nil {
			return errors.Join(err, os.RemoveAll(dir), os.Rename(earlier, dir))
		}
		return os.RemoveAll(earlier)
	}
	if err != nil && !had { // a copy that is not whole must not be listed
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// prune removes the copies of tasks that the bucket no longer has.
func prune(h taskdir.Home, all []string) error {
	copies, err := h.Tasks()
	for _, task := range copies {
		if !slices.Contains(all, cmp.Or(h.KeptAs(task), task)) {
			err = errors.Join(err, os.RemoveAll(h.Task(task)))
		}
	}
	return err
}

// standing says how a copied task stands, as far as its log shows it: done, abandoned, asking, running, or waiting for
// a user, a provider or somebody who continues it.
func standing(h taskdir.Home, task string, st *state.State) string {
	c, _ := ReadCursor(h, h.KeptAs(task)) // one that cannot be read counts as none
	switch idle := st.Waits(); {
	case idle && st.Turn.End != nil && st.Turn.End.Reason == "done":
		return "done"
	case c != nil && !c.Last.Released && time.Since(c.Last.Time) > max(DefaultLease, c.Last.Lease):
		return "abandoned"
	case st.Questions.Open() != nil:
		return "asking"
	case c != nil && !c.Last.Released && !idle && st.Outage == nil:
		return "running"
	}
	return "waiting"
}

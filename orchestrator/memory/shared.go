package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/facts"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// The names of what homes tell one another in a bucket, beside the tasks' logs: what a task showed, and that a user
// reviewed a card. A home keeps what it has read as files of these names.
const (
	ReviewsPrefix = "reviews/"      // then the hash of the card's text; see also SharedPrefix
	SharedVersion = 1               // another one is passed over
	ShareTime     = 3 * time.Second // of a task's start, of its end, and of a review
	maxShared     = 1_000           // tasks of a repository, the last ones
)

// Shared is such an object. The process that ends a task derives it: others would read thousands of objects of its log.
type Shared struct {
	V        int                 `json:"v"`
	Name     string              `json:"name"` // the last part of the object's
	Facts    facts.Task          `json:"facts,omitzero"`
	Events   []usage.Event       `json:"events,omitempty"`
	Evidence map[string]evidence `json:"evidence,omitempty"` // by the hash of a card of the task
}

// store tells other homes, if there are any.
func (o Shared) store(h taskdir.Home, prefix string) error {
	if h.Share == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), ShareTime)
	defer cancel()
	data, _ := json.Marshal(o) // it has texts, numbers and times of this age
	if err := h.Share(ctx, prefix+o.Name, data); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(h.Shared, prefix, o.Name), data, 0o600)
}

// ShareReview tells other homes that a user reviewed a card whose text has this hash.
func ShareReview(h taskdir.Home, hash string) error {
	return Shared{V: SharedVersion, Name: hash}.store(h, ReviewsPrefix)
}

// SharedPrefix begins the names of what tasks showed in the repository of a directory.
func SharedPrefix(dir string) string {
	_, ids, first := worldstate.Identity(dir)
	id := ids[0]
	if !strings.HasPrefix(id, "remote:") {
		host, _ := os.Hostname()
		id = cmp.Or(first(), host+" "+id) // the path means nothing on another machine
	}
	return fmt.Sprintf("learned/%.8x/", sha256.Sum256([]byte(id)))
}

// shared returns what tasks showed in the repository of a directory, by their ends.
func shared(h taskdir.Home, dir string) (out []Shared) {
	if h.Share == nil {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(h.Shared, SharedPrefix(dir), "*"))
	// Glob sorts, and the names begin with the end of the task: these are the last tasks.
	for _, path := range paths[max(0, len(paths)-maxShared):] {
		var o Shared
		if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &o) == nil {
			out = append(out, o)
		}
	}
	return out
}

// shareTask tells other homes what the task showed, if it is kept in a bucket.
func (m *Memory) shareTask() error {
	if m.Home.Share == nil || m.Home.KeptAs(m.ID) == "" {
		return nil
	}
	top, _, _ := worldstate.Identity(m.dir)
	t, _ := m.facts.Task(top)
	o := Shared{V: SharedVersion, Name: t.Ended.Format("20060102T150405.000Z-") + t.ID, Facts: t,
		Evidence: map[string]evidence{}}
	o.Events = append(m.experience.Events(m.ID, ""), m.verified...)
	own := slices.DeleteFunc(m.cards.List(), func(e knowledgebase.Entry) bool { return e.Task != m.ID })
	for _, c := range m.cards.Cards(own) {
		o.Evidence[c.Hash()] = evidenceOf(m.Home, c)
	}
	return o.store(m.Home, SharedPrefix(m.dir))
}

package state

import (
	"maps"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/research"
)

// ByResearchGuard decided on a call about something new.
const ByResearchGuard = "guard:research"

const (
	maxUserHosts = 1_000     // hosts of the user's words remembered
	maxUserText  = 256 << 10 // of one message looked at for hosts
)

// Research is what a task has researched, and what it still must.
type Research struct {
	Done   map[string]uint64 `json:",omitempty"` // the record, by the subject's normal form
	Wanted map[string]bool   `json:",omitempty"` // subjects of refused calls that were not looked up since
	Hosts  map[string]bool   `json:",omitempty"` // named by the user
}

// Fold applies an operation's effect on research. The records are operations, so no jump
// removes them.
func (r *Research) Fold(o op.Op) {
	switch b := o.Body.(type) {
	case *op.UserSaid:
		for _, host := range research.HostsNamed(b.Text[:min(len(b.Text), maxUserText)]) {
			if len(r.Hosts) < maxUserHosts {
				r.Hosts = put(r.Hosts, host, true)
			}
		}
	case *op.ApprovalDecided:
		if b.By != ByResearchGuard || b.Decision != "refuse" {
			return
		}
		for _, id := range b.Subjects {
			r.Wanted = put(r.Wanted, research.Normal(id), true)
		}
	case *op.ResearchDone:
		subject := research.Normal(b.Subject)
		r.Done = put(r.Done, subject, o.Seq)
		maps.DeleteFunc(r.Wanted, func(id string, _ bool) bool { return id == subject || research.Bare(id) == subject })
		if len(r.Wanted) == 0 {
			r.Wanted = nil
		}
	}
}

func put[K comparable, V any](m map[K]V, key K, v V) map[K]V {
	if m == nil {
		m = make(map[K]V)
	}
	m[key] = v
	return m
}

// Record returns the record of a subject, 0 if there is none.
func (r *Research) Record(s research.Subject) uint64 {
	id := research.Normal(s.ID)
	return max(r.Done[id], r.Done[research.Bare(id)])
}

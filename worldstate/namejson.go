//go:build unix

package worldstate

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// See "Names in JSON" in the package's documentation.

// exact gives a name's bytes where its text cannot hold them, and nil elsewhere.
func exact(name string) []byte {
	if utf8.ValidString(name) {
		return nil
	}
	return []byte(name)
}

// exactAll is exact for a list.
func exactAll(names []string) map[int][]byte {
	var out map[int][]byte
	for i, name := range names {
		if b := exact(name); b != nil {
			if out == nil {
				out = make(map[int][]byte)
			}
			out[i] = b
		}
	}
	return out
}

// take puts a name's bytes in the place of its text.
func take(name *string, b []byte) {
	if b != nil {
		*name = string(b)
	}
}

func takeAll(names []string, exact map[int][]byte) {
	for i, b := range exact {
		if i >= 0 && i < len(names) {
			names[i] = string(b)
		}
	}
}

// marshal is json.Marshal that leaves <, > and & to whoever encodes the whole.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

type (
	plainSkip    Skip
	plainItem    Item
	plainChange  Change
	plainProblem Problem
	plainForked  Forked
	plainPlan    Plan
	plainResult  Result
)

type skipJSON struct {
	plainSkip
	PathBytes []byte `json:"path_bytes,omitempty"`
}

// MarshalJSON adds path_bytes where the path is not UTF-8.
func (s Skip) MarshalJSON() ([]byte, error) { return marshal(skipJSON{plainSkip(s), exact(s.Path)}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Skip) UnmarshalJSON(data []byte) error {
	var v skipJSON
	err := json.Unmarshal(data, &v)
	*s = Skip(v.plainSkip)
	take(&s.Path, v.PathBytes)
	return err
}

type itemJSON struct {
	plainItem
	PathBytes []byte `json:"path_bytes,omitempty"`
}

// MarshalJSON adds path_bytes where the path is not UTF-8.
func (i Item) MarshalJSON() ([]byte, error) { return marshal(itemJSON{plainItem(i), exact(i.Path)}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (i *Item) UnmarshalJSON(data []byte) error {
	var v itemJSON
	err := json.Unmarshal(data, &v)
	*i = Item(v.plainItem)
	take(&i.Path, v.PathBytes)
	return err
}

type changeJSON struct {
	plainChange
	PathBytes []byte `json:"path_bytes,omitempty"`
	FromBytes []byte `json:"from_bytes,omitempty"`
}

// MarshalJSON adds path_bytes and from_bytes where these are not UTF-8.
func (c Change) MarshalJSON() ([]byte, error) {
	return marshal(changeJSON{plainChange(c), exact(c.Path), exact(c.From)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Change) UnmarshalJSON(data []byte) error {
	var v changeJSON
	err := json.Unmarshal(data, &v)
	*c = Change(v.plainChange)
	take(&c.Path, v.PathBytes)
	take(&c.From, v.FromBytes)
	return err
}

type problemJSON struct {
	plainProblem
	PathBytes []byte `json:"path_bytes,omitempty"`
}

// MarshalJSON adds path_bytes where the path is not UTF-8.
func (p Problem) MarshalJSON() ([]byte, error) {
	return marshal(problemJSON{plainProblem(p), exact(p.Path)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Problem) UnmarshalJSON(data []byte) error {
	var v problemJSON
	err := json.Unmarshal(data, &v)
	*p = Problem(v.plainProblem)
	take(&p.Path, v.PathBytes)
	return err
}

type forkedJSON struct {
	plainForked
	DirBytes []byte `json:"dir_bytes,omitempty"`
}

// MarshalJSON adds dir_bytes where the directory's path is not UTF-8.
func (f Forked) MarshalJSON() ([]byte, error) {
	return marshal(forkedJSON{plainForked(f), exact(f.Dir)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Forked) UnmarshalJSON(data []byte) error {
	var v forkedJSON
	err := json.Unmarshal(data, &v)
	*f = Forked(v.plainForked)
	take(&f.Dir, v.DirBytes)
	return err
}

type planJSON struct {
	plainPlan
	WriteBytes  map[int][]byte `json:"write_bytes,omitempty"`
	DeleteBytes map[int][]byte `json:"delete_bytes,omitempty"`
}

// MarshalJSON adds write_bytes and delete_bytes where a path is not UTF-8.
func (p Plan) MarshalJSON() ([]byte, error) {
	return marshal(planJSON{plainPlan(p), exactAll(p.Write), exactAll(p.Delete)})
}

// UnmarshalJSON reads what MarshalJSON writes: what a plan says, and not what
// Restore needs.
func (p *Plan) UnmarshalJSON(data []byte) error {
	var v planJSON
	err := json.Unmarshal(data, &v)
	*p = Plan(v.plainPlan)
	takeAll(p.Write, v.WriteBytes)
	takeAll(p.Delete, v.DeleteBytes)
	return err
}

type resultJSON struct {
	plainResult
	WrittenBytes map[int][]byte `json:"written_bytes,omitempty"`
	DeletedBytes map[int][]byte `json:"deleted_bytes,omitempty"`
}

// MarshalJSON adds written_bytes and deleted_bytes where a path is not UTF-8.
func (r Result) MarshalJSON() ([]byte, error) {
	return marshal(resultJSON{plainResult(r), exactAll(r.Written), exactAll(r.Deleted)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Result) UnmarshalJSON(data []byte) error {
	var v resultJSON
	err := json.Unmarshal(data, &v)
	*r = Result(v.plainResult)
	takeAll(r.Written, v.WrittenBytes)
	takeAll(r.Deleted, v.DeletedBytes)
	return err
}

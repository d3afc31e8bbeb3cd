package consent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/guard"
)

// maxTrustBytes bounds the file of approvals.
const maxTrustBytes = 16 << 20

// Approval is a user's approval of something a repository brings to be run: a server's
// command, a tool made of one. It holds for exactly that content.
type Approval struct {
	Kind string    `json:"kind"` // mcp-command, mcp-tools, config, …
	Name string    `json:"name"` // for users
	Dir  string    `json:"dir"`  // the directory that brought it
	Hash string    `json:"hash"` // SHA-256 of the content, hex
	At   time.Time `json:"at"`
	// Grants are its permissions beyond the sandbox that a project's programs run in.
	Grants *guard.Grants `json:"grants,omitempty"`
}

func (a Approval) equal(b Approval) bool {
	return a.Kind == b.Kind && a.Name == b.Name && a.Dir == b.Dir
}

// Covers reports whether an approval is one of what b describes.
func (a Approval) Covers(b Approval) bool { return a.equal(b) && a.Hash == b.Hash }

// Place returns the name of the private cache of what was approved, the same for every
// content.
func (a Approval) Place() string {
	sum := sha256.Sum256([]byte(a.Kind + "\x00" + a.Dir + "\x00" + a.Name))
	return hex.EncodeToString(sum[:8])
}

// Trust is the file with approvals in the user's own state. A repository cannot change it. Its
// methods may be called concurrently, even by several processes.
type Trust struct {
	path string
}

// OpenTrust names the file, which need not exist.
func OpenTrust(path string) *Trust { return &Trust{path} }

// Approved reports whether this content was approved. A file that cannot be read approves
// nothing, and is an error.
func (t *Trust) Approved(a Approval) (bool, error) {
	_, ok, err := t.Granted(a)
	return ok, err
}

// Granted is Approved, and returns what was granted with it.
func (t *Trust) Granted(a Approval) (guard.Grants, bool, error) {
	if t == nil {
		return guard.Grants{}, false, nil
	}
	all, err := t.List()
	i := slices.IndexFunc(all, func(b Approval) bool { return b.Covers(a) })
	if i < 0 {
		return guard.Grants{}, false, err
	}
	return *cmp.Or(all[i].Grants, new(guard.Grants)), true, nil
}

// Allow reports whether this content may be used: it was approved, or the user says yes now,
// which is recorded. ask is nil without a user. A nil Trust allows nothing.
func (t *Trust) Allow(ctx context.Context, a Approval, ask func(ctx context.Context, question string) bool,
	question func() string) (bool, error) {
	if t == nil {
		return false, nil
	}
	ok, err := t.Approved(a)
	if ok || err != nil || ask == nil || !ask(ctx, question()) {
		return ok, err
	}
	return true, t.Approve(a)
}

// List returns the approvals, the oldest first.
func (t *Trust) List() ([]Approval, error) {
	data, err := durable.ReadFile(t.path, maxTrustBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read approvals: %w", err)
	}
	var all []Approval
	if err := json.Unmarshal(data, &all); err != nil {
		err = userfile.JSON(t.path, data, nil, err, "correct it or remove it, then approve again")
		return nil, fmt.Errorf("read approvals: %w", err)
	}
	return all, nil
}

// Approve records approvals, those without a time as of now. They replace earlier ones of the same kind, name and
// directory.
func (t *Trust) Approve(as ...Approval) error {
	return t.change(func(all []Approval) []Approval {
		all = slices.DeleteFunc(all, func(b Approval) bool { return slices.ContainsFunc(as, b.equal) })
		for _, a := range as {
			if a.At.IsZero() {
				a.At = time.Now().UTC()
			}
			all = append(all, a)
		}
		return all
	})
}

// Revoke removes the approvals of a kind, name and directory.
func (t *Trust) Revoke(a Approval) error {
	return t.change(func(all []Approval) []Approval { return slices.DeleteFunc(all, a.equal) })
}

// change rewrites the file under a lock, by rename.
func (t *Trust) change(to func([]Approval) []Approval) error {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return fmt.Errorf("record approval: %w", err)
	}
	lock, err := durable.Lock(t.path + ".lock")
	if err != nil {
		return fmt.Errorf("record approval: %w", err)
	}
	defer lock.Close()
	all, err := t.List()
	if err != nil {
		return err
	}
	data, _ := json.MarshalIndent(to(all), "", "  ") // texts and times always encode
	if err := durable.Replace(t.path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("record approval: %w", err)
	}
	return nil
}

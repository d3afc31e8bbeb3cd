// Package bucket stores named objects where several machines reach them: an S3-compatible bucket, or a
// directory that they share.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
)

// The errors that a caller distinguishes. Any other error may pass: the caller tries again.
var (
	ErrExists = errors.New("the object exists")
	ErrAbsent = errors.New("there is no such object")
	// ErrFails: the storage cannot be reached, is full or fails otherwise, which may pass.
	ErrFails = errors.New("the remote storage fails")
	// ErrRefused: the storage does not exist, or refuses what was asked. Only a user can change that.
	ErrRefused = errors.New("the remote storage refuses")
	// ErrKey: an object was not sealed with the key that is set, or was changed since.
	ErrKey = errors.New("the object does not belong to the key")
)

// maxObjectBytes bounds what is read of an object. Ours have a few MiB; of a larger one less is read: it is damaged.
const maxObjectBytes = 64 << 20

// Bucket stores objects. Names are paths with slashes; each object fits into memory. Methods may be called
// concurrently.
type Bucket interface {
	// Create stores an object durably unless one of its name exists: ErrExists. Of several callers at once
	// one succeeds. After an error other than ErrExists the object may exist.
	Create(ctx context.Context, name string, data []byte) error
	// Put stores an object durably, in place of one of its name.
	Put(ctx context.Context, name string, data []byte) error
	// Get returns an object, or ErrAbsent.
	Get(ctx context.Context, name string) ([]byte, error)
	// List returns the sorted names that begin with prefix and follow after, which may be empty.
	List(ctx context.Context, prefix, after string) ([]string, error)
	// Delete removes an object if it exists.
	Delete(ctx context.Context, name string) error
	// String returns the address, without credentials.
	String() string
}

// Open returns the bucket at an address: s3://BUCKET/PREFIX, file:///DIRECTORY or a directory's path. With a key
// (see ParseKey) its objects are sealed. It asks the storage nothing.
func Open(address string, key []byte, getenv func(string) string) (Bucket, error) {
	b, err := open(address, getenv)
	if err != nil || key == nil {
		return b, err
	}
	return seal(b, key)
}

func open(address string, getenv func(string) string) (Bucket, error) {
	scheme, _, ok := strings.Cut(address, "://")
	if !ok {
		dir, err := filepath.Abs(address)
		if err != nil || address == "" {
			return nil, fmt.Errorf("remote %q: not an address: want s3://BUCKET/PREFIX or a directory", address)
		}
		return directory{dir, new(sync.Map)}, nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("remote: not an address: want s3://BUCKET/PREFIX or a directory")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("remote %s://%s: credentials and options are not part of the address; "+
			"set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL", scheme, u.Host)
	case scheme == "file" && u.Host == "" && u.Path != "":
		return directory{filepath.Clean(u.Path), new(sync.Map)}, nil
	case scheme == "s3" && u.Host != "":
		return openS3(u.Host, strings.Trim(u.Path, "/"), getenv)
	}
	return nil, fmt.Errorf("remote %q: not an address: want s3://BUCKET/PREFIX or a directory", address)
}

package replica

import (
	"context"
	"errors"
	"sync/atomic"

	"anamnesis/orchestrator/replica/bucket"
)

// failing is a bucket that cannot be reached until works is set.
type failing struct {
	bucket.Bucket
	works atomic.Bool
}

func (f *failing) Create(ctx context.Context, name string, data []byte) error {
	if !f.works.Load() {
		return errors.New("connection refused")
	}
	return f.Bucket.Create(ctx, name, data)
}

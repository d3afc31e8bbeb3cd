package bucket

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// requestTime bounds one request, which carries a few MiB: a connection that hangs is given up.
const requestTime = 2 * time.Minute

type s3 struct {
	client         *minio.Client
	bucket, prefix string
}

// openS3 takes the address and the credentials from the variables that other S3 programs read, then from
// ~/.aws/credentials, then from the machine's role.
func openS3(bucket, prefix string, getenv func(string) string) (Bucket, error) {
	endpoint := cmp.Or(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com")
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("AWS_ENDPOINT_URL: not the address of a server: want https://HOST")
	}
	lookup := minio.BucketLookupAuto
	if getenv("AWS_ENDPOINT_URL_S3")+getenv("AWS_ENDPOINT_URL") != "" {
		lookup = minio.BucketLookupPath // other servers seldom have a name for each bucket
	}
	// The callers repeat requests themselves, so that the library does not.
	client, err := minio.New(u.Host, &minio.Options{
		Secure: u.Scheme == "https", BucketLookup: lookup, MaxRetries: 1,
		Region: cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")),
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("remote s3://%s: %w", bucket, err)
	}
	return &s3{client: client, bucket: bucket, prefix: prefix}, nil
}

func (s *s3) String() string { return strings.TrimSuffix("s3://"+s.bucket+"/"+s.prefix, "/") }

func (s *s3) key(name string) string { return strings.TrimPrefix(s.prefix+"/"+name, "/") }

func (s *s3) Create(ctx context.Context, name string, data []byte) error {
	var o minio.PutObjectOptions
	o.SetMatchETagExcept("*") // If-None-Match: the object must not exist
	return s.put(ctx, name, data, o)
}

func (s *s3) Put(ctx context.Context, name string, data []byte) error {
	return s.put(ctx, name, data, minio.PutObjectOptions{})
}

func (s *s3) put(ctx context.Context, name string, data []byte, o minio.PutObjectOptions) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	o.ContentType, o.DisableMultipart = "application/octet-stream", true
	_, err := s.client.PutObject(ctx, s.bucket, s.key(name), bytes.NewReader(data), int64(len(data)), o)
	return s.fault(name, err)
}

func (s *s3) Get(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r, err := s.client.GetObject(ctx, s.bucket, s.key(name), minio.GetObjectOptions{})
	if err != nil {
		return nil, s.fault(name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxObjectBytes))
	return data, s.fault(name, err)
}

func (s *s3) List(ctx context.Context, prefix, after string) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o := minio.ListObjectsOptions{Prefix: s.key(prefix), Recursive: true}
	if after != "" {
		o.StartAfter = s.key(after)
	}
	var names []string
	for object := range s.client.ListObjects(ctx, s.bucket, o) {
		if object.Err != nil {
			return nil, s.fault(prefix, object.Err)
		}
		names = append(names, strings.TrimPrefix(object.Key, s.key("")))
	}
	return names, nil
}

func (s *s3) Delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return s.fault(name, s.client.RemoveObject(ctx, s.bucket, s.key(name), minio.RemoveObjectOptions{}))
}

// fault gives an error its meaning. A server answers a refused creation with 412, and AWS one of two at the same
// time with 409, after which the object may or may not exist: that one is tried again.
func (s *s3) fault(name string, err error) error {
	if err == nil {
		return nil
	}
	answer := minio.ToErrorResponse(err)
	switch {
	case answer.StatusCode == http.StatusPreconditionFailed:
		return fmt.Errorf("%s: %w", name, ErrExists)
	case answer.Code == minio.NoSuchKey:
		return fmt.Errorf("%s: %w", name, ErrAbsent)
	case answer.StatusCode == http.StatusNotImplemented:
		return fmt.Errorf("%s: %w: it does not honour If-None-Match: %s", s, ErrRefused,
			cmp.Or(answer.Message, answer.Code))
	case answer.StatusCode == http.StatusForbidden, answer.StatusCode == http.StatusUnauthorized,
		answer.StatusCode == http.StatusNotFound, answer.StatusCode == http.StatusBadRequest:
		return fmt.Errorf("%s: %w: %s", s, ErrRefused, cmp.Or(answer.Message, answer.Code, err.Error()))
	}
	if request := new(url.Error); errors.As(err, &request) {
		err = request.Err // without the address, which names a key
	} else if answer.StatusCode >= http.StatusInternalServerError {
		err = fmt.Errorf("it answers %s", answer.Code) // the text may be a page of a proxy
	}
	return fmt.Errorf("%s: %w: %w", s, ErrFails, err)
}

package bucket

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
)

// KeyBytes is the length of a key, for AES-256.
const KeyBytes = 32

// ParseKey reads a key from its base64 form, as "openssl rand -base64 32" prints it.
func ParseKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != KeyBytes {
		return nil, fmt.Errorf("the remote's key is not %d bytes in base64; openssl rand -base64 %d makes one",
			KeyBytes, KeyBytes)
	}
	return key, nil
}

// sealedLead begins a sealed object; the nonce and the ciphertext follow.
const sealedLead = "anamnesis sealed 1\n"

// sealed encrypts objects with AES-256-GCM. An object's name is authenticated with it, so that one cannot take
// another's place.
type sealed struct {
	Bucket
	aead cipher.AEAD
}

func seal(b Bucket, key []byte) (Bucket, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("the remote's key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	return sealed{b, aead}, err
}

func (s sealed) encrypt(name string, data []byte) []byte {
	out := make([]byte, len(sealedLead)+s.aead.NonceSize(),
		len(sealedLead)+s.aead.NonceSize()+len(data)+s.aead.Overhead())
	nonce := out[copy(out, sealedLead):]
	_, _ = rand.Read(nonce) // it never fails
	return s.aead.Seal(out, nonce, data, []byte(name))
}

func (s sealed) Create(ctx context.Context, name string, data []byte) error {
	return s.Bucket.Create(ctx, name, s.encrypt(name, data))
}

func (s sealed) Put(ctx context.Context, name string, data []byte) error {
	return s.Bucket.Put(ctx, name, s.encrypt(name, data))
}

func (s sealed) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := s.Bucket.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(data, []byte(sealedLead))
	if !ok || len(rest) < s.aead.NonceSize() {
		return nil, fmt.Errorf("%s: %w: it is not sealed; unset ANAMNESIS_REMOTE_KEY to read it", name, ErrKey)
	}
	n := s.aead.NonceSize()
	plain, err := s.aead.Open(nil, rest[:n], rest[n:], []byte(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: another key sealed it, or it was changed", name, ErrKey)
	}
	return plain, nil
}

// IsSealed reports whether an object read without a key is a sealed one.
func IsSealed(data []byte) bool { return bytes.HasPrefix(data, []byte(sealedLead)) }

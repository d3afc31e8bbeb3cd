package op

// PartKind is the kind of a part of a result.
type PartKind string

// The kinds of parts.
const (
	PartImage PartKind = "image"
	PartAudio PartKind = "audio"
	PartBlob  PartKind = "blob" // bytes of another kind
)

// Part is a non-text part of a result. The result's text names it at its place.
type Part struct {
	Kind PartKind `json:"kind"`
	MIME string   `json:"mime"`
	Name string   `json:"name,omitempty"` // an address or a file's name
	// Width and Height are an image's pixels; 0 in streams of earlier versions.
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	Base64 []byte `json:"base64"` // the bytes, in JSON as base64
}

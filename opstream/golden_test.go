package opstream

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/internal/wire"
)

// TestV1 reads a stream of the format's first version. The files under
// testdata/v1 never change.
func TestV1(t *testing.T) {
	const dir = "testdata/v1"
	r := mustReader(t, dir, nil)
	var got strings.Builder
	for rec, err := range r.Since(0) {
		if err != nil {
			t.Fatal(err)
		}
		body := string(rec.Body)
		if len(body) > 200 {
			body = fmt.Sprintf("%d bytes", len(body))
		}
		fmt.Fprintf(&got, "%d %d %s %s %d %d %q %v\n", rec.Seq, rec.Ack, rec.Time.Format(wire.TimeLayout), rec.Kind,
			rec.Step, rec.Tok, body, rec.Durable)
	}
	want, err := os.ReadFile(filepath.Join(dir, "want.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("read\n%s\nwant\n%s", got.String(), want)
	}
	rep, err := Verify(t.Context(), dir)
	if err != nil || rep.Has(SeverityCorrupt) || rep.Has(SeverityTorn) || rep.Segments != 2 ||
		rep.Blobs != 2 || !rep.Sealed {
		t.Errorf("Verify = %+v, %v", rep, err)
	}
}

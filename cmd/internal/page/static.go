package page

import (
	"bytes"
	"embed"
	"net/http"
	"path"
	"time"
)

// The style sheet, the scripts and their licence. htmx is the file
// dist/htmx.min.js of its npm package, unchanged; the version is in its name.
//
//go:embed static
var static embed.FS

// sendStatic answers with one of them. They hold nothing of the user's.
func (s *Server) sendStatic(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	data, err := static.ReadFile(path.Join("static", name))
	if err != nil {
		return errNoPage
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
	return nil
}

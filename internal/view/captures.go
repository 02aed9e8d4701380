package view

import (
	"time"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/store/captures"
)

// captures answers which captures of a service lie beside the history of a range of time; of all services if it
// is "".
func (h *history) captures(from, to time.Time, service string) (any, error) {
	list, err := captures.List(h.store.Dir(), from, to)
	if err != nil {
		return nil, err
	}
	type row struct {
		File    string `json:"file"`
		Service string `json:"service"`
		From    int64  `json:"from"` // ms since 1970
		To      int64  `json:"to"`
		Size    int64  `json:"size"` // bytes
		Written bool   `json:"written"`
	}
	rows := []row{}
	for _, c := range list {
		if service == "" || c.Of(service) {
			rows = append(rows, row{c.File, flame.Visible(c.Service), c.From.UnixMilli(), c.To.UnixMilli(), c.Size, c.Written})
		}
	}
	return rows, nil
}

// openCapture makes a recording of a capture.
func (h *history) openCapture(file string) (*Server, error) {
	path, err := captures.Path(h.store.Dir(), file)
	if err != nil {
		return nil, err
	}
	p, err := format.Read(path)
	if err != nil {
		return nil, err
	}
	r, err := Open(path, p)
	if err != nil {
		return nil, err
	}
	return &Server{recordings: []*Recording{r}}, nil
}

// SPDX-License-Identifier: Apache-2.0

package httpboot

import (
	"io"
	"net/http"
)

// response counts what is sent. It keeps ReadFrom, through which net/http
// reaches sendfile(2), and Unwrap for http.ResponseController.
type response struct {
	http.ResponseWriter
	status int   // zero until the header is written
	n      int64 // bytes of the body
}

// WriteHeader passes the status on, but for redirects: firmware does not follow
// them and shows its user nothing, so they become "not found".
func (w *response) WriteHeader(status int) {
	if status >= 300 && status < 400 && status != http.StatusNotModified {
		w.Header().Del("Location")
		status = http.StatusNotFound
	}
	w.note(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *response) note(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write counts and passes on.
func (w *response) Write(b []byte) (int, error) {
	w.note(http.StatusOK)
	n, err := w.ResponseWriter.Write(b)
	w.n += int64(n)
	return n, err
}

// ReadFrom passes the reader on to the connection.
func (w *response) ReadFrom(r io.Reader) (int64, error) {
	w.note(http.StatusOK)
	n, err := io.Copy(w.ResponseWriter, r)
	w.n += n
	return n, err
}

// Unwrap returns the writer below.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

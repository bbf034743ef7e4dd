// SPDX-License-Identifier: Apache-2.0

package control

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestStoppedInBody: a client that was stopped in the middle of a plan is given up, and one that
// has sent all of it is not taken for gone when the time for a part has passed.
func TestStoppedInBody(t *testing.T) {
	const each = 100 * time.Millisecond
	read, gone := make(chan error, 1), make(chan bool, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, &deadlineReader{r: r.Body, out: http.NewResponseController(w), each: each})
		read <- err
		select {
		case <-r.Context().Done():
			gone <- true
		case <-time.After(3 * each):
			gone <- false
		}
	}))
	defer s.Close()
	for body, ends := range map[string]bool{"5\r\nabcde\r\n": false, "5\r\nabcde\r\n0\r\n\r\n": true} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: ironrail\r\nTransfer-Encoding: chunked\r\n\r\n"+body); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-read:
			if (err == nil) != ends {
				t.Errorf("%q: %v", body, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%q is still read", body)
		}
		if lost := <-gone; ends && lost {
			t.Error("a client that waits for its answer is taken for gone")
		}
		_ = c.Close()
	}
}

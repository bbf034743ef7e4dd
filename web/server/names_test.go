// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/web/webtest"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bound         string
		given         []string
		secure        bool
		hosts, behind []string
	}{
		{"127.0.0.1:8470", nil, false, []string{"127.0.0.1:8470", "localhost:8470"}, nil},
		{"127.0.0.1:80", nil, false, []string{"127.0.0.1:80", "127.0.0.1", "localhost:80", "localhost"}, nil},
		{"127.0.0.1:8470", []string{"Head.example"}, false, []string{"head.example:8470", "head.example", "127.0.0.1:8470", "localhost:8470"}, []string{"head.example:8470", "head.example"}},
		{"127.0.0.1:8470", []string{"head.example:443"}, false, []string{"head.example:443", "head.example", "127.0.0.1:8470", "localhost:8470"}, []string{"head.example:443", "head.example"}},
		{"192.0.2.10:443", []string{"head.example"}, true, []string{"head.example:443", "head.example", "192.0.2.10:443", "192.0.2.10"}, []string{"head.example:443", "head.example"}},
		{"[::]:8470", []string{"2001:db8::1", "[2001:db8::2]:80"}, true, []string{"[2001:db8::1]:8470", "[2001:db8::1]", "[2001:db8::2]:80"}, []string{"[2001:db8::1]:8470", "[2001:db8::1]", "[2001:db8::2]:80"}},
	} {
		bound, err := net.ResolveTCPAddr("tcp", c.bound)
		if err != nil {
			t.Fatal(err)
		}
		hosts, given := Listen{Hosts: c.given}.names(bound, c.secure)
		if !slices.Equal(hosts, c.hosts) || !slices.Equal(given, c.behind) {
			t.Errorf("%s with %q: %q, given %q", c.bound, c.given, hosts, given)
		}
	}
}

// TestURLOf: the link of `serve link` leads where the page is.
func TestURLOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		l    Listen
		want string
	}{
		{Listen{Address: "127.0.0.1:8470"}, "http://127.0.0.1:8470/"},
		{Listen{Address: "localhost:8470"}, "http://127.0.0.1:8470/"},
		{Listen{Address: "127.0.0.1:8470", Certificate: "c.pem"}, "https://127.0.0.1:8470/"},
		{Listen{Address: "0.0.0.0:8470", Hosts: []string{"head.example"}}, "https://head.example:8470/"},
		{Listen{Address: "192.0.2.10:8470", Hosts: []string{"head.example:443"}}, "https://head.example:443/"},
		{Listen{Address: "0.0.0.0:8470"}, ""}, {Listen{Address: ":8470"}, ""}, {Listen{Address: "8470"}, ""},
	} {
		if got, err := URLOf(c.l); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %q, %v", c.l, got, err)
		}
	}
}

// TestConnections: who opens more connections than there may be waits.
func TestConnections(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/"+webtest.Site); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	open, most := 0, 0
	s := start(t, dir, Options{state: func(_ net.Conn, to http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch to {
		case http.StateNew:
			open++
		case http.StateClosed:
			open--
		}
		most = max(most, open)
	}})
	for range maxConnections + 20 {
		c, err := net.Dial("tcp", s.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	reached := func() int { mu.Lock(); defer mu.Unlock(); return most }
	for end := time.Now().Add(time.Minute); reached() < maxConnections && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	time.Sleep(100 * time.Millisecond) // one more would be taken now
	if got := reached(); got != maxConnections {
		t.Errorf("%d connections were open at once, want %d", got, maxConnections)
	}
}

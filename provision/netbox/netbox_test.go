// SPDX-License-Identifier: Apache-2.0

package netbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
)

var update = flag.Bool("update", false, "write golden files")

// whole are the options that fit the saved answers.
func whole(t *testing.T) Options {
	t.Helper()
	o := Options{Nodes: map[string]string{"gpu-server": "worker"}, Switches: map[string]string{"leaf": "compute"}}
	for _, x := range []struct {
		text string
		to   *[]Template
	}{{"ib{n}=rail/{n}", &o.Ports}, {"Ethernet{n}={n}", &o.SwitchPorts}} {
		p, err := ParseTemplate(x.text)
		if err != nil {
			t.Fatal(err)
		}
		*x.to = append(*x.to, p)
	}
	return o
}

// saved reads testdata/saved, which has the fields of NetBox 4.6.8's serializers.
func saved(t *testing.T) Export {
	t.Helper()
	e, err := ReadFolder("testdata/saved", "eno1")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestConvert: racks, nodes, switches and cables become HCL, and what cannot be taken over
// is said.
func TestConvert(t *testing.T) {
	t.Parallel()
	r := Convert(saved(t), whole(t))
	got := r.Site.HCL()
	file := "testdata/netbox.hcl"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != string(got) {
		t.Errorf("%v\n%s", err, got)
	}
	problems := []string{
		`rack "Cage 3": a rack's name has letters, digits and . _ - only: rename it, in NetBox or here`,
		`rack "r04": its units are not counted from 1 at the bottom, as the site's are`,
		`device "GPU_04": a node's name is that of a host: small letters, digits and - only, 63 at most`,
		`device "gpu05": it stands at unit 17.5 of rack r02, and units of the site are whole`,
	}
	if !reflect.DeepEqual(r.Problems, problems) {
		t.Errorf("problems:\n%s", strings.Join(r.Problems, "\n"))
	}
	notes := []string{
		"cable #6 joins \"gpu02 ib1\" with \"leaf-1 Ethernet3\", \"leaf-1 Ethernet4\", and NetBox does not say which belongs to which: give it a straight profile there, trunk or breakout, of as many ends. Write a `cable` block for each port or lane in another file of the site",
		"cable #11 from \"gpu03 ib3\": port \"pp-2 2\" of a panel has no cable. Write a `cable` block for each port or lane in another file of the site",
	}
	if !reflect.DeepEqual(r.Notes, notes) {
		t.Errorf("notes:\n%s", strings.Join(r.Notes, "\n"))
	}
	left := map[string]int{"devices whose status is decommissioning": 1, "devices without a rack or a position": 1, "devices of other roles": 1, "devices in racks that are not taken over": 1, "racks without nodes and switches": 1,
		"cables whose status is decommissioning": 1, "cables whose interfaces no --port or --switch-port names": 1}
	if !reflect.DeepEqual(r.LeftOut, left) || !reflect.DeepEqual(r.Roles, map[string]int{"gpu-server": 6, "leaf": 2, "patch": 1}) {
		t.Errorf("left out %v, roles %v", r.LeftOut, r.Roles)
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, name, want string }{
		{"ib{n}=rail/{n}", "ib12", "rail/12"}, {"ib{n}=rail/{n}", "ib", ""}, {"ib{n}=rail/{n}", "ib1a", ""}, {"ib{n}=rail/{n}", "eth1", ""},
		{"eno1=mgmt/0", "eno1", "mgmt/0"}, {"eno1=mgmt/0", "eno12", ""}, {"swp{n}s0={n}/1", "swp7s0", "7/1"},
	} {
		p, err := ParseTemplate(c.template)
		if err != nil || p.port(c.name) != c.want {
			t.Errorf("%s of %s: %q, %v", c.template, c.name, p.port(c.name), err)
		}
	}
	for _, bad := range []string{"ib", "=x", "ib{n}=", "a{n}b{n}=1", "ib=rail/{n}"} {
		if _, err := ParseTemplate(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// server answers as NetBox does, from the saved answers, page by page.
type server struct {
	*httptest.Server
	most int // objects of a page

	mu    sync.Mutex
	asked []string
}

func newServer(t *testing.T, token string) *server {
	t.Helper()
	s := &server{most: 3}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.String())
		s.mu.Unlock()
		if r.Header.Get("Authorization") != token {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		name := filepath.Base(r.URL.Path)
		b, err := os.ReadFile("testdata/saved/" + name + ".json")
		if err != nil || r.URL.Path != "/nb/api/dcim/"+name+"/" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		var p page
		_ = json.Unmarshal(b, &p)
		offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		end := min(offset+min(limit, s.most), len(p.Results))
		_ = json.NewEncoder(w).Encode(map[string]any{"count": p.Count, "next": "https://192.0.2.1/elsewhere", "previous": nil, "results": p.Results[min(offset, end):end]})
	}))
	t.Cleanup(s.Close)
	return s
}

// pin is the trust in a test server.
func (s *server) pin() string {
	sum := sha256.Sum256(s.Certificate().RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TestRead: all pages are read over TLS with the token in the form of its version, and no
// address of an answer is followed.
func TestRead(t *testing.T) {
	t.Parallel()
	for token, header := range map[string]string{"0123456789abcdef": "Token 0123456789abcdef", "nbt_key.canary\n": "Bearer nbt_key.canary"} {
		s := newServer(t, header)
		e, err := Server{URL: s.URL + "/nb/", Token: secret.NewValue(token), Trust: s.pin(), Site: "ams1"}.Read(t.Context(), "eno1")
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(e, saved(t)) {
			t.Errorf("got %+v", e)
		}
		if first := "/nb/api/dcim/racks/?limit=200&offset=0&site=ams1"; s.asked[0] != first || !strings.Contains(strings.Join(s.asked, "\n"), "devices/?limit=200&offset=9&site=ams1&exclude=config_context") || !strings.Contains(strings.Join(s.asked, "\n"), "interfaces/?limit=200&name=eno1&offset=0&site=ams1") {
			t.Errorf("asked for %q", s.asked)
		}
	}
}

// TestRefusals: what cannot be read is an error of its kind, without the token.
func TestRefusals(t *testing.T) {
	t.Parallel()
	good := newServer(t, "Token canary")
	answer := func(f http.HandlerFunc) *httptest.Server {
		s := httptest.NewServer(f)
		t.Cleanup(s.Close)
		return s
	}
	other := answer(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	short := answer(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"count": 5, "results": []}`) })
	many := answer(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"count": 1000000, "results": []}`) })
	page := answer(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `<html>login</html>`) })
	wrong := answer(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"count": 1, "results": [{"id": "x"}]}`) })
	moved := answer(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	endless := answer(func(w http.ResponseWriter, r *http.Request) {
		for b := []byte(strings.Repeat(" ", 1<<20)); r.Context().Err() == nil; {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	})
	for _, c := range []struct {
		name, url string
		trust     string
		kind      errkind.Kind
		want      string
	}{
		{"no token that it takes", good.URL + "/nb", good.pin(), errkind.Auth, "status 403"},
		{"another key", good.URL, "sha256:" + strings.Repeat("0", 64), errkind.Unreachable, "not the pinned one"},
		{"unknown authority", good.URL, "", errkind.Unreachable, "certificate"},
		{"not a list", page.URL, "", errkind.Corrupt, "no answer of NetBox"},
		{"fewer than it says", short.URL, "", errkind.Corrupt, "has 5 of them, and gives 0"},
		{"too many", many.URL, "", errkind.Refused, "1000000"},
		{"another type", wrong.URL, "", errkind.Corrupt, "object 1 is not as NetBox has it"},
		{"elsewhere", moved.URL, "", errkind.Refused, "status 302"},
		{"without an end", endless.URL, "", errkind.Refused, "more than 32 MiB"},
		{"with a password", "https://u:p@netbox.example", "", errkind.Invalid, "none of http or https"},
	} {
		_, err := Server{URL: c.url, Token: secret.NewValue("canary2"), Trust: c.trust}.Read(context.Background(), "")
		if err == nil || errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v (%v)", c.name, err, errkind.Of(err))
		}
	}
}

// TestFolders: saved lists are read with and without their page, and a part is refused.
func TestFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("racks", `[{"id": 1, "name": "r01", "u_height": 42, "starting_unit": 1}]`)
	put("devices", `{"count": 1, "results": [{"id": 1, "name": "n1", "device_role": {"slug": "node"}, "rack": {"id": 1}, "position": 3}]}`)
	if _, err := ReadFolder(dir, ""); errkind.Of(err) != errkind.NotFound || !strings.Contains(errkind.Action(err), "/api/dcim/cables/?limit=0") {
		t.Errorf("no cables: %v", err)
	}
	put("cables", `[]`)
	e, err := ReadFolder(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if r := Convert(e, Options{Nodes: map[string]string{"node": "w"}}); len(r.Site.Racks) != 1 || r.Site.Racks[0].Nodes[0] != (SiteNode{Name: "n1", Role: "w", Unit: 3}) {
		t.Errorf("NetBox before 3.6: %+v", r)
	}
	put("devices", `{"count": 7, "results": [{}]}`)
	if _, err := ReadFolder(dir, ""); err == nil || !strings.Contains(err.Error(), "holds 1 of 7 objects") {
		t.Errorf("a part: %v", err)
	}
}
